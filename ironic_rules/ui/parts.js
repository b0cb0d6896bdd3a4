// Small elements that several views have.

import {announce, el, fill, modal, newId, shown, when} from "./dom.js";
import {fromLink, request} from "./api.js";
import {writeJson} from "./json.js";
import {address, go} from "./router.js";
import {isTemporary, retry} from "./retry.js";

/** Return what went wrong, as an alert: the API's text, the pointers in it, when to try again.
 * @param {object} error as request() has it; only `text` is required. If it is temporary and has a `path`, `again` is
 *   also called by itself as soon as that path has another answer.
 * @param {function} again what "Try again" does; null: there is no such button */
export function notice(error, again = null) {
  const isRetried = again !== null && isTemporary(error);
  const made = el("div", {class: "notice bad", role: "alert"},
    el("p", {}, error.status > 0 && el("strong", {}, `${error.status} `), error.text,
      error.messageId && [" (", messageLink(error.messageId), ")"]),
    error.places?.length > 0 && el("p", {class: "dim"}, "At ", error.places.map((place) => [el("code", {}, place), " "])),
    error.retryAfter !== null && error.retryAfter !== undefined
      && el("p", {class: "dim"}, `The service asks to wait ${error.retryAfter} s.`),
    isRetried && el("p", {class: "dim"}, "It is also tried again by itself."),
    again && el("button", {onclick: () => again()}, "Try again"));
  if (isRetried) retry(made, error, again);
  return made;
}

/** Return a link from the id of a message to what to do. */
export function messageLink(id) {
  return el("a", {href: `./messages.html#${id}`, target: "_blank", title: "What to do"}, id);
}

/** Show what went wrong, as notice() does, in place of what is there; return whether anything has. */
export function showsError(place, error, again = null) {
  if (error) fill(place, notice(error, again));
  return Boolean(error);
}

/** Return a text for an empty list: why it is empty, and what fills it. Links and buttons may be among the children. */
export function empty(...children) {
  return el("p", {class: "empty"}, children);
}

/** Return an icon of vendor/icons.json. It is decoration: the text beside it, or the name of its button, says the same. */
export function icon(name) {
  return el("svg:svg", {class: "icon", "aria-hidden": "true"}, el("svg:use", {href: `vendor/icons.svg#${name}`}));
}

/** Return a skeleton of an answer that has not come: it keeps the height, so that nothing jumps; `text` is for screen readers. */
export function loading(text = "Loading …", lines = 3) {
  return el("div", {class: "skeleton", "aria-busy": "true", style: {"min-block-size": `${lines * 1.6}em`}}, el("span", {class: "unseen"}, text),
    Array.from({length: Math.max(1, Math.min(8, Math.floor(lines / 2)))}, () => el("i", {"aria-hidden": "true"})));
}

/** Return a table in a frame that scrolls sideways by itself.
 * @param {string} caption its name, for screen readers
 * @param {Array} columns texts, or {text, class, sorted: "ascending" | "descending" | null, sort: function}
 * @param {Array<Array>} rows cells: children of el, or {class, children} */
export function table(caption, columns, rows) {
  const names = columns.map((column) => (typeof column === "string" ? column : column.text));
  const label = (index) => (names[index]?.textContent ?? names[index]) || null;
  const head = columns.map((column) => {
    const {text, sort, sorted = null, ...others} = typeof column === "string" ? {text: column} : column;
    return el("th", {scope: "col", class: others.class, "aria-sort": sort ? sorted ?? "none" : null},
      sort ? el("button", {class: "sort", onclick: sort}, text,
        el("span", {"aria-hidden": "true"}, sorted === "ascending" ? " ▲" : sorted === "descending" ? " ▼" : "")) : text);
  });
  return scrolling(caption, el("table", {class: "rows"}, el("caption", {class: "unseen"}, caption), el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, index) =>
        cell !== null && typeof cell === "object" && !(cell instanceof Node) && !Array.isArray(cell)
          ? el("td", {class: cell.class, "data-label": label(index)}, cell.children) : el("td", {"data-label": label(index)}, cell)))))));
}

/** Return a frame in which something wide scrolls; keys reach it only while it does. */
function scrolling(label, ...children) {
  const frame = el("div", {class: "scroll", role: "group", "aria-label": label}, children);
  new ResizeObserver(() => {
    if (frame.scrollWidth > frame.clientWidth) frame.setAttribute("tabindex", "0");
    else frame.removeAttribute("tabindex");
  }).observe(frame);
  return frame;
}

/** Return the link to the next page of a list, which `to(marker)` is the address of; null for the last page. */
export function nextPage({next}, to) {
  return next ? el("p", {}, el("a", {class: "button", href: to(new URLSearchParams(fromLink(next).split("?")[1]).get("marker"))}, "Next page")) : null;
}

/** Return a section with a heading; the children are beneath it. */
export function section(title, ...children) {
  const id = newId("section");
  return el("section", {"aria-labelledby": id}, el("h2", {id}, title), children);
}

const KINDS = [[/fail|error/, "bad"], [/wait|ing$|hold/, "busy"], [/^(?:active|available|manageable)$/, "good"],
];

/** Return what a provision state is like: good, busy, bad or plain. */
export function kindOf(name) {
  return KINDS.find(([pattern]) => pattern.test(name ?? ""))?.[1] ?? "plain";
}

/** Return a provision state with a colour, which is never the only sign: the name is its text. */
export function state(name) {
  return el("span", {class: `state ${kindOf(name)}`}, name ?? "none");
}

/** Return a link to the page of a node. */
export function nodeLink(node) {
  return el("a", {href: address("node", node.uuid)}, node.name || node.uuid);
}

/** Return what a rule is called, as a link to it; `names` is a map from UUIDs. A deleted one has only its UUID. */
export function ruleLink(uuid, names) {
  const name = names.get(uuid);
  return name ? el("a", {href: address("rules", {text: name})}, name) : el("code", {}, uuid);
}

/** Return how long ago a time was, roughly: "3 min". The clock is the service's (`now`, in ms), not this computer's. */
function ago(iso, now) {
  const seconds = (now - Date.parse(iso)) / 1000;
  if (!iso || Number.isNaN(seconds)) return "";
  const [number, unit] = seconds < 90 ? [seconds, "s"] : seconds < 5400 ? [seconds / 60, "min"]
    : seconds < 172800 ? [seconds / 3600, "h"] : [seconds / 86400, "days"];
  return `${Math.max(0, Math.round(number))} ${unit}`;
}

/** Return how long ago a time was, with the exact time in its title; it follows the clock. */
export function relative(iso, now) {
  return iso ? el("time", {class: "relative", datetime: iso, title: when(iso).textContent, "data-offset": now - Date.now()},
    `${ago(iso, now)} ago`) : "";
}

setInterval(() => {
  for (const each of document.querySelectorAll("time.relative")) {
    const text = `${ago(each.dateTime, Date.now() + Number(each.dataset.offset))} ago`;
    if (each.textContent !== text) each.textContent = text;
  }
}, 15_000);

/** Return the time of an answer by the service's clock, in ms; without its header, by this computer's. */
export function timeOf(headers) {
  const told = Date.parse(headers.get("Date") ?? "");
  return Number.isNaN(told) ? Date.now() : told;
}

/** Return a button that copies a text, and says that it has. */
export function copyButton(text, label = "Copy", named = null) {
  return el("button", {class: "quiet", "aria-label": named && `${label} the ${named}`, onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      announce("Copied");
      button.textContent = "Copied";
    } catch {
      announce("The browser does not allow it");
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  }}, label);
}

/** Ask a question in a dialog; return a promise of true for `yes`. */
export function confirmed(question, yes, details = null) {
  return new Promise((resolve) => {
    let answer = false;
    modal(question, {closed: () => resolve(answer)},
      el("form", {method: "dialog", onsubmit: (event) => { answer = event.submitter?.value === "yes"; }}, details,
        el("div", {class: "buttons"}, el("button", {class: "primary", value: "yes"}, yes), el("button", {value: "no", autofocus: true}, "Cancel"))));
  });
}

/** Return a button of an action. With a `reason` why it cannot be used now it stays within reach, and says the reason.
 * @param {object} options `picture`: name of its icon; `reason`: null, or a text; `kind`: class of the button */
export function actionButton(text, {picture, reason = null, kind = null}, action) {
  return el("button", {class: kind, "aria-disabled": reason && "true", title: reason, onclick: (event) => {
    if (reason === null) action(event);
    else announce(reason);
  }}, icon(picture), text);
}

/** Return a value of JSON on one line, shortened. */
export function short(value, most = 120) {
  const text = shown(typeof value === "string" ? value : writeJson(value));
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Draw a part again, and leave the focus and the scrolling where they were, if what had them is still there. */
export function keepingFocus(place, draw) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const alike = focused && [...place.querySelectorAll(focused.tagName)];
  const sameOf = (element) => `${element.getAttribute("href") ?? ""} ${element.textContent}`;
  const mark = focused && sameOf(focused);
  const position = focused && alike.filter((each) => sameOf(each) === mark).indexOf(focused);
  const typed = focused?.matches("input, textarea") ? [focused.value, focused.selectionStart, focused.selectionEnd] : null;
  const scrolled = place.querySelector(".scroll")?.scrollLeft ?? 0;
  draw();
  if (scrolled) place.querySelector(".scroll")?.scrollTo({left: scrolled});
  if (focused && !focused.isConnected) {
    const again = [...place.querySelectorAll(focused.tagName)].filter((each) => sameOf(each) === mark);
    const found = again[position] ?? again[0];
    found?.focus({preventScroll: true});
    if (found && typed) {
      found.value = typed[0];
      if (typed[1] !== null) found.setSelectionRange(typed[1], typed[2]);
    }
  }
}

/** Ask, begin an operation on many nodes, and show its progress. */
export async function startOperation(question, details, yes, path, body) {
  if (!await confirmed(question, yes, el("p", {}, details))) return;
  const {json, error} = await request("POST", path, {body});
  if (error) modal("It was not begun", {}, notice(error), el("form", {method: "dialog"}, el("button", {class: "primary"}, "Close")));
  else go(address("operations", json.uuid));
}
