// Storing a rule: with the ETag of what was read, so that nobody's change is lost, and as a file for `apply`.

import {el, modal} from "../dom.js";
import {request} from "../api.js";
import {copyButton} from "../parts.js";
import {isJson, toJson, toYaml} from "./text.js";

const RULES = "/v1/inspection_rules";

export const WITHHELD = "Conditions and actions are shown to administrators only.";

/** Return the rule that the API shows as it would be written: without what is the default. */
export function written(stored, vocabulary) {
  const rule = {};
  for (const name of vocabulary.fields) {
    if (name === "uuid" || stored[name] === undefined || isDefault(name, stored[name])) continue;
    rule[name] = stored[name];
  }
  return rule;
}

function isDefault(name, value) {
  return value === null || (name === "enabled" && value === true) || (name === "sensitive" && value === false)
    || (name === "priority" && value === 0) || (name === "phase" && value === "main")
    || (name === "conditions" && value.length === 0);
}

/** Return {rule, tag, error} of a stored rule. */
export async function read(uuid, signal) {
  const {json, headers, error} = await request("GET", `${RULES}/${uuid}`, {signal});
  return {rule: json, tag: headers.get("ETag"), error};
}

/** Store what a draft says; return {json, headers, error}, of which `error.status` is 412 or 409 if another one has
 * changed the rule since it was read. */
export function store(draft, value, vocabulary, signal) {
  if (draft.uuid === null) return request("POST", RULES, {body: value, signal});
  const operations = [];
  for (const name of vocabulary.fields) {
    if (name === "uuid") continue;
    if (Object.hasOwn(value, name)) operations.push({op: "add", path: `/${name}`, value: value[name]});
    else if (!isDefault(name, draft.stored[name])) operations.push({op: "remove", path: `/${name}`});
  }
  // A field that no rule has is the API's to refuse, as it is for a new rule.
  for (const name of Object.keys(value)) {
    if (!vocabulary.fields.includes(name)) operations.push({op: "add", path: `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, value: value[name]});
  }
  return request("PATCH", `${RULES}/${draft.uuid}`, {body: operations, headers: {"If-Match": draft.tag}, signal});
}

/** Show both texts of a rule that another one has changed; return a promise of "mine", "stored" or null.
 * @param {string} mine
 * @param {string | null} theirs null: it was deleted */
export function conflict(mine, theirs) {
  return new Promise((resolve) => {
    let answer = null;
    const side = (title, text) => el("div", {}, el("h3", {}, title), el("pre", {tabindex: "0", role: "group", "aria-label": title}, text), copyButton(text));
    modal(theirs === null ? "Someone has deleted this rule" : "Someone has changed this rule", {class: "wide-dialog", closed: () => resolve(answer)},
      el("p", {}, "Nothing is saved yet, and nothing that you have typed is lost."),
      el("div", {class: "sides"}, side("Yours", mine), theirs !== null && side("Stored now", theirs)),
      el("form", {method: "dialog", class: "buttons", onsubmit: (event) => {
        answer = event.submitter?.value === "no" ? null : event.submitter?.value ?? null;
      }},
      el("button", {value: "no", class: "primary"}, "Back to my text"),
      el("button", {value: "mine"}, theirs === null ? "Save mine as a new rule" : "Save mine over it"),
      theirs !== null && el("button", {value: "stored"}, "Discard mine, open the stored one")));
  });
}

/** Let the browser save a rule as a file that `openstack baremetal inspection rule apply` takes; return its name. */
export function saveFile(text, value, uuid) {
  const {bundle, ...rule} = value;
  if (!rule.name && !rule.uuid && uuid) rule.uuid = uuid;
  const suffix = isJson(text) ? "json" : "yaml";
  const name = `${String(rule.name ?? "rule").replaceAll(/[^\w.-]+/g, "-").slice(0, 60) || "rule"}.${suffix}`;
  const content = suffix === "json" ? toJson([rule]) : indented(toYaml(rule));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], {type: suffix === "json" ? "application/json" : "text/yaml"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return {name, bundle: bundle ?? null};
}

/** Return a YAML object as the only item of a list. */
function indented(yaml) {
  return yaml.trimEnd().split("\n").map((line, number) => (number === 0 ? "- " : "  ") + line).join("\n") + "\n";
}
