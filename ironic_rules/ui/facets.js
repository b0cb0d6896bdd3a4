// Facets of the nodes of a list: their states, classes and traits, and the values of facts, with counts. A
// click adds a value to the question, or takes it away.

import {el, fill} from "./dom.js";
import {poll} from "./api.js";
import {keepingFocus, loading, notice} from "./parts.js";
import {bars, histogram} from "./plots.js";
import {has, quoted, toggled} from "./where.js";

const [FEW, MOST] = [6, 12];
const EVERY_S = 30;
/** Requests, made at the same time: the name of a parameter, and facets. */
const GROUPS = [["fields", ["provision_state", "resource_class", "traits"]], ["facts", ["vendor", "product", "bios_version"]],
  ["facts", ["memory_gib", "nic_speed"]]];
const TITLES = {provision_state: "State", resource_class: "Resource class", traits: "Traits", vendor: "Vendor", product: "Product",
  bios_version: "BIOS version", memory_gib: "Memory", nic_speed: "NIC speed"};
/** Names of the query language for fields of nodes. */
const ASKED = {provision_state: "state"};
/** The values that were counted last, by the names of the query language: what the vocabulary does not know. */
export const counted = {};

/** Show the facets of a question until `signal` is aborted.
 * @param {object} question `where` and `failure`
 * @param {function} to returns the address of another clause
 * @param {function} tell is called with the number of nodes */
export async function showFacets(place, {where, failure}, {to, tell}, signal) {
  const drawn = Object.fromEntries(Object.keys(TITLES).map((name) => [name, el("div", {class: "facet", role: "group", "aria-label": TITLES[name]})]));
  const said = el("div", {});
  const isWide = matchMedia("(min-width: 900px)").matches;
  const waiting = new Set(GROUPS);
  fill(place, loading("Counting …", isWide ? 20 : 2));
  await Promise.all(GROUPS.map((group) => {
    const [kind, names] = group;
    const asked = new URLSearchParams({[kind]: names, limit: MOST, ...(where && {where}), ...(failure && {failure})});
    return poll(`/v1/facts/values?${asked}`, {signal, seconds: EVERY_S}, ({json, error}) => {
      fill(said, error && (error.status === 403 ? el("p", {class: "empty"}, error.text) : notice(error)));
      if (!error) tell(json.nodes);
      for (const found of error ? [] : [...json.fields, ...json.facts]) {
        const name = found.field ?? found.fact;
        keepingFocus(drawn[name], () => fill(drawn[name], el("h3", {}, TITLES[name], found.unit && el("span", {class: "dim"}, ` ${found.unit}`)),
          facet(name, found, where, to)));
      }
      // All at once: nothing that is read already moves.
      if (waiting.delete(group) && waiting.size === 0) {
        fill(place, el("details", {open: isWide}, el("summary", {}, "Filter by value"), said, el("div", {class: "facets"}, Object.values(drawn))));
      }
    });
  }));
}

function facet(name, found, where, to) {
  const asked = ASKED[name] ?? name;
  const entry = (text, count, part) => ({text, count, isCurrent: has(where, part), to: to(toggled(where, part))});
  counted[asked] = found.values.map(({value}) => value);
  if (found.values.length === 0) return el("p", {class: "empty"}, "No values");
  if (found.ranges?.length > 0) {
    const isDiscrete = found.others === 0;
    return histogram(TITLES[name], isDiscrete
      ? found.values.toSorted((a, b) => a.value - b.value).map(({value, nodes}) => entry(String(value), nodes, `${asked} = ${value}`))
      : found.ranges.map(({from, to: end, nodes}) => entry(`${from} – ${end}`, nodes, `${asked} >= ${from} and ${asked} < ${end}`)));
  }
  const isList = found.is_list || name === "traits";
  const shown = found.values.slice(0, FEW).map(({value, nodes}) => entry(String(value), nodes, `${asked} ${isList ? "has" : "="} ${quoted(value)}`));
  return [bars(TITLES[name], shown), found.values.length > FEW && el("p", {class: "empty"}, "and others")];
}
