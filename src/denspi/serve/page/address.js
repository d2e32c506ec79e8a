// The address bar: ?q=QUESTION&strategy=NAME#document=ID&span=START-END.
// Strings in, records out; never touches the history.

export const DEFAULT_STRATEGY = "hybrid";

/** What an address asks for; `place` is null where no document is open. */
export function readAddress(url) {
  const asked = new URL(url);
  const fragment = new URLSearchParams(asked.hash.slice(1));
  const id = fragment.get("document");
  return {
    question: asked.searchParams.get("q") ?? "",
    strategy: asked.searchParams.get("strategy") ?? DEFAULT_STRATEGY,
    place: id === null ? null : { documentId: id, span: readSpan(fragment.get("span")) },
  };
}

/** The part after the path; `.` alone would keep an old question. */
export function writeAddress(path, question, strategy) {
  const search = new URLSearchParams();
  if (question) search.set("q", question);
  if (strategy !== DEFAULT_STRATEGY) search.set("strategy", strategy);
  return String(search) ? `${path}?${search}` : path;
}

/** The fragment that opens a document at a span. */
export function placeFragment(documentId, span) {
  return `#${new URLSearchParams({ document: documentId, span: `${span.start_char}-${span.end_char}` })}`;
}

function readSpan(text) {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? "");
  if (!found) return null;
  const [start, end] = [Number(found[1]), Number(found[2])];
  return start < end ? { start_char: start, end_char: end } : null;
}
