// The page: ties the input, the address and the keys to what is drawn. Owns which view is shown.
// No word of a reply or a document becomes anything but text (see text.js); nothing is asked of another host.

import { DEFAULT_STRATEGY, readAddress, writeAddress } from "./address.js";
import { drawNothingFound, drawReply, EMPTY, inWords } from "./answers.js";
import { Asker, isQuestion } from "./asking.js";
import { drawDocument, drawNoDocument } from "./document.js";
import { fetchJson, Fetching } from "./fetching.js";
import { capitalized, counted } from "./text.js";
import { Waiting } from "./waiting.js";

const SHOWN_ANSWERS = 5;
const SPOKEN_AFTER_MS = 900; // a voice that reads out every prefix helps nobody
const ADDRESS_AFTER_MS = 400; // a new address for every key, and Safari throws at the hundredth within 10 s (once: 30)

const named = [...document.querySelectorAll("[id]")];
const view = Object.fromEntries(named.map((element) => [element.id, element]));
const api = new URL("api/", document.baseURI);
const shown = { openedBy: null, scrollY: 0, speakTimer: 0, openWhys: [], isEmpty: false };
const waiting = new Waiting(view);
const asker = new Asker(answersUrl, {
  ...waiting.reports("answers"),
  reply: showReply,
  refused: showProblem,
  idle: showNothing,
});
let addressTimer = 0; // until the address has what was typed
let loading = null; // the document that is on its way
let headingWatch = null; // of the document that is shown
let watchedHeading = null;

function answersUrl({ question, strategy }) {
  const url = new URL("answers", api);
  url.search = new URLSearchParams({ question, k: SHOWN_ANSWERS, strategy, explain: true });
  return url;
}

/** As a parameter: in a path the ids "." and ".." would be steps. */
function documentUrl(documentId) {
  const url = new URL("documents", api);
  url.search = new URLSearchParams({ id: documentId });
  return url;
}

function asked() {
  const chosen = view.ask.elements.strategy.value || DEFAULT_STRATEGY;
  return { question: view.question.value.trim(), strategy: chosen };
}

// --- what is shown

function showReply(reply, { question }, tookMs) {
  waiting.set("answers");
  const drawn = reply.answers.length ? drawReply(reply, tookMs) : drawNothingFound(reply, shown.isEmpty);
  replaceAnswers(drawn);
  view.answers.dataset.question = question;
  shown.openedBy = null;
  clearTimeout(shown.speakTimer);
  shown.speakTimer = setTimeout(() => { view.said.textContent = inWords(reply); }, SPOKEN_AFTER_MS);
  showAnswersOrDocument();
}

/** A reader who looks for reasons looks for those of the next answers too; and the best of them must be seen. */
function replaceAnswers(drawn) {
  const before = [...view.answers.querySelectorAll("details")];
  if (before.length) shown.openWhys = before.map((each) => each.open);
  view.answers.replaceChildren(...drawn);
  view.answers.querySelectorAll("details").forEach((each, number) => {
    each.open = shown.openWhys[number] ?? false;
  });
  if (!readAddress(location.href).place) scrollTo(0, 0);
}

function showProblem({ message }) {
  clearTimeout(shown.speakTimer);
  view.answers.replaceChildren();
  waiting.set("answers", { line: capitalized(message), isError: true });
  showAnswersOrDocument();
}

function showNothing() {
  waiting.set("answers");
  clearTimeout(shown.speakTimer);
  view.said.textContent = "";
  view.answers.replaceChildren();
  shown.openWhys = [];
  showAnswersOrDocument();
}

/** A document takes the place of the answers once it is there. */
function showAnswersOrDocument() {
  const { question } = asked();
  const isOpen = readAddress(location.href).place !== null;
  const isReading = isOpen && Boolean(view.document.firstChild);
  const isAnswered = Boolean(view.answers.firstChild);
  view.document.hidden = view.way.hidden = !isReading;
  view.strategies.hidden = isReading;
  view.answers.hidden = isReading || !isAnswered;
  view.welcome.hidden = isOpen || isAnswered || isQuestion(question) || !view.notice.hidden;
  document.body.classList.toggle("asked", isOpen || isQuestion(question));
  if (!isReading) document.title = question ? `${question} · denspi` : "denspi";
}

// --- documents

async function openDocument({ documentId, span }) {
  loading?.drop();
  const fetching = new Fetching(documentUrl(documentId), waiting.reports("document"));
  loading = fetching;
  const [found, problem] = await fetching.json().then(
    (document) => [document, null],
    (fault) => [null, fault],
  );
  if (loading !== fetching) return;
  loading = null;
  waiting.set("document");
  if (problem) showDocument(drawNoDocument(problem), documentId);
  else showDocument(drawDocument(found, span), found.title || documentId);
}

/** The address without the document. */
function answersAddress() {
  return location.pathname + location.search;
}

function showDocument(drawn, title) {
  if (!view.answers.hidden) shown.scrollY = scrollY;
  view.document.replaceChildren(...drawn);
  view.back.href = answersAddress();
  view.title.textContent = title;
  document.title = `${title} · denspi`;
  showAnswersOrDocument();
  const heading = view.document.querySelector("h1");
  heading.focus({ preventScroll: true });
  watchHeading(heading);
  const mark = view.document.querySelector("mark");
  if (mark) mark.scrollIntoView({ block: "center" });
  else scrollTo(0, 0);
}

/** The bar above has the title where the heading itself is out of sight. */
function watchHeading(heading) {
  const rootMargin = `-${view.way.getBoundingClientRect().bottom}px 0px 0px`;
  const show = ([{ isIntersecting }]) => view.way.classList.toggle("titled", !isIntersecting);
  watchedHeading = heading;
  headingWatch?.disconnect();
  headingWatch = new IntersectionObserver(show, { rootMargin });
  headingWatch.observe(heading);
}

function closeDocument() {
  const wasReading = !view.document.hidden;
  dropDocument();
  showAnswersOrDocument();
  if (!wasReading) return;
  scrollTo(0, shown.scrollY);
  const link = [...view.answers.querySelectorAll("a")].find((each) => each.hash === shown.openedBy);
  (link ?? view.question).focus({ preventScroll: true });
}

function dropDocument() {
  loading?.drop();
  loading = null;
  waiting.set("document");
  view.document.replaceChildren();
}

/** Back where the answers are what came before; a shared link to a document has nothing before it. */
function goBack() {
  if (history.state?.fromAnswers) history.back();
  else {
    history.replaceState(null, "", answersAddress());
    followAddress();
  }
}

// --- the address

function followAddress() {
  clearTimeout(addressTimer); // of an address that has been left
  addressTimer = 0;
  const { question, strategy, place } = readAddress(location.href);
  if (question.trim() !== view.question.value.trim()) view.question.value = question;
  const choice = [...view.ask.elements.strategy].find((each) => each.value === strategy);
  if (choice) choice.checked = true;
  asker.ask(asked(), true);
  if (place) openDocument(place);
  else closeDocument();
}

function keepAddress() {
  // Leaving a document by typing is a step that Back undoes; typing on is not.
  if (readAddress(location.href).place) {
    history.pushState(null, "", askedAddress());
    dropDocument();
    scrollTo(0, 0);
  } else {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(settleAddress, ADDRESS_AFTER_MS);
  }
}

/** What was typed is in the address before a step is taken from there. */
function settleAddress() {
  if (!addressTimer) return;
  clearTimeout(addressTimer);
  addressTimer = 0;
  history.replaceState(history.state, "", askedAddress());
}

function askedAddress() {
  const { question, strategy } = asked();
  return writeAddress(location.pathname, question, strategy);
}

// --- what people do

view.ask.addEventListener("input", () => {
  document.body.classList.remove("still");
  keepAddress();
  asker.ask(asked());
  showAnswersOrDocument();
});

view.ask.addEventListener("submit", (event) => {
  event.preventDefault();
  if (readAddress(location.href).place) return goBack();
  const isAnswered = !asker.isWaiting && view.answers.dataset.question === asked().question;
  const best = view.answers.querySelector(".answer-link");
  if (isAnswered && best) best.click();
  else asker.ask(asked(), true);
});

view.back.addEventListener("click", (event) => {
  if (opensElsewhere(event)) return;
  event.preventDefault();
  goBack();
});

view.main.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  settleAddress();
  if (!link || opensElsewhere(event)) return;
  event.preventDefault();
  shown.openedBy = link.hash;
  // Another answer, chosen while a document is on its way, takes its place.
  if (loading) history.replaceState(history.state, "", link.hash);
  else history.pushState({ fromAnswers: true }, "", link.hash);
  followAddress();
});

function opensElsewhere(event) {
  return event.ctrlKey || event.metaKey || event.shiftKey || Boolean(event.button);
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return; // these keys choose a character
  const isTyping = event.target === view.question;
  const isHeld = event.ctrlKey || event.metaKey;
  const isSlash = event.key === "/" && !isTyping && !isHeld && !event.altKey;
  if (isSlash || (event.key.toLowerCase() === "k" && isHeld)) {
    event.preventDefault();
    view.question.focus();
    view.question.select();
  } else if (event.key === "Escape") {
    event.preventDefault();
    if (readAddress(location.href).place) goBack();
    else if (!isTyping) view.question.focus();
    else clearQuestion();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    // The strategies have arrows of their own, and so have those who select or scroll with a second key.
    const isOurs = !isHeld && !event.altKey && !event.shiftKey && !event.target.matches("input[type=radio]");
    if (view.answers.hidden || !isOurs) return;
    if (moveFocus(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
  }
});

function clearQuestion() {
  view.question.value = "";
  view.ask.dispatchEvent(new Event("input"));
  view.question.focus();
}

/** Through the input and the answers below it. */
function moveFocus(step) {
  const links = [view.question, ...view.answers.querySelectorAll(".answer-link")];
  const focused = document.activeElement;
  const isAt = (each) => each === focused || each.closest("li, article")?.contains(focused);
  const at = Math.max(0, links.findIndex(isAt));
  const next = links[Math.min(links.length - 1, Math.max(0, at + step))];
  if (next === document.activeElement) return false;
  next.focus({ preventScroll: true });
  next.closest("li, article, header")?.scrollIntoView({ block: "nearest" });
  return true;
}

view.clear.addEventListener("click", clearQuestion);
view.skip.addEventListener("click", (event) => {
  event.preventDefault(); // the fragment names the document that is open
  view.main.focus();
});
addEventListener("popstate", followAddress);
addEventListener("online", () => {
  asker.hurry();
  loading?.tryNow();
});
// The header is still on its way up when a document comes quickly: where it ends decides what is out of sight.
new ResizeObserver(() => {
  if (watchedHeading?.isConnected) watchHeading(watchedHeading);
}).observe(document.querySelector("header"), { box: "border-box" });
history.scrollRestoration = "manual";
document.body.classList.add("still"); // who follows a link has not seen the header anywhere else
followAddress();
fetchJson(new URL("readyz", document.baseURI))
  .then(({ documents, words }) => {
    shown.isEmpty = documents === 0;
    if (shown.isEmpty) view.welcome.firstElementChild.textContent = EMPTY;
    else view.size.textContent = `${counted(documents, "document")}, ${counted(words, "word")}. `;
  })
  .catch(() => {}); // the page works without knowing how much there is
