// Patches as lines that people read.

import {el} from "./dom.js";
import {short} from "./parts.js";

const TRAIT = /^\/traits\/(?:-|\d+)$/;
const SIGNS = {add: "+", remove: "−"};

/**
 * Return what a rule, or a dry run, changes, as a list.
 *
 * @param {object} told patches (RFC 6902): `node` and `plugin_data` are one, or {patch}; `ports` are patches by address, or
 *   a list of {address, patch}; `traits` {added, removed}, `ports_created` and `ports_removed` are lists
 */
export function changeList(told) {
  const found = [...patchOf(told?.node).map((change) => ["", change]),
    ...Object.entries(told?.ports ?? {}).flatMap(([key, port]) => patchOf(port).map((change) => [
      `port ${port.address ?? key} `, change])),
    ...patchOf(told?.plugin_data).map((change) => ["data ", change])];
  const lines = found.map(([where, {op, path, value}]) => (where === "" && op === "add" && TRAIT.test(path) ? trait("+", value) : el("li", {},
    el("span", {class: "dim"}, `${SIGNS[op] ?? "→"} ${where}`), el("code", {}, path), value !== undefined && [" ", el("code", {class: "value"}, short(value))])));
  for (const name of told?.traits?.added ?? []) lines.push(trait("+", name));
  for (const name of told?.traits?.removed ?? []) lines.push(trait("−", name));
  for (const port of told?.ports_created ?? []) lines.push(el("li", {}, el("span", {class: "dim"}, "+ port "), el("code", {}, short(port))));
  for (const port of told?.ports_removed ?? []) lines.push(el("li", {}, el("span", {class: "dim"}, "− port "), el("code", {}, short(port))));
  return lines.length > 0 ? el("ul", {class: "patch"}, lines) : el("span", {class: "dim"}, "nothing new");
}

function trait(sign, name) {
  return el("li", {}, el("span", {class: "dim"}, `${sign} trait `), el("code", {}, name));
}

/** Return the operations of a patch, which may be within an object with other things about what it changes. */
export function patchOf(told) {
  return Array.isArray(told) ? told : told?.patch ?? [];
}
