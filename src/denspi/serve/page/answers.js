// A reply as elements: the best answer large, the others below, what it took at the end. Draws; asks nothing.

import { placeFragment } from "./address.js";
import { counted, grouped, make, marked, milliseconds, percent, shortened } from "./text.js";

const LONG_ANSWER_CHARS = 60;
const UNSURE_BELOW = 0.35;
const PARTS = [
  ["start", "start", "how well the question fits where the phrase begins"],
  ["end", "end", "how well it fits where the phrase ends"],
  ["coherency", "coherency", "whether this start and this end belong together"],
  ["document", "document words", "words that question and document share"],
  ["paragraph", "paragraph words", "words that question and paragraph share"],
];

export const EMPTY = "The index is empty. Add documents with denspi add.";

/** What stands in place of the answers where there are none. */
export function drawNothingFound(reply, isEmpty = false) {
  const searched = reply.documents_visited
    ? "Nothing in these documents is close enough to the question."
    : "There is nothing to search: no document fits.";
  const why = isEmpty ? EMPTY : searched;
  const said = [make("p", { className: "nothing" }, "No answer"), make("p", { className: "quiet" }, why)];
  return [drawReadAs(reply), ...said, drawTook(reply)].filter(Boolean);
}

/** All of a reply. `tookMs` is what the reader waited for, the way to the server included. */
export function drawReply(reply, tookMs) {
  const [best, ...others] = reply.answers;
  const values = reply.answers.flatMap((answer) => PARTS.map(([name]) => answer.parts[name]));
  // One scale for all, so that bars compare.
  const least = Math.min(0, ...values);
  const all = { least, most: Math.max(0, ...values), sharedTitles: sharedTitles(reply.answers) };
  const drawn = [drawReadAs(reply), drawBest(best, all)].filter(Boolean);
  if (others.length) {
    drawn.push(
      make("h2", {}, "Other answers"),
      make("ol", { className: "others", start: 2 }, ...others.map((answer) => drawOther(answer, all))),
    );
  }
  return [...drawn, drawTook(reply, tookMs)];
}

/** One line for those who listen instead of looking. */
export function inWords(reply) {
  const readAs = reply.read_as ? `Read as: ${reply.read_as}. ` : "";
  if (!reply.answers.length) return `${readAs}No answer.`;
  const [best] = reply.answers;
  const more = reply.answers.length - 1;
  const others = more ? ` ${counted(more, "other answer")}.` : "";
  const unsure = isUnsure(best) ? "Not sure: " : "";
  return `${readAs}${unsure}${shortened(best.text)}. ${sureness(best)}From ${shortened(nameOf(best))}.${others}`;
}

/** What the question was taken for, where a slip in it was repaired: nobody should have to wonder. */
function drawReadAs(reply) {
  if (!reply.read_as) return null;
  return make("p", { className: "read-as" }, "Read as ", make("q", { dir: "auto" }, reply.read_as));
}

/** Titles that several of the documents have: they need their ids beside them. */
function sharedTitles(answers) {
  const found = answers.flatMap((answer) => [answer, ...answer.evidence]);
  const byTitle = grouped(found, (each) => each.title);
  const isShared = ([title, places]) => title && new Set(places.map((each) => each.document_id)).size > 1;
  return new Set([...byTitle].filter(isShared).map(([title]) => title));
}

function drawBest(answer, all) {
  const size = [...answer.text].length > LONG_ANSWER_CHARS ? "best-text long" : "best-text";
  return make(
    "article",
    { className: isUnsure(answer) ? "best unsure" : "best", "aria-label": "Best answer" },
    isUnsure(answer) ? make("p", { className: "doubt" }, "Not sure:") : null,
    make("h1", { className: size, dir: "auto" }, link(answer, answer.text, "answer-link")),
    drawSentence(answer),
    drawSource(answer, all),
    drawEvidence(answer, all),
    drawWhy(answer, all),
  );
}

function drawOther(answer, all) {
  return make(
    "li",
    {},
    make("h3", { dir: "auto" }, link(answer, answer.text, "answer-link")),
    drawSentence(answer),
    drawSource(answer, all),
    drawWhy(answer, all),
  );
}

/** The sentence of an answer or of its evidence, with its own place marked, however often the words occur. */
function drawSentence(found, tag = "p") {
  const from = found.context_span.start_char;
  const parts = marked(found.context, found.span.start_char - from, found.span.end_char - from);
  return make(tag, { className: "sentence", dir: "auto" }, ...parts);
}

function drawSource(answer, all) {
  const title = link(answer, nameOf(answer), "title");
  title.tabIndex = -1; // the answer itself leads to the same place
  const place = [make("bdi", {}, title), drawId(answer, all), ` ${paragraphOf(answer)}`];
  return make("p", { className: "source" }, drawConfidence(answer.confidence), " ", ...place);
}

/** Which of several documents of the same title. */
function drawId(found, all) {
  return all.sharedTitles.has(found.title) ? make("bdi", { className: "id" }, found.document_id) : null;
}

function drawConfidence(confidence) {
  if (confidence === null) return null;
  const level = confidence >= 0.7 ? "high" : confidence >= UNSURE_BELOW ? "middle" : "low";
  const bar = make("span", { className: "meter", "aria-hidden": "true" }, make("span"));
  bar.firstChild.style.width = `${100 * confidence}%`;
  const meaning = "How likely the answer is right, by its lead over the next best";
  const properties = { className: `confidence ${level}`, title: meaning };
  return make("span", properties, bar, `${percent(confidence)} sure`);
}

/** Other documents that say the same, and then other places of the answer's own. */
function drawEvidence(answer, all) {
  if (!answer.evidence.length) return null;
  const others = grouped(answer.evidence, (found) => found.document_id);
  const own = others.get(answer.document_id) ?? [];
  others.delete(answer.document_id);
  const inOthers = others.size ? `in ${counted(others.size, "other document")}` : "";
  const inOwn = own.length ? `elsewhere in this ${others.size ? "one" : "document"}` : "";
  return make(
    "section",
    { className: "evidence" },
    make("h2", {}, `Also ${[inOthers, inOwn].filter(Boolean).join(", and ")}`),
    make("ul", {}, ...[...others.values(), own].flatMap((places) => drawPlaces(places, answer, all))),
  );
}

/** A document is named once; its other places follow by their paragraphs. */
function drawPlaces(places, answer, all) {
  return places.map((found, number) => {
    const name = found.document_id === answer.document_id ? "This document" : nameOf(found);
    const title = number ? link(found, paragraphOf(found), "title more") : link(found, name, "title");
    const id = number || found.document_id === answer.document_id ? null : drawId(found, all);
    return make("li", {}, make("bdi", {}, title), id, " ", drawSentence(found, "span"));
  });
}

function drawWhy(answer, all) {
  const rows = PARTS.flatMap(([name, label, meaning]) => {
    const value = answer.parts[name];
    const number = make("span", { className: "number" }, signed(value));
    return [make("dt", { title: meaning }, label), make("dd", {}, drawBar(value, all), number)];
  });
  const words = (answer.matches ?? []).map((match) => make("li", { dir: "auto" }, match.ngram));
  return make(
    "details",
    { className: "why" },
    make("summary", {}, `Why · score ${answer.score.toFixed(1)}`),
    make("dl", { className: "parts" }, ...rows),
    words.length ? make("ul", { className: "matches", "aria-label": "Words in common" }, ...words) : null,
  );
}

/** To the right of zero, or to the left of it. */
function drawBar(value, { least, most }) {
  const share = (part) => `${(100 * part) / (most - least || 1)}%`;
  const className = value < 0 ? "bar minus" : "bar";
  const bar = make("span", { className, "aria-hidden": "true" }, make("span"));
  bar.firstChild.style.marginLeft = share(Math.min(0, value) - least);
  bar.firstChild.style.width = share(Math.abs(value));
  return bar;
}

/** Each stage is a shade, in the bar and beside its name. */
function drawTook(reply, tookMs) {
  const stages = Object.entries(reply.stages_ms);
  const all = stages.reduce((sum, [, ms]) => sum + ms, 0) || 1;
  const shadeOf = (number) => String(1 - (0.7 * number) / Math.max(1, stages.length - 1));
  const pieces = stages.map(([, ms], number) => {
    const piece = make("span");
    piece.style.flexGrow = String(ms / all);
    piece.style.opacity = shadeOf(number);
    return piece;
  });
  const names = stages.map(([stage, ms], number) => {
    const swatch = make("span", { className: "swatch", "aria-hidden": "true" });
    swatch.style.opacity = shadeOf(number);
    return make("span", {}, swatch, `${stage} ${milliseconds(ms)} ms`);
  });
  const isProven = (reply.certificate?.proven_phrases ?? 0) > 0 && reply.answers.length > 0;
  return make(
    "footer",
    { className: "took" },
    make("span", { className: "stages", "aria-hidden": "true" }, ...pieces),
    make("p", {}, ...names),
    make(
      "p",
      {},
      make("strong", {}, `${milliseconds(reply.latency_ms ?? all)} ms`),
      tookMs === undefined ? null : make("span", {}, `seen after ${milliseconds(tookMs)} ms`),
      make("span", {}, reply.strategy.replace("_", " ")),
      make("span", {}, `${counted(reply.documents_visited, "document")} visited`),
      isProven ? make("span", {}, "the best of the whole index, proven") : null,
    ),
  );
}

/** Without a direction of its own: that of the heading around it would not look inside. */
function link(answer, text, className) {
  return make("a", { href: placeFragment(answer.document_id, answer.span), className }, shortened(text));
}

function paragraphOf(found) {
  return `paragraph\u00a0${found.paragraph + 1}`;
}

function nameOf(found) {
  return found.title || found.document_id;
}

function isUnsure(answer) {
  return answer.confidence !== null && answer.confidence < UNSURE_BELOW;
}

function sureness(answer) {
  return answer.confidence === null ? "" : `${percent(answer.confidence)} sure. `;
}

function signed(value) {
  return value < 0 ? `−${Math.abs(value).toFixed(1)}` : value.toFixed(1);
}
