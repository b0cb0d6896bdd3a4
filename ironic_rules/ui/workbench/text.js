// A rule as text: YAML or JSON, what it says, where each part of it stands, and small changes that keep the rest.
//
// YAML is read as the service's own files are: yes and no are Booleans, times and numbers of base 60 stay text.

import {isNumber, isObject, numeral, readJson, writeJson} from "../json.js";
import {LineCounter, isMap, isSeq, parseDocument, stringify} from "../vendor/editor.js";

const INT = /^[-+]?(?:0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)$/;
const FLOAT = /^[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)$/;
const BOOLEAN = /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/;
const TAG = "tag:yaml.org,2002:";
const TAGS = [
  {tag: `${TAG}bool`, default: true, test: BOOLEAN, identify: (value) => typeof value === "boolean",
    resolve: (text) => /^(?:y|t|on)/i.test(text), stringify: ({value}) => String(value)},
  {tag: `${TAG}int`, default: true, test: INT, resolve: integer},
  {tag: `${TAG}float`, default: true, test: FLOAT, resolve: float, identify: isNumber,
    stringify: ({value}) => String(value).replace(/^(-?\d+)e/i, "$1.0e")}, // 1e3 is a text in YAML 1.1
];
const OPTIONS = {
  version: "1.2", schema: "core", merge: false, uniqueKeys: true, stringKeys: true,
  customTags: (known) => [...TAGS, ...known.filter((tag) => typeof tag === "string" || !/:(?:bool|int|float)$/.test(tag.tag))],
};

function integer(text, failed) {
  const [, sign, digits] = /^([-+]?)(.*)$/.exec(text.replaceAll("_", ""));
  if (/^0[xb]$/.test(digits)) return failed("A number cannot be read");
  const value = BigInt(/^0[xb]/.test(digits) ? digits : /^0./.test(digits) ? `0o${digits.slice(1)}` : digits);
  return numeral(String(sign === "-" ? -value : value));
}

function float(text) {
  const [, sign, whole, fraction, exponent] = /^([-+]?)0*(\d*)\.(\d*)(.*)$/.exec(text.replaceAll("_", ""));
  return numeral(`${sign === "-" ? "-" : ""}${whole || 0}.${fraction || 0}${exponent}`);
}

/** Return what a text says: JSON is read as such, as by `apply`, where 1e3 is a number. */
function read(text, document) {
  try {
    if (isJson(text)) return readJson(text);
  } catch {
    // The text is YAML that begins with a bracket.
  }
  return document.toJS({maxAliasCount: 100});
}

/** Return whether a text is JSON rather than YAML. */
export function isJson(text) {
  return /^\s*[{[]/.test(text);
}

/** A text that was read. */
export class Text {
  constructor(text) {
    this.text = text;
    this._lines = new LineCounter();
    this._document = parseDocument(text, {...OPTIONS, lineCounter: this._lines, prettyErrors: false});
    /** @type {Array<{from, to, text}>} why it cannot be read */
    this.errors = [...this._document.errors].map((error) => ({
      from: error.pos[0], to: Math.max(error.pos[1], error.pos[0]), text: error.message}));
    for (const warning of this._document.warnings) { // a tag: "op: !eq" without quotes
      this.errors.push({from: warning.pos[0], to: warning.pos[1],
        text: "Tags are not supported; a text that begins with \"!\" must be quoted, as in op: \"!eq\""});
    }
    this.value = null;
    if (this.errors.length > 0) return;
    try {
      this.value = read(text, this._document);
    } catch (error) {
      this.errors.push({from: 0, to: text.length, text: error.message});
      return;
    }
    if (!isObject(this.value)) {
      this.errors.push({from: 0, to: text.length, text: "A rule is an object: actions, conditions, name, …"});
      this.value = null;
    }
  }

  /** Return the number, from 1, of the line of an offset. */
  lineOf(offset) {
    return this._lines.linePos(offset).line;
  }

  /** Return {from, to} of what a pointer names, as far as the text has it: of the key, where there is no value.
   * @param {string} pointer of a rule, "/conditions/0/args/value" */
  place(pointer) {
    let node = this._document.contents;
    let found = null;
    for (const step of pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))) {
      let next = null;
      if (isMap(node)) {
        const pair = node.items.find((item) => String(item.key?.value ?? item.key) === step);
        if (pair) next = pair.value?.range ? pair.value : pair.key;
      } else if (isSeq(node)) next = node.items[Number(step)] ?? null;
      if (!next?.range) break;
      node = next;
      found = next;
    }
    if (found === null) return {from: 0, to: this._end(0)};
    // An object is marked by its first line: all of it is too much to look at.
    const [from, to] = found.range;
    return {from, to: Math.max(Math.min(to, this._end(from)), from)};
  }

  _end(from) {
    const end = this.text.indexOf("\n", from);
    return end < 0 ? this.text.length : end;
  }

  /** Return the change {from, to, insert} that adds an item at the end of "conditions" or "actions"; null if the text
   * cannot be read. */
  adding(part, item) {
    const line = flow(item);
    if (this.text.trim() === "") return {from: 0, to: this.text.length, insert: `${part}:\n  - ${line}\n`};
    if (this.value === null) return null;
    if (isJson(this.text)) {
      const rule = {...this.value, [part]: [...this.value[part] ?? [], item]};
      return {from: 0, to: this.text.length, insert: toJson(rule)};
    }
    const map = this._document.contents;
    const pair = map.items.find((each) => String(each.key?.value) === part);
    const list = pair?.value;
    if (isSeq(list) && !list.flow && list.items.length > 0) {
      const first = list.items[0].range[0];
      const dash = this.text.lastIndexOf("-", first - 1);
      const indent = this.text.slice(this.text.lastIndexOf("\n", dash) + 1, dash);
      const last = list.items.at(-1).range[1];
      const end = this._end(last - (this.text.slice(0, last).length - this.text.slice(0, last).trimEnd().length));
      return {from: end, to: end, insert: `\n${/^\s*$/.test(indent) ? indent : "  "}- ${line}`};
    }
    if (pair && isSeq(list) && list.items.length > 0) {
      const at = this.text.lastIndexOf("]", list.range[1]);
      return {from: at, to: at, insert: `, ${line}`};
    }
    if (pair) { // an empty list, or nothing
      const from = pair.key.range[0];
      const to = list?.range && list.range[1] > from ? list.range[1] : pair.key.range[1];
      return {from, to, insert: `${part}:\n  - ${line}`};
    }
    const actions = part === "conditions" && map.items.find((each) => String(each.key?.value) === "actions");
    const at = actions ? actions.key.range[0] : this.text.length;
    const before = at > 0 && this.text[at - 1] !== "\n" ? "\n" : "";
    return {from: at, to: at, insert: `${before}${part}:\n  - ${line}\n`};
  }
}

/** Return a value on one line. */
export function flow(value) {
  return stringify(value, {...OPTIONS, collectionStyle: "flow", flowCollectionPadding: false, lineWidth: 0}).trimEnd();
}

/** Return a rule as YAML: each condition and action on a line if it is short. */
export function toYaml(rule) {
  const lines = [];
  for (const [key, value] of Object.entries(rule)) {
    if ((key === "conditions" || key === "actions") && Array.isArray(value) && value.length > 0) {
      lines.push(`${key}:`, ...value.map((item) => `  - ${entry(item)}`));
    } else lines.push(stringify({[key]: value}, {...OPTIONS, lineWidth: 0}).trimEnd());
  }
  return `${lines.join("\n")}\n`;
}

function entry(item) {
  const line = flow(item);
  return line.length <= 100 ? line : stringify(item, {...OPTIONS, lineWidth: 0}).trimEnd().replaceAll("\n", "\n    ");
}

export function toJson(rule) {
  return `${writeJson(rule, 2)}\n`;
}
