// What is still to come and what is wrong with it, of the answers and of a document, in one place for both: a
// line that moves below the question, and a notice.

const QUIET = { isSlow: false, line: "", isError: false };

export class Waiting {
  /** `view` has the elements `progress`, `notice`, `said`, `main` and `answers`. */
  constructor(view) {
    this.view = view;
    this.states = { document: QUIET, answers: QUIET };
  }

  /** Where nothing is said of it, a thing is not waited for and nothing is wrong. */
  set(name, state = QUIET) {
    this.states[name] = { ...QUIET, ...state };
    const states = Object.values(this.states);
    const isSlow = states.some((each) => each.isSlow);
    this.view.progress.hidden = !isSlow;
    this.view.main.setAttribute("aria-busy", String(isSlow));
    const { line, isError } = states.find((each) => each.line) ?? QUIET;
    if (line && line !== this.view.notice.textContent) this.view.said.textContent = line;
    this.view.notice.hidden = !line;
    this.view.notice.textContent = line;
    this.view.notice.classList.toggle("error", isError);
    this.view.answers.classList.toggle("old", Boolean(this.states.answers.line));
  }

  /** What a `Fetching` reports. */
  reports(name) {
    const say = (line) => () => this.set(name, { isSlow: true, line });
    return {
      slow: () => this.set(name, { ...this.states[name], isSlow: true }),
      busy: say("The server is busy. Asking again…"),
      unreachable: say("The server cannot be reached. Trying again…"),
    };
  }
}
