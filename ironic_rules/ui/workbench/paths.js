// Paths into inventories: their templates, and the conditions that are made of a value.

import {isNumber} from "../json.js";

const ROOT = /^[A-Za-z_][A-Za-z0-9_]*$/;
const KEY = /^[^[\]{}]+$/;
/** A longer text is not compared with: it is data, not a name. */
const MAX_TEXT = 255;

/** Return the template of a path, ["inventory", "cpu", "count"]; null if a key cannot be written in one. */
export function template(path) {
  if (!ROOT.test(path[0]) || !path.slice(1).every((step) => KEY.test(String(step)))) return null;
  return `{${path[0]}${path.slice(1).map((step) => `[${step}]`).join("")}}`;
}

/** Return a text as it is written in a rule, where braces are those of templates. */
export function literal(value) {
  return typeof value === "string" ? value.replaceAll("{", "{{").replaceAll("}", "}}") : value;
}

/** Return a condition about the value at a path; null if a key cannot be written in a template.
 *
 * Within a list it is a condition about its items: in the next inspection the item may have another place.
 * @param {Array} path keys and indexes from the root ("inventory" or "plugin_data") to the value
 * @param {function} build returns the condition of a template */
export function conditionAt(path, build, multiple = "any") {
  const last = path.findLastIndex((step) => typeof step === "number");
  const written = last < 0 ? template(path) : template(["item", ...path.slice(last + 1)]);
  const loop = last < 0 ? undefined : template(path.slice(0, last));
  if (written === null || loop === null) return null;
  return loop === undefined ? build(written) : {...build(written), loop, multiple};
}

/** Return whether a value is one to compare with: a number, or a text that is a name and not data. */
export function isPlain(value) {
  return isNumber(value) || (typeof value === "string" && value !== "" && value.length <= MAX_TEXT && !value.includes("******"));
}

/** Return the value at steps below a value, undefined if there is none. */
export function at(value, steps) {
  let found = value;
  for (const step of steps) {
    if (found === null || typeof found !== "object") return undefined;
    found = Object.hasOwn(found, step) ? found[step] : undefined;
  }
  return found;
}
