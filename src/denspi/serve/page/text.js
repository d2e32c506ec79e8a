// Texts and elements. Owns how a string of a stranger gets into the page: as a text node, never as HTML.
// Never fetches anything.

const LONGEST_SHOWN_CHARS = 300;

/** An element with these properties or attributes (`aria-label`) and children; strings become text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Spans count characters as Python does, by code points; JavaScript counts UTF-16 units. */
export function unitsOf(text, codePoints, fromUnit = 0, fromCodePoint = 0) {
  let unit = fromUnit;
  for (let seen = fromCodePoint; seen < codePoints && unit < text.length; seen += 1) {
    unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
  }
  return unit;
}

/** What stands before, in and after the span `startChar` to `endChar` of `text`. */
export function cut(text, startChar, endChar) {
  const start = unitsOf(text, startChar);
  const end = unitsOf(text, endChar, start, startChar);
  return [text.slice(0, start), text.slice(start, end), text.slice(end)];
}

/** A text with one span marked, as a list of children. */
export function marked(text, startChar, endChar, properties = {}) {
  const [before, inside, after] = cut(text, startChar, endChar);
  return [before, make("mark", properties, shortened(inside)), after].filter((part) => part !== "");
}

/** The beginning of what would fill the page: one word may be a picture in base64; a title, a chapter. */
export function shortened(text) {
  const [shown, , rest] = cut(text, LONGEST_SHOWN_CHARS, LONGEST_SHOWN_CHARS);
  return rest ? `${shown}…` : text;
}

/** A map of keys to lists of items; `Map.groupBy`, for phones that stay with a browser of 2022. */
export function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** What a server says in one line, as a sentence begins. */
export function capitalized(line) {
  return line.charAt(0).toUpperCase() + line.slice(1);
}

/** "1 document", "2,000 documents". */
export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Milliseconds to two digits that mean something: <0.1, 0.4, 3.1, 27, 1,204. */
export function milliseconds(ms) {
  if (ms < 0.05) return "<0.1";
  return ms < 10 ? ms.toFixed(1) : Math.round(ms).toLocaleString("en");
}

/** A probability in whole percent; 0 and 100 are kept for what is certain, which nothing is. */
export function percent(share) {
  if (share < 0.01) return "<1%";
  return share > 0.99 ? ">99%" : `${Math.round(100 * share)}%`;
}
