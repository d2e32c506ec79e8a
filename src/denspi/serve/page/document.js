// A document as elements, opened at a span. Draws; fetches nothing.

import { capitalized, make, unitsOf } from "./text.js";

/**
 * Title, what is known about the document, and its text with `span` marked. A span that leaves the text, as
 * in an old link to a document that was changed since, marks nothing.
 */
export function drawDocument(found, span) {
  const pieces = piecesOf(found);
  const body = make("div", { className: "text" });
  let unit = 0;
  let codePoint = 0;
  for (const piece of pieces) {
    // Going on from the last place keeps a long document linear.
    const start = unitsOf(found.text, piece.start_char, unit, codePoint);
    const end = unitsOf(found.text, piece.end_char, start, piece.start_char);
    const text = found.text.slice(start, end);
    if (text.trim()) body.append(drawParagraph(text, piece, span));
    [unit, codePoint] = [end, piece.end_char];
  }
  return [
    make("h1", { dir: "auto", tabIndex: -1 }, found.title || found.id),
    drawAbout(found),
    body,
  ].filter(Boolean);
}

/** In place of a document that the server does not give, the one line that says why. */
export function drawNoDocument(problem) {
  const heading = problem.status === 404 ? "No document" : "The document cannot be shown";
  const why = make("p", { className: "quiet" }, capitalized(problem.message));
  return [make("h1", { tabIndex: -1 }, heading), why];
}

function drawParagraph(text, piece, span) {
  const paragraph = make("p", { dir: "auto" });
  const from = Math.max(span?.start_char ?? 0, piece.start_char);
  const to = Math.min(span?.end_char ?? 0, piece.end_char);
  if (span === null || from >= to) {
    paragraph.textContent = text;
    return paragraph;
  }
  const start = unitsOf(text, from - piece.start_char);
  const end = unitsOf(text, to - piece.start_char, start, from - piece.start_char);
  paragraph.classList.add("here");
  paragraph.append(text.slice(0, start), make("mark", {}, text.slice(start, end)), text.slice(end));
  return paragraph;
}

/** The paragraphs and whatever stands between them (headings, for one), in order and without a gap. */
function piecesOf(found) {
  const length = [...found.text].length;
  const pieces = [];
  let reached = 0;
  for (const { start_char, end_char } of found.paragraphs ?? []) {
    if (start_char > reached) pieces.push({ start_char: reached, end_char: start_char });
    pieces.push({ start_char, end_char });
    reached = end_char;
  }
  if (reached < length) pieces.push({ start_char: reached, end_char: length });
  return pieces;
}

function drawAbout(found) {
  const facts = Object.entries(found.metadata ?? {}).map(([name, value]) => [
    name,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  if (found.id !== found.title) facts.unshift(["id", found.id]);
  // Where the server keeps its files is nobody's business.
  if (found.source) facts.push(["source", found.source.split(/[\\/]/).at(-1) || found.source]);
  if (!facts.length) return null;
  const rows = facts.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", { dir: "auto" }, value)),
  );
  return make("dl", { className: "about" }, ...rows);
}
