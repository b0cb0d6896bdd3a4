// A tree of any JSON: only the rows in sight are elements, so that 50,000 lines open and scroll as ten do.

import {announce, el, fill, newId, put, shown} from "./dom.js";
import {isNumber, writeJson} from "./json.js";

const ROW = 22; // px; style.css has it, too
const BEYOND = 20; // rows above and below the visible ones
const LONGEST = 400; // characters of a value in its row; all of it is shown below
const MOST_FOUND = 2000;

/** Return a searchable tree.
 * @param {any} value JSON
 * @param {object} options `label`: its name; `root`: the name that paths begin with; `actions(path, value)`: elements
 *   that are shown beside the chosen value, `path` is a list of keys; `pick(path, value)`: what a click on a value
 *   does, or Enter */
export function tree(value, {label, root = "", actions = () => [], pick = null} = {}) {
  const id = newId("tree");
  let rows = children(value, null);
  if (rows.length <= 40) rows = rows.flatMap((row) => (isOpenable(row.value) ? open(row) : [row]));
  let chosen = 0;
  let isChosen = false;
  let found = [];
  let at = -1;

  const space = el("div", {class: "tree-space"});
  const box = el("div", {class: "tree", role: "tree", tabindex: "0", "aria-label": label, onkeydown: press, onclick: click,
    onscroll: () => requestAnimationFrame(draw)}, space);
  const chosenPath = el("code", {});
  const chosenValue = el("pre", {class: "tree-value", tabindex: "0", role: "group", "aria-label": "The chosen value"});
  const chosenActions = el("span", {class: "buttons-inline"});
  const count = el("span", {class: "dim", role: "status"});
  const search = el("input", {type: "search", class: "grow", "aria-label": `Search in ${label}`, placeholder: "Search names and values",
    oninput: look, onkeydown: (event) => {
      if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
      if (event.key === "ArrowDown") { event.preventDefault(); box.focus(); }
    }});
  const element = el("div", {class: "tree-frame"},
    el("div", {class: "bar"}, search,
      el("button", {onclick: () => step(-1), "aria-label": "Previous hit"}, "↑"),
      el("button", {onclick: () => step(1), "aria-label": "Next hit"}, "↓"), count,
      el("button", {class: "quiet", onclick: openAll}, "Open all"),
      el("button", {class: "quiet", onclick: closeAll}, "Close all")),
    box,
    el("div", {class: "tree-chosen"}, el("div", {class: "bar"}, chosenPath, chosenActions), chosenValue));

  function children(of, parent) {
    const entries = Array.isArray(of) ? of.map((item, index) => [index, item]) : Object.entries(of ?? {});
    return entries.map(([key, item], index) => ({key, value: item, parent, open: false, level: (parent?.level ?? 0) + 1,
      place: index + 1, of: entries.length}));
  }

  function open(row) {
    row.open = true;
    return [row, ...children(row.value, row)];
  }

  function path(row) {
    const keys = [];
    for (let each = row; each; each = each.parent) keys.unshift(each.key);
    return keys;
  }

  function endOf(index) {
    const {level} = rows[index];
    let end = index + 1;
    while (end < rows.length && rows[end].level > level) end += 1;
    return end;
  }

  function toggle(index, wanted = !rows[index].open) {
    const row = rows[index];
    if (!isOpenable(row.value) || row.open === wanted) return;
    if (wanted) rows = [...rows.slice(0, index), ...open(row), ...rows.slice(index + 1)];
    else {
      rows = [...rows.slice(0, index + 1), ...rows.slice(endOf(index))];
      row.open = false;
    }
    draw();
  }

  function openAll() {
    const all = [];
    const add = (row) => {
      all.push(row);
      if (!isOpenable(row.value)) return;
      row.open = true;
      for (const child of children(row.value, row)) add(child);
    };
    for (const row of rows.filter((each) => each.level === 1)) add(row);
    rows = all;
    choose(0);
  }

  function closeAll() {
    rows = rows.filter((row) => row.level === 1);
    for (const row of rows) row.open = false;
    choose(0);
  }

  /** Open what leads to a path, and return its row's number. */
  function reveal(keys) {
    let index = -1;
    for (let depth = 0; depth < keys.length; depth += 1) {
      if (index >= 0) toggle(index, true);
      index += 1;
      while (rows[index].key !== keys[depth]) index = endOf(index);
    }
    return index;
  }

  function look() {
    const wanted = search.value.trim().toLowerCase();
    found = [];
    at = -1;
    const visit = (of, keys) => {
      for (const [key, item] of Array.isArray(of) ? of.map((each, index) => [index, each]) : Object.entries(of)) {
        if (found.length >= MOST_FOUND) return;
        const here = [...keys, key];
        const isLeaf = !isOpenable(item);
        if (String(key).toLowerCase().includes(wanted) || (isLeaf && String(item).toLowerCase().includes(wanted))) found.push(here);
        if (!isLeaf) visit(item, here);
      }
    };
    if (wanted && isOpenable(value)) visit(value, []);
    if (found.length > 0) step(1);
    else {
      count.textContent = wanted ? "no hit" : "";
      draw();
    }
  }

  function step(by) {
    if (found.length === 0) return;
    at = (at + by + found.length) % found.length;
    count.textContent = `${at + 1} of ${found.length}${found.length >= MOST_FOUND ? "+" : ""}`;
    choose(reveal(found[at]));
  }

  function choose(index) {
    chosen = Math.max(0, Math.min(rows.length - 1, index));
    isChosen = true;
    const top = chosen * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight + ROW;
    draw();
    const row = rows[chosen];
    if (!row) return;
    const keys = path(row);
    fill(chosenPath, [root, ...keys].filter((key) => key !== "").join("."));
    const text = typeof row.value === "string" ? row.value : writeJson(row.value, 1);
    fill(chosenValue, text.length > 20000 ? `${text.slice(0, 20000)}… (${text.length} characters)` : text);
    fill(chosenActions, actions(keys, row.value));
  }

  function click(event) {
    const target = event.target.closest("[data-row]");
    if (!target) return;
    const index = Number(target.dataset.row);
    choose(index);
    if (pick && event.target.closest("[data-pick]")) pick(path(rows[index]), rows[index].value);
    else toggle(index);
  }

  function press(event) {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const row = rows[chosen];
    const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length};
    if (event.ctrlKey || event.metaKey || event.altKey || !row) return;
    if (event.key in moves) choose(chosen + moves[event.key]);
    else if (event.key === "ArrowRight") {
      if (isOpenable(row.value) && !row.open) toggle(chosen, true);
      else if (row.open && rows[chosen + 1]?.parent === row) choose(chosen + 1);
    } else if (event.key === "ArrowLeft") {
      if (row.open) toggle(chosen, false);
      else if (row.parent) choose(rows.indexOf(row.parent));
    } else if (pick && event.key === "Enter" && !isOpenable(row.value)) pick(path(row), row.value);
    else if (event.key === "Enter" || event.key === " ") toggle(chosen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - BEYOND);
    const last = Math.min(rows.length, Math.ceil((box.scrollTop + (box.clientHeight || 600)) / ROW) + BEYOND);
    space.style.setProperty("block-size", `${rows.length * ROW}px`);
    const wanted = search.value.trim().toLowerCase();
    const visible = [];
    for (let index = first; index < last; index += 1) visible.push(line(rows[index], index, wanted));
    space.replaceChildren(...visible);
    if (chosen >= first && chosen < last) box.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function line(row, index, wanted) {
    const openable = isOpenable(row.value);
    return el("div", {class: `tree-row${index === chosen ? " chosen" : ""}`, role: "treeitem", id: `${id}-${index}`,
      "data-row": index, "aria-level": row.level, "aria-setsize": row.of, "aria-posinset": row.place,
      "aria-selected": index === chosen ? "true" : "false", "aria-expanded": openable ? String(row.open) : null,
      style: {"inset-block-start": `${index * ROW}px`, "padding-inline-start": `${(row.level - 1) * 1.1 + 0.3}rem`}},
    el("span", {class: "tree-twist", "aria-hidden": "true"}, openable ? (row.open ? "▾" : "▸") : ""),
    el("span", {class: "tree-key"}, marked(String(row.key), wanted)), el("span", {class: "dim"}, ": "),
    openable ? el("span", {class: "dim"}, row.summary ??= summary(row.value))
      : el("span", {class: `tree-${row.value === null ? "null" : isNumber(row.value) ? "number" : typeof row.value}`, "data-pick": pick !== null}, marked(leaf(row.value), wanted)));
  }

  fill(count, "");
  requestAnimationFrame(() => {
    draw();
    if (rows.length > 0 && !isChosen) choose(0); // unless someone has searched already
  });
  if (!isOpenable(value)) put(space, leaf(value));
  return Object.assign(element, {focusSearch: () => { element.scrollIntoView({block: "start"}); search.focus({preventScroll: true}); announce(`Search in ${label}`); }});
}

function isOpenable(value) {
  if (value === null || typeof value !== "object") return false;
  for (const _ in value) return true; // without a list of all keys, of which there may be many
  return false;
}

function summary(value) {
  if (!Array.isArray(value)) return `{${Object.keys(value).length}}`;
  const name = value.find((item) => item?.name)?.name;
  return `[${value.length}]${name ? ` ${shown(name)} …` : ""}`;
}

function leaf(value) {
  const text = writeJson(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function marked(text, wanted) {
  const at = wanted ? text.toLowerCase().indexOf(wanted) : -1;
  return at < 0 ? text : [text.slice(0, at), el("mark", {}, text.slice(at, at + wanted.length)), text.slice(at + wanted.length)];
}
