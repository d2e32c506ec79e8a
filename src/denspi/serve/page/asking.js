// Questions to the server while somebody types. Owns when to ask: not on every key, never two at once, the
// newest question only; what to do when the server is busy or away. Draws nothing.

const QUIET_MS = 80; // since the last key; a fast typist makes one every 100 to 150 ms
const LONGEST_WAIT_MS = 240; // somebody who never pauses still sees answers
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

/** Whether there is a letter or a digit to search for; the server refuses what has none. */
export function isQuestion(text) {
  return /[\p{L}\p{N}]/u.test(text);
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
  const said = problem?.detail ?? problem?.title;
  return typeof said === "string" && said ? said.split("\n")[0].slice(0, 300) : null;
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
    this.flight = null; // AbortController of the request under way
    this.timers = { ask: 0, slow: 0, retry: 0 };
  }

  /** Ask soon; at once with `now`. The same question as before is not asked again. */
  ask(asked, now = false) {
    const isTimed = Boolean(this.timers.ask || this.timers.retry);
    if (isSame(asked, this.newest) && !(now && isTimed)) return;
    this.newest = asked;
    this.drop();
    if (!isQuestion(asked.question)) {
      this.on.idle();
      return;
    }
    const time = performance.now();
    this.firstKeyAt ??= time;
    const waitMs = Math.min(QUIET_MS, Math.max(0, this.firstKeyAt + LONGEST_WAIT_MS - time));
    if (now) this.send(asked, 0);
    else this.timers.ask = setTimeout(() => this.send(asked, 0), waitMs);
  }

  /** Whether an answer to the newest question is still to come. */
  get isWaiting() {
    return this.flight !== null || Boolean(this.timers.ask || this.timers.retry);
  }

  drop() {
    this.flight?.abort();
    this.flight = null;
    for (const name of Object.keys(this.timers)) this.stop(name);
  }

  stop(name) {
    clearTimeout(this.timers[name]);
    this.timers[name] = 0;
  }

  async send(asked, retries) {
    this.stop("ask");
    this.stop("retry");
    this.firstKeyAt = null;
    const flight = new AbortController();
    this.flight = flight;
    this.timers.slow ||= setTimeout(() => this.on.slow(), SLOW_MS);
    const started = performance.now();
    const [reply, error] = await fetchJson(this.answersUrl(asked), flight.signal).then(
      (found) => [found, null],
      (fault) => [null, fault],
    );
    // An answer to an older question may arrive although it was aborted.
    if (this.flight !== flight) return;
    this.flight = null;
    if (error) this.fail(error, asked, retries);
    else {
      this.stop("slow");
      this.on.reply(reply, asked, performance.now() - started);
    }
  }

  fail(error, asked, retries) {
    const isAway = !(error instanceof Problem);
    if (!isAway && !error.isBusy) {
      this.newest = null; // so that the same question can be asked again
      this.stop("slow");
      this.on.refused(error, asked);
      return;
    }
    if (isAway) this.on.unreachable();
    else if (retries >= QUIET_RETRIES) this.on.busy();
    this.timers.retry = setTimeout(() => this.send(asked, retries + 1), retryMs(error, retries));
  }
}

/** The JSON at `url`; a busy server is asked a few times more. */
export async function fetchPatiently(url, signal) {
  for (let retries = 0; ; retries += 1) {
    try {
      return await fetchJson(url, signal);
    } catch (error) {
      if (!error.isBusy || retries >= QUIET_RETRIES) throw error;
      await new Promise((resolve) => { setTimeout(resolve, retryMs(error, retries)); });
    }
  }
}

/** Later and later, as the server wishes, and not everybody at once. */
function retryMs(error, retries) {
  const usual = FIRST_RETRY_MS * 2 ** retries * (0.5 + Math.random() / 2);
  return Math.min(LONGEST_RETRY_MS, Math.max(error.retryAfterMs ?? 0, usual));
}

function isSame(one, other) {
  return one?.question === other?.question && one?.strategy === other?.strategy;
}
