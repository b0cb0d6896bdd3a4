// Completions at a place of a rule: operators, actions and their arguments by the API's vocabulary, and the paths
// of the inventory that is shown, each with its value.

import {short} from "../parts.js";
import {traitsLike} from "../forms.js";
import {at} from "./paths.js";

/** Values that are offered at most. */
const MOST = 300;

/** Return a source for CodeMirror.
 * @param {object} known `vocabulary`: that of the API, or null; `data`: {inventory, plugin_data} that is shown, or
 *   null. Both are read when something is completed. */
export function completing(known) {
  return (context) => {
    const {vocabulary, data} = known;
    if (!vocabulary) return null;
    const before = context.state.sliceDoc(0, context.pos);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const trait = traitAt(before, line, vocabulary);
    if (trait !== null) return traits(trait, context.pos);
    const found = path(before, line, vocabulary, data) ?? operation(before, line, vocabulary)
      ?? value(before, line, vocabulary) ?? name(before, line, vocabulary, context.explicit);
    if (found === null || found.options.length === 0) return null;
    return {from: context.pos - found.typed.length, options: found.options, validFor: found.validFor};
  };
}

// op: add-trait … name: CUSTOM_G
function traitAt(before, line, vocabulary) {
  const found = /["']?\bname["']?\s*:\s*["']?(\w+)$/.exec(line);
  return found !== null && part(before) === "actions" && operationAt(before, vocabulary)?.name.includes("trait") ? found[1] : null;
}

async function traits(typed, end) {
  const options = (await traitsLike(typed)).map((label) => ({label, type: "constant"}));
  return options.length > 0 ? {from: end - typed.length, options, validFor: /^\w*$/} : null;
}

// {inventory[cpu][co
function path(before, line, vocabulary, data) {
  const open = /(?:^|[^{])(?:\{\{)*\{([^{}|"']*)((?:\|[a-z]*)*)$/.exec(line);
  if (open === null || !isQuoted(line.slice(0, open.index + 1))) return null; // {args: {value} of YAML is no template
  const [, written, conversions] = open;
  if (conversions) {
    return {typed: /[a-z]*$/.exec(conversions)[0], validFor: /^[a-z]*$/,
      options: vocabulary.conversions.map((item) => ({label: item.name, type: "function", info: item.text}))};
  }
  if (!/[[.]/.test(written)) {
    const roots = ["item", "match", ...vocabulary.roots].map((label) => ({label, type: "variable"}));
    return /^\w*$/.test(written) ? {typed: written, validFor: /^\w*$/, options: [...paths([], written, vocabulary, data), ...roots]}
      : null;
  }
  // Everything before the last bracket or dot is a place; its values are offered, and those below.
  const cut = Math.max(written.lastIndexOf("["), written.lastIndexOf("."));
  const steps = written.slice(0, cut).split(/[[\].]+/).filter(Boolean);
  return {typed: written, validFor: /^[^{}|"']*$/, options: paths(steps, written, vocabulary, data)};
}

function isQuoted(text) {
  const bare = text.replaceAll(/\\./g, "");
  const single = bare.replaceAll(/"[^"]*"/g, "").split("'").length % 2 === 0;
  return single || bare.replaceAll(/'[^']*'/g, "").split('"').length % 2 === 0;
}

function paths(steps, written, vocabulary, data) {
  const root = steps[0] ?? "inventory";
  const start = root === "previous" ? data?.inventory : data?.[root];
  const options = [];
  const place = at(start, steps.slice(1));
  const queue = place === undefined ? [] : [[[root, ...steps.slice(1)], place]];
  // The nearer ones first, so that a large inventory does not hide what is at hand.
  for (let number = 0; number < queue.length && options.length < MOST; number += 1) {
    const [above, value] = queue[number];
    if (value === null || typeof value !== "object") continue;
    const entries = Array.isArray(value) ? value.slice(0, 20).entries() : Object.entries(value).slice(0, MOST);
    for (const [key, below] of entries) {
      if (/[[\]{}]/.test(String(key))) continue;
      const steps = [...above, key];
      options.push({label: bracketed(steps), type: "property", detail: short(below, 40), boost: -steps.length});
      if (options.length >= MOST) break;
      queue.push([steps, below]);
    }
  }
  if (root === "inventory" || root === "previous") {
    const seen = new Set(options.map((option) => option.label));
    for (const known of vocabulary.paths) {
      const label = bracketed([root, ...known.split("/").slice(1).map((step) => (step === "*" ? "0" : step))]);
      if (!known.includes("**") && !seen.has(label) && label.startsWith(bracketed([root, ...steps.slice(1)]))) {
        options.push({label, type: "property", detail: "not in this inventory", boost: -20});
      }
    }
  }
  return options;
}

function bracketed(steps) {
  return steps[0] + steps.slice(1).map((step) => `[${step}]`).join("");
}

// op: se
function operation(before, line, vocabulary) {
  const found = /["']?\bop["']?\s*:\s*(["']?)(!?\s?)([\w-]*)$/.exec(line);
  if (found === null) return null;
  const [, quote, inverse, typed] = found;
  const isAction = part(before) === "actions";
  const options = (isAction ? vocabulary.actions : vocabulary.operators).map((item) => ({
    label: item.name, type: "keyword", info: item.example ? `${item.text}\n\n${item.example}` : item.text}));
  if (!isAction && !inverse) {
    options.push(...vocabulary.operators.map((item) => ({
      label: `!${item.name}`, apply: quote ? `!${item.name}` : `"!${item.name}"`, type: "keyword",
      info: `The inverse of ${item.name}: ${item.text}`, boost: -50})));
  }
  return {typed, options, validFor: /^[\w-]*$/};
}

/** Return "conditions" or "actions": the part of the rule that a place is in. */
function part(before) {
  return [...before.matchAll(/["']?\b(conditions|actions)["']?\s*:/g)].at(-1)?.[1] ?? null;
}

/** Return the operator or action that a place belongs to. */
function operationAt(before, vocabulary) {
  const of = part(before);
  if (of === null) return null;
  const text = before.slice(before.lastIndexOf(of));
  const name = [...text.matchAll(/["']?\bop["']?\s*:\s*["']?!?\s?([\w-]+)/g)].at(-1)?.[1];
  return vocabulary[of === "actions" ? "actions" : "operators"].find((item) => item.name === name) ?? null;
}

// level: in   phase: ma   multiple: a
function value(before, line, vocabulary) {
  const found = /["']?(\w+)["']?\s*:\s+["']?([\w-]*)$/.exec(line);
  if (found === null) return null;
  const [, key, typed] = found;
  const values = key === "phase" ? vocabulary.phases : key === "multiple" ? vocabulary.multiple
    : key === "enabled" || key === "sensitive" ? ["true", "false"]
      : operationAt(before, vocabulary)?.arguments.find((item) => item.name === key)?.values;
  return values ? {typed, validFor: /^[\w-]*$/, options: values.map((label) => ({label: String(label), type: "constant"}))} : null;
}

// The name of an argument, of a part of a condition, or of a field.
function name(before, line, vocabulary, isExplicit) {
  const inFlow = /[{,]\s*(["']?)(\w*)$/.exec(line);
  const inBlock = /^(\s*(?:-\s+)?)(["']?)(\w*)$/.exec(line);
  const typed = inFlow?.[2] ?? inBlock?.[3];
  if (typed === undefined || (typed === "" && !isExplicit)) return null;
  const quote = (inFlow?.[1] ?? inBlock?.[2]) || "";
  const offered = (names) => ({typed, validFor: /^\w*$/, options: names.map(({name, text}) => ({
    label: name, apply: quote ? `${name}${quote}: ` : `${name}: `, type: "property", info: text ?? undefined}))});
  if (inFlow ? /["']?args["']?\s*:\s*\{[^{}]*$/.test(before) : isBelowArgs(before, inBlock[1].length)) {
    const of = operationAt(before, vocabulary);
    return of && offered(of.arguments);
  }
  if (inBlock && inBlock[1] === "" && !/^\s*[{[]/.test(before)) {
    return offered(vocabulary.fields.map((field) => ({name: field})));
  }
  const of = part(before);
  if (of === null) return offered(vocabulary.fields.map((field) => ({name: field})));
  const parts = [{name: "op"}, {name: "args"}, {name: "loop"}, ...of === "conditions" ? [{name: "multiple"}] : []];
  return offered(parts);
}

function isBelowArgs(before, indent) {
  for (const line of before.split("\n").slice(0, -1).reverse()) {
    const found = /^(\s*(?:-\s+)?)(\S.*)?$/.exec(line);
    if (found[2] && found[1].length < indent) return /^["']?args["']?\s*:\s*$/.test(found[2]);
  }
  return false;
}
