// Elements from plain calls. Data become text, never markup: nothing in this page sets innerHTML.

/** Characters that do not show, or that turn round what follows them: shown by their number. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const LINK = /^(?:#|\.{0,2}\/|https?:\/\/|[\w-]+(?:\/|$))/i;

/** Return a text with the characters that do not show as ⟨U+202E⟩. */
export function shown(text) {
  return String(text).replace(HIDDEN, (found) => `⟨U+${found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** Return an element.
 * @param {string} tag its name; "svg:path" is one of SVG
 * @param {object} attributes name -> value: null, undefined and false leave it out, true is an empty one, a function is
 *   a listener ("onclick"), `style` is an object of properties; any other value is converted to text
 * @param {...any} children nodes, texts, numbers, lists of these; null, undefined and false are left out */
export function el(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function" && name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("on")) throw new Error(`${name} must be a function`);
    else if (name === "style") for (const [key, text] of Object.entries(value)) made.style.setProperty(key, text);
    else if ((name === "href" || name === "src") && !LINK.test(value)) continue;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  put(made, children);
  return made;
}

/** Append children as `el` does. */
export function put(parent, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : shown(child));
  }
  return parent;
}

/** Replace the children. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  return put(parent, ...children);
}

let last = 0;

/** Return an id that no element has, for `for`, `aria-labelledby` and such. */
export function newId(stem = "id") {
  last += 1;
  return `${stem}-${last}`;
}

/** Show a dialog, with a title that is not null; return it. `closed` is called when it is closed. */
export function modal(title, {closed = () => {}, ...attributes}, ...children) {
  const id = newId("dialog");
  const made = el("dialog", {"aria-labelledby": title && id, ...attributes, onclose: () => { made.remove(); closed(); }},
    title && el("h2", {id}, title), children);
  document.body.append(made);
  made.showModal();
  return made;
}

/** Let screen readers say a text once. */
export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  live.textContent = shown(text);
}

/** Return a time as the reader's locale has it, the exact one in its title; "" for none. */
export function when(iso) {
  if (!iso) return "";
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return shown(iso);
  const text = date.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});
  return el("time", {datetime: iso, title: iso}, text);
}
