// Keys that do something everywhere but in fields, and the list of them on "?". They can be switched off, for those who
// dictate.

import {el, modal} from "./dom.js";

const known = new Map(); // keys -> {text, action}
let pressed = "";
let enabled = true;

/** Add a shortcut until `signal` is aborted (without one: for ever, and no view can have it).
 * @param {string} keys one key, or two after each other: "/", "g f" */
export function shortcut(keys, text, action, signal) {
  if (known.get(keys)?.isKept) return;
  const entry = {text, action, isKept: signal === undefined};
  known.set(keys, entry);
  signal?.addEventListener("abort", () => { if (known.get(keys) === entry) known.delete(keys); });
}

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable], .cm-editor") !== null;
}

addEventListener("keydown", (event) => {
  const origin = event.composedPath()[0] ?? event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(origin)) return;
  if (document.querySelector("dialog[open]") || event.key.length !== 1) return;
  if (!enabled && event.key !== "?") return;
  const entry = known.get(`${pressed} ${event.key}`) ?? known.get(event.key);
  pressed = entry ? "" : event.key;
  if (entry) {
    event.preventDefault();
    entry.action();
  }
});

/** Show the list of shortcuts. */
export function showShortcuts() {
  const rows = [...known].map(([keys, {text}]) => el("tr", {},
    el("td", {}, keys.split(" ").map((key) => [el("kbd", {}, key), " "])), el("td", {}, text)));
  modal("Keys", {},
    el("table", {class: "keys"}, el("tbody", {}, rows)),
    el("label", {class: "choice"}, el("input", {
      type: "checkbox", checked: enabled, onchange: (event) => { enabled = event.target.checked; }}),
      "Use these keys"),
    el("form", {method: "dialog"}, el("button", {class: "primary", autofocus: true}, "Close")));
}
