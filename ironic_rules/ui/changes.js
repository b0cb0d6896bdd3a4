// Patches as lines that people read.

import {el} from "./dom.js";
import {short} from "./parts.js";

const TRAIT = /^\/traits\/(?:-|\d+)$/;
const SIGNS = {add: "+", remove: "−"};

/** Return what a rule, or a dry run, changes, as a list.
 * @param {object} told patches (RFC 6902): `node` and `plugin_data` are one, or {patch}; `ports` are patches by
 *   address, or a list of {address, patch}; `traits` {added, removed}, `ports_created` and `ports_removed` are lists */
export function changeList(told) {
  const lines = changesOf(told);
  return lines.length > 0 ? el("ul", {class: "patch"}, lines) : el("span", {class: "dim"}, "nothing new");
}

/** Return the lines of changeList. */
export function changesOf(told) {
  const found = [...patchOf(told?.node).map((change) => ["", change]),
    ...Object.entries(told?.ports ?? {}).flatMap(([key, port]) => patchOf(port).map((change) => [
      `port ${port.address ?? key} `, change])),
    ...patchOf(told?.plugin_data).map((change) => ["data ", change])];
  return [
    ...found.map(([where, {op, path, value}]) => (where === "" && op === "add" && TRAIT.test(path) ? row("+", "trait ", value)
      : row(SIGNS[op] ?? "→", where, path || "all of it", value !== undefined && [" ", el("code", {class: "value"}, short(value))]))),
    ...(told?.traits?.added ?? []).map((name) => row("+", "trait ", name)),
    ...(told?.traits?.removed ?? []).map((name) => row("−", "trait ", name)),
    ...(told?.ports_created ?? []).map((port) => row("+", "port ", port.address ?? short(port))),
    ...(told?.ports_removed ?? []).map((port) => row("−", "port ", port.address ?? short(port)))];
}

function row(sign, where, name, value) {
  return el("li", {}, el("span", {class: "dim"}, `${sign} ${where}`), el("code", {}, name), value);
}

/** Return the operations of a patch, which may be within an object with other things about what it changes. */
export function patchOf(told) {
  return Array.isArray(told) ? told : told?.patch ?? [];
}
