// Texts of the API as people read them: their lines, and names of rules and nodes where the text has a UUID.

import {request} from "./api.js";
import {el, fill} from "./dom.js";
import {address} from "./router.js";
import {messageLink, short} from "./parts.js";

const KEPT_MS = 30_000;
const RULE = /((?:Inspection r|r)ule )([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?: \((.*?)\)(?=$|[,;.]| failed at))?/gi;
// Kinds of objects: the request for one, its name in the answer, and the address that shows it.
const RULES = {path: "/v1/inspection_rules/", fields: "uuid,name,description", name: called, to: (uuid, name) => address("rules", {text: name})};
const NODES = {path: "/v1/nodes/", fields: "uuid,name", name: (node) => node.name, to: (uuid) => address("node", uuid)};
const kept = new Map(); // uuid -> {until, name, asked}: null while it is not known, and a promise of it

/** Return what a rule is called, the same everywhere. */
export function called(rule) {
  return rule.name || rule.description || rule.uuid;
}

async function nameOf(kind, uuid) {
  const {json, error} = await request("GET", `${kind.path}${encodeURIComponent(uuid)}?fields=${kind.fields}`);
  const name = error ? uuid : kind.name(json) || uuid;
  kept.get(uuid).name = name;
  return name;
}

/** Return a link that has the name as soon as it is known; of what was deleted, the UUID. */
function link(kind, uuid) {
  let entry = kept.get(uuid);
  if (entry === undefined || entry.until < Date.now()) {
    entry = {until: Date.now() + KEPT_MS, name: entry?.name ?? null};
    kept.set(uuid, entry);
    entry.asked = nameOf(kind, uuid);
    entry.asked.catch(() => kept.delete(uuid));
  }
  const made = el("a", {href: kind.to(uuid, entry.name ?? uuid)}, entry.name ?? uuid);
  if (entry.name === null) {
    entry.asked.then((name) => {
      made.setAttribute("href", kind.to(uuid, name));
      fill(made, name);
    }, () => {});
  }
  return made;
}

/** Return a link to a node by its name, of which only the UUID is known. */
export function namedNode(uuid) {
  return link(NODES, uuid);
}

/** Return a text, with links from the ids of messages to what to do. */
function identified(text) {
  return text.split(/\((IR-\d{4})\)/).map((part, number) => (number % 2 === 0 ? part : ["(", messageLink(part), ")"]));
}

/** Return a text, with links to rules by their names, and from the ids of messages to what to do. */
export function named(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(RULE)) {
    // A revision has the name that the rule had then.
    parts.push(identified(text.slice(end, found.index)), found[1], found[3] ? el("a", {href: address("rules", {text: found[3]})}, found[3])
      : link(RULES, found[2].toLowerCase()));
    end = found.index + found[0].length;
  }
  return [...parts, identified(text.slice(end))];
}

/** Return the lines of a text, whose breaks the service has escaped, and in which items begin with "*". */
function split(text) {
  return String(text).split(/\\n|\n/).map((line, number) => (number === 0 ? line : line.replace(/^\s*\*\s*/, "")));
}

/** Return a text without the end of a very long one, but with the id of its message. */
function shortened(text, most) {
  const id = /(?: \(IR-\d{4}\))?$/.exec(text);
  return `${short(text.slice(0, id.index), most)}${id[0]}`;
}

/** Return a text on one line, shortened. */
export function line(text, most = 400) {
  const [first, ...others] = split(text);
  return named(shortened(others.length > 0 ? `${first} ${others.join("; ")}` : first, most));
}

/** Return a text as a paragraph and a list, without the end of very long lines. */
export function lines(text) {
  const [first, ...others] = split(text).map((each) => named(shortened(each, 1500)));
  return [el("p", {}, first), others.length > 0 && el("ul", {class: "reasons"}, others.slice(0, 100).map((each) => el("li", {}, each)))];
}
