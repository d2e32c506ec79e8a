// What the page gets from the server, however long it takes. Owns what to do when the server is slow, busy or
// away. Draws nothing.

const SLOW_MS = 300; // before this nobody needs to be told to wait
const FIRST_RETRY_MS = 400;
const LONGEST_RETRY_MS = 8000;
const QUIET_RETRIES = 3; // so often a busy server is asked again before anything is said

/** What the server itself says is wrong: one line, from a problem document (RFC 9457) if there is one. */
export class Problem extends Error {
  constructor(status, line) {
    super(line);
    this.status = status;
    this.isBusy = status === 503 || status === 429;
  }
}

/** The JSON at `url`; `Problem` where the server refuses, TypeError where it cannot be reached. */
export async function fetchJson(url, signal) {
  const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
  if (response.ok) return response.json();
  const found = await response.json().catch(() => null);
  const problem = new Problem(response.status, lineOf(found) ?? `the server answered ${response.status}`);
  problem.retryAfterMs = 1000 * Number(response.headers.get("Retry-After")) || 0;
  throw problem;
}

function lineOf(problem) {
  const wrong = problem?.errors?.[0]?.where;
  if (wrong === "query.question") return "this question cannot be asked: it may have up to 4,000 characters";
  const said = problem?.detail ?? problem?.title;
  return typeof said === "string" && said ? said.split("\n")[0].slice(0, 300) : null;
}

/** Something that is asked for until it comes. Reports `slow()`, `busy()` and `unreachable()` to `on`. */
export class Fetching {
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.aborter = new AbortController();
    this.tryNow = () => {}; // ends the pause before the next try, if there is one
  }

  /** The JSON; `Problem` where the server refuses. What was dropped fails too, and nobody needs to hear of it. */
  async json() {
    const slow = setTimeout(() => this.on.slow(), SLOW_MS);
    try {
      for (let retries = 0; ; retries += 1) {
        try {
          return await fetchJson(this.url, this.aborter.signal);
        } catch (error) {
          const isAway = !(error instanceof Problem);
          if (this.aborter.signal.aborted || (!isAway && !error.isBusy)) throw error;
          if (isAway) this.on.unreachable();
          else if (retries >= QUIET_RETRIES) this.on.busy();
          await this.pause(retryMs(error, retries));
        }
      }
    } finally {
      clearTimeout(slow);
    }
  }

  drop() {
    this.aborter.abort();
    this.tryNow();
  }

  pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.tryNow = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Later and later, as the server wishes, and not everybody at once. */
function retryMs(error, retries) {
  const usual = FIRST_RETRY_MS * 2 ** retries * (0.5 + Math.random() / 2);
  return Math.min(LONGEST_RETRY_MS, Math.max(error.retryAfterMs ?? 0, usual));
}
