// Questions to the server while somebody types. Owns when to ask: not on every key, never two at once, the
// newest question only. Draws nothing.

import { Fetching } from "./fetching.js";

const QUIET_MS = 80; // since the last key; a fast typist makes one every 100 to 150 ms
const LONGEST_WAIT_MS = 240; // somebody who never pauses still sees answers

/** Whether there is a letter or a digit to search for; the server refuses what has none. */
export function isQuestion(text) {
  return /[\p{L}\p{N}]/u.test(text);
}

/**
 * Asks for `{question, strategy}` and reports to `on`:
 * `reply(reply, asked, tookMs)`, `slow()`, `busy()`, `unreachable()`, `refused(problem, asked)`, `idle()`.
 */
export class Asker {
  constructor(answersUrl, on) {
    this.answersUrl = answersUrl;
    this.on = on;
    this.newest = null; // what was asked last, answered or not
    this.firstKeyAt = null; // of keys that no request has been sent for yet
    this.timer = 0; // until the next request
    this.fetching = null; // the request under way
  }

  /** Ask soon; at once with `now`. The same question as before is not asked again. */
  ask(asked, now = false) {
    if (isSame(asked, this.newest)) {
      if (now) this.hurry();
      return;
    }
    this.newest = asked;
    this.drop();
    if (!isQuestion(asked.question)) {
      this.firstKeyAt = null;
      this.on.idle();
      return;
    }
    const time = performance.now();
    this.firstKeyAt ??= time;
    const waitMs = Math.min(QUIET_MS, Math.max(0, this.firstKeyAt + LONGEST_WAIT_MS - time));
    if (now) this.send(asked);
    else this.timer = setTimeout(() => this.send(asked), waitMs);
  }

  /** Do at once what was to be done soon. */
  hurry() {
    if (this.timer) this.send(this.newest);
    else this.fetching?.tryNow();
  }

  /** Whether an answer to the newest question is still to come. */
  get isWaiting() {
    return this.fetching !== null || Boolean(this.timer);
  }

  drop() {
    this.fetching?.drop();
    this.fetching = null;
    clearTimeout(this.timer);
    this.timer = 0;
  }

  async send(asked) {
    this.drop();
    this.firstKeyAt = null;
    const fetching = new Fetching(this.answersUrl(asked), this.on);
    this.fetching = fetching;
    const started = performance.now();
    const [reply, problem] = await fetching.json().then(
      (found) => [found, null],
      (fault) => [null, fault],
    );
    // An answer to an older question may arrive although it was dropped.
    if (this.fetching !== fetching) return;
    this.fetching = null;
    if (problem) {
      this.newest = null; // so that the same question can be asked again
      this.on.refused(problem, asked);
    } else this.on.reply(reply, asked, performance.now() - started);
  }
}

function isSame(one, other) {
  return one?.question === other?.question && one?.strategy === other?.strategy;
}
