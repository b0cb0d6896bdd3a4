// Conditions and actions that are made in a dialog: of a value that was clicked, and of the API's vocabulary.

import {el, fill} from "../dom.js";
import {isNumber} from "../json.js";
import {short} from "../parts.js";
import {field, form, meant, traitsLike} from "../forms.js";
import {conditionAt, isPlain, literal} from "./paths.js";

const EQUAL = [["eq", "= equals"], ["ne", "≠ does not equal"]];
const FILLED = [["!is-empty", "is not empty"], ["is-empty", "is empty"]];
const CHOICES = {
  number: [...EQUAL, ["ge", "≥ is at least"], ["gt", "> is more than"], ["le", "≤ is at most"], ["lt", "< is less than"], ["one-of", "is one of"]],
  text: [...EQUAL, ["one-of", "is one of"], ["contains", "has a part that matches (regular expression)"],
    ["matches", "matches as a whole (regular expression)"], ...FILLED],
  boolean: [["is-true", "is true"], ["is-false", "is false"]],
  missing: [["is-none", "has no value"], ["!is-none", "has a value"]],
  list: [["has", "has the item"], ...FILLED], object: FILLED,
};
const COMPARED = new Set(["eq", "ne", "ge", "gt", "le", "lt"]);
const REGULAR = new Set(["contains", "matches"]);

function kindOf(value) {
  if (value === null) return "missing";
  if (isNumber(value)) return "number";
  if (Array.isArray(value)) return value.some(isPlain) ? "list" : "object";
  return typeof value === "boolean" ? "boolean" : typeof value === "string" ? "text" : "object";
}

/** Return what is at first compared with, as text. */
function operandOf(op, value) {
  if (op === "has") return String(value.find(isPlain) ?? "");
  return REGULAR.has(op) ? String(value).replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&") : String(value);
}

/** Let the person make a condition of a value; return a promise of it, null if there is to be none.
 * @param {Array} path keys and indexes from the root, all of which a template can have
 * @param {object} vocabulary of the API */
export async function chooseCondition(path, value, vocabulary) {
  const kind = kindOf(value);
  const first = kind === "boolean" && !value ? "is-false" : kind === "text" && (value === "" || !isPlain(value)) ? "!is-empty" : CHOICES[kind][0][0];
  const inLoop = path.some((step) => typeof step === "number");
  const choice = field({label: "Condition", options: CHOICES[kind], value: first});
  const operand = field({label: "Value", pointer: "/operand", value: operandOf(first, value)});
  const multiple = field({label: "Number of list items", value: "any", options: vocabulary.multiple.map((name) => [name, `${name} of them`])});
  let isTyped = false;
  operand.input.addEventListener("input", () => { isTyped = true; });
  const show = () => {
    const op = choice.value;
    operand.element.hidden = !COMPARED.has(op) && !REGULAR.has(op) && op !== "one-of" && op !== "has";
    if (!isTyped && !operand.element.hidden) operand.input.value = operandOf(op, value);
    operand.tell(null);
    operand.element.querySelector("label").textContent = op === "one-of" ? "Values, separated by commas" : `Value (${REGULAR.has(op) ? "RE2" : kind === "list" ? "item" : kind})`;
  };
  choice.input.addEventListener("change", show);
  show();
  const reply = await form("Make a condition", "Add condition", [
    el("p", {}, el("code", {}, path.join(".")), " is ", el("code", {}, short(value, 200))),
    choice.element, operand.element, inLoop && multiple.element], () => [operand], async () => {
    const op = choice.value;
    const typed = op === "one-of" ? operand.value.split(",").map((text) => text.trim()).filter(Boolean) : [operand.value];
    const isOfNumbers = kind === "number" || (op === "has" && isNumber(value.find(isPlain)));
    const values = isOfNumbers ? typed.map(meant) : typed.map(literal);
    if (isOfNumbers && !operand.element.hidden && !(values.length > 0 && values.every(isNumber))) {
      return {error: {}, problems: [{pointer: "/operand", text: op === "one-of" ? "must be numbers" : "must be a number"}]};
    }
    return {error: null, json: conditionAt(op === "has" ? [...path, 0] : path, (written) => (
      COMPARED.has(op) || op === "has" ? {op: op === "has" ? "eq" : op, args: {values: [written, values[0]]}}
        : REGULAR.has(op) ? {op, args: {value: written, regex: values[0]}}
          : op === "one-of" ? {op, args: {value: written, values}} : {op, args: {value: written}}), multiple.value)};
  });
  return reply?.json ?? null;
}

/** Let the person make an action with the arguments that the vocabulary names; return a promise of it, or of null. */
export async function chooseAction(vocabulary) {
  const place = el("div", {});
  let fields = [];
  const choice = field({label: "Action", options: vocabulary.actions.map(({name}) => name), value: "add-trait"});
  const known = () => vocabulary.actions.find(({name}) => name === choice.value);
  const show = () => {
    const {text, example, arguments: wanted} = known();
    fields = wanted.map(({name, required, text: help, values}) => field({
      label: required ? name : `${name} (optional)`, pointer: `/${name}`, help, required,
      ...values ? {options: [...required ? [] : [""], ...values.map(String)]} : {},
      ...name === "name" && choice.value.includes("trait") ? {suggest: traitsLike} : {}}));
    fill(place, el("p", {}, text), fields.map((each) => each.element), example && el("p", {class: "dim small"}, "For example ", el("code", {}, example)));
  };
  choice.input.addEventListener("change", show);
  show();
  const reply = await form("Add an action", "Add action", [choice.element, place], () => fields, async () => {
    const args = {};
    for (const [number, {name, is_list: isList}] of known().arguments.entries()) {
      const value = meant(fields[number].value);
      if (value !== "") args[name] = isList && !Array.isArray(value) ? [value] : value;
    }
    return {error: null, json: {op: choice.value, args}};
  });
  return reply?.json ?? null;
}
