// An inventory as a tree with a search. Only the lines that can be seen are elements, so that 50,000 of them open and
// scroll at once.

import {announce, el, fill, newId} from "../dom.js";
import {short} from "../parts.js";
import {template, typeOf} from "./paths.js";

/** Pixels of a line: those of ".tree-line" in workbench.css. */
const HEIGHT = 24;
const AROUND = 12;
/** Levels that are open at first. */
const OPEN = 2;
/** Lines that a search shows at most. */
const MOST_FOUND = 5000;
/** Line feeds and other control characters stay on the line. */
const MAX_SHOWN = 300;

export class Tree {
  /**
   * @param {string} label its name, for screen readers
   * @param {function} picked called with (path, value) when a value is chosen
   */
  constructor(label, picked) {
    this._picked = picked;
    this._roots = {};
    this._toggled = new Map(); // the pointer of a value -> whether it is open, where the default is changed
    this._lines = [];
    this._current = 0;
    this._sought = "";
    this._id = newId("tree");
    this.search = el("input", {type: "search", placeholder: "Search names and values", "aria-label": `Search in ${label}`,
      spellcheck: "false", autocomplete: "off", oninput: () => this._seek(this.search.value),
      onkeydown: (event) => { if (event.key === "ArrowDown") { event.preventDefault(); this._scroller.focus(); } }});
    this._count = el("p", {class: "dim tree-count", role: "status"});
    this._space = el("div", {class: "tree-space", role: "presentation"});
    this._scroller = el("div", {class: "tree", role: "tree", tabindex: "0", "aria-label": label,
      onscroll: () => this._draw(), onkeydown: (event) => this._key(event), onclick: (event) => this._click(event),
      onfocus: () => this._draw()}, this._space);
    this._path = el("div", {class: "tree-path"});
    this.element = el("div", {class: "tree-box"}, el("div", {class: "tree-search"}, this.search), this._count,
      this._scroller, this._path);
    new ResizeObserver(() => this._draw()).observe(this._scroller);
  }

  /** Show other values: {inventory, plugin_data}. What was open and sought stays so. */
  show(roots) {
    this._roots = roots;
    this._current = 0;
    this._flatten();
  }

  _seek(text) {
    this._sought = text.trim().toLowerCase();
    this._current = 0;
    this._scroller.scrollTop = 0;
    this._flatten();
    if (this._sought) announce(this._count.textContent);
  }

  _flatten() {
    const lines = [];
    if (this._sought) this._found(lines);
    else {
      const add = (key, value, path, pointer, place, size) => {
        const isOpen = this._isOpen(value, path.length, pointer);
        lines.push({key, value, path, pointer, place, size, isOpen});
        if (isOpen) each(value, (name, below, number, count) => add(name, below, [...path, name], `${pointer}/${name}`, number, count));
      };
      each(this._roots, (name, value, number, count) => add(name, value, [name], `/${name}`, number, count));
    }
    this._lines = lines;
    this._space.style.blockSize = `${lines.length * HEIGHT}px`;
    this._current = Math.min(this._current, Math.max(lines.length - 1, 0));
    this._draw();
  }

  _isOpen(value, level, pointer) {
    if (value === null || typeof value !== "object") return null;
    return this._toggled.get(pointer) ?? level < OPEN;
  }

  /** Add the lines with what is sought, and the ones above them. */
  _found(lines) {
    let matches = 0;
    const words = this._sought.split(/\s+/);
    const look = (key, value, path, pointer, place, size, above) => {
      if (matches >= MOST_FOUND) return false;
      const isLeaf = value === null || typeof value !== "object";
      const text = `${above} ${key}`.toLowerCase();
      const own = isLeaf ? `${text} ${String(value).toLowerCase()}` : text;
      const isMatch = words.every((word) => own.includes(word)) && (isLeaf || String(key).toLowerCase().includes(words.at(-1)));
      const line = {key, value, path, pointer, place, size, isOpen: isLeaf ? null : true, isMatch};
      const before = lines.push(line);
      let isShown = isMatch;
      if (isMatch) matches += 1;
      if (!isLeaf) {
        each(value, (name, below, number, count) => {
          if (look(name, below, [...path, name], `${pointer}/${name}`, number, count, text)) isShown = true;
        });
        if (lines.length === before) line.isOpen = false;
      }
      if (!isShown) lines.length = before - 1;
      return isShown;
    };
    each(this._roots, (name, value, number, count) => look(name, value, [name], `/${name}`, number, count, ""));
    this._matches = matches;
  }

  _draw() {
    const first = Math.max(Math.floor(this._scroller.scrollTop / HEIGHT) - AROUND, 0);
    const count = Math.ceil((this._scroller.clientHeight || 400) / HEIGHT) + 2 * AROUND;
    const shown = this._lines.slice(first, first + count);
    const numbers = new Set(shown.map((_, number) => first + number));
    if (this._lines.length > 0 && !numbers.has(this._current)) numbers.add(this._current);
    this._space.replaceChildren(...[...numbers].sort((a, b) => a - b).map((number) => this._line(number)));
    const current = this._lines[this._current];
    if (current) this._scroller.setAttribute("aria-activedescendant", `${this._id}-${this._current}`);
    else this._scroller.removeAttribute("aria-activedescendant");
    this._count.textContent = this._sought
      ? `${this._matches >= MOST_FOUND ? `the first ${MOST_FOUND}` : this._matches} found`
      : `${this._lines.length} lines`;
    if (current !== this._told) this._tell(current);
    this._told = current;
  }

  _line(number) {
    const {key, value, path, isOpen, place, size, isMatch} = this._lines[number];
    const isLeaf = isOpen === null;
    const text = isLeaf ? JSON.stringify(value) : summary(value);
    return el("div", {
      class: `tree-line${number === this._current ? " current" : ""}${isMatch ? " match" : ""}`, role: "treeitem",
      id: `${this._id}-${number}`, "aria-level": path.length, "aria-posinset": place + 1, "aria-setsize": size,
      "aria-expanded": isLeaf ? null : String(isOpen), "aria-selected": String(number === this._current), "data-number": number,
      style: {"inset-block-start": `${number * HEIGHT}px`, "padding-inline-start": `${0.3 + (path.length - 1) * 0.9}rem`},
    },
    el("span", {class: "tree-toggle", "aria-hidden": "true"}, isLeaf ? "" : isOpen ? "▾" : "▸"),
    el("span", {class: "tree-key"}, short(String(key), 80)), el("span", {class: "dim"}, ": "),
    el("span", {class: isLeaf ? `tree-value ${typeOf(value)}` : "dim tree-value", "data-pick": isLeaf || null}, short(text, MAX_SHOWN)));
  }

  /** Show the whole path and value of the current line, and what can be done with it. */
  _tell(line) {
    if (!line) {
      fill(this._path, el("span", {class: "dim"}, this._sought ? "Nothing has these words." : "Nothing is shown."));
      return;
    }
    const written = template(line.path);
    fill(this._path,
      el("code", {}, written ?? line.pointer), el("span", {class: "dim"}, ` ${typeOf(line.value)} `),
      el("button", {disabled: written === null, onclick: () => this._picked(line.path, line.value)}, "Make a condition"));
  }

  _click(event) {
    const row = event.target.closest(".tree-line");
    if (!row) return;
    const number = Number(row.dataset.number);
    this._current = number;
    const line = this._lines[number];
    if (event.target.closest("[data-pick]")) this._picked(line.path, line.value);
    else if (line.isOpen !== null) this._toggle(line, !line.isOpen);
    this._draw();
  }

  _toggle(line, isOpen) {
    if (this._sought) return; // all that was found is open
    this._toggled.set(line.pointer, isOpen);
    this._flatten();
  }

  _key(event) {
    const page = Math.max(Math.floor(this._scroller.clientHeight / HEIGHT) - 1, 1);
    const line = this._lines[this._current];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key in moves) this._go(this._current + moves[event.key]);
    else if (event.key === "ArrowRight") {
      if (line.isOpen === false) this._toggle(line, true);
      else if (line.isOpen) this._go(this._current + 1);
    } else if (event.key === "ArrowLeft") {
      if (line.isOpen && !this._sought) this._toggle(line, false);
      else this._go(this._lines.findLastIndex((other, number) => number < this._current && other.path.length < line.path.length));
    } else if (event.key === "Enter" || event.key === " ") {
      if (line.isOpen === null || event.key === "Enter" && event.shiftKey) this._picked(line.path, line.value);
      else this._toggle(line, !line.isOpen);
    } else return;
    event.preventDefault();
  }

  _go(number) {
    this._current = Math.min(Math.max(number, 0), this._lines.length - 1);
    const top = this._current * HEIGHT;
    const {scrollTop, clientHeight} = this._scroller;
    if (top < scrollTop) this._scroller.scrollTop = top;
    else if (top + HEIGHT > scrollTop + clientHeight) this._scroller.scrollTop = top + HEIGHT - clientHeight;
    this._draw();
  }
}

function each(value, call) {
  if (Array.isArray(value)) value.forEach((below, number) => call(number, below, number, value.length));
  else {
    const entries = Object.entries(value);
    entries.forEach(([name, below], number) => call(name, below, number, entries.length));
  }
}

function summary(value) {
  const count = Array.isArray(value) ? value.length : Object.keys(value).length;
  return Array.isArray(value) ? `[${count}]` : `{${count}}`;
}
