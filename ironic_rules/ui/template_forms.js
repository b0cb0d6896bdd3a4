// Deploy templates and flavors are made, changed and deleted. The API checks them; its problems stand at their fields.

import {announce, el, fill} from "./dom.js";
import {pages, request} from "./api.js";
import {address, go} from "./router.js";
import {confirmed, notice} from "./parts.js";
import {field, form, meant, traitsLike} from "./forms.js";
import {writeJson} from "./json.js";

const TEMPLATES = "/v1/deploy_templates";
const FLAVORS = "/v1/flavors";
const INTERFACES = ["deploy", "bios", "raid", "firmware", "management", "power", "vendor"];
// [label, key in the body, what it is at first]
const SIZES = [["Memory (MiB)", "ram", 1024], ["vCPUs", "vcpus", 1], ["Disk (GiB)", "disk", 0]];

/** Return {element, rows}: rows of fields with buttons to add and to remove one; `make(value)` returns the fields of a row. */
function list(title, noun, values, make) {
  const place = el("div", {class: "stack"});
  const rows = [];
  const add = (value) => {
    const row = make(value);
    const group = el("div", {class: "bar", role: "group", "aria-label": noun}, Object.values(row).map((each) => each.element),
      el("button", {type: "button", class: "quiet", "aria-label": `Remove this ${noun}`, title: `Remove this ${noun}`, onclick: () => {
        rows.splice(rows.indexOf(row), 1);
        group.remove();
      }}, "×"));
    rows.push(row);
    place.append(group);
    return row;
  };
  for (const value of values) add(value);
  return {rows, element: el("fieldset", {}, el("legend", {}, title), place,
    el("button", {type: "button", onclick: () => Object.values(add(null))[0].input.focus()}, `Add ${noun}`))};
}

/** Make a template, or change one; `stored` is null, or {template, tag}. */
export async function editTemplate(stored, again) {
  const {template, tag} = stored ?? {};
  const name = field({label: "Name", pointer: "/name", value: template?.name ?? "CUSTOM_", required: true, suggest: traitsLike,
    help: "A trait: nodes with this trait run the steps when they are deployed."});
  const description = field({label: "Description", pointer: "/description", value: template?.description ?? ""});
  const steps = list("Steps", "step", template?.steps ?? [null], (step) => ({
    interface: field({label: "Interface", options: INTERFACES, value: step?.interface ?? "deploy"}),
    step: field({label: "Step", value: step?.step ?? "", required: true}),
    priority: field({label: "Priority", kind: "number", value: step?.priority ?? 100, required: true}),
    args: field({label: "Arguments (JSON)", value: step ? writeJson(step.args ?? {}) : "{}", size: 26})}));
  const fields = () => [name, description, ...steps.rows.flatMap((row, number) => Object.entries(row).map(([key, each]) => (
    Object.assign(each, {pointer: `/steps/${number}/${key}`}))))];
  const send = () => {
    const body = {name: name.value, description: description.value || null, steps: steps.rows.map((row) => ({
      interface: row.interface.value, step: row.step.value, priority: meant(row.priority.value), args: meant(row.args.value)}))};
    return template ? request("PATCH", `${TEMPLATES}/${template.uuid}`, {headers: {"If-Match": tag},
      body: Object.entries(body).map(([key, value]) => ({op: "add", path: `/${key}`, value}))}) : request("POST", TEMPLATES, {body});
  };
  const reply = await form(template ? `Change ${template.name}` : "New deploy template", "Save", [name.element, description.element, steps.element],
    fields, send);
  if (reply === null) return;
  announce("Saved");
  if (template) again();
  else go(address("templates", reply.json.uuid));
}

/** Make a flavor, or change one: its description and extra specs; `flavor` is null, or as the API shows it. */
export async function editFlavor(flavor, again) {
  const {items} = await pages("/v1/extra_specs?limit=1000", "extra_specs", {most: 1000});
  const keys = async (typed) => {
    const [, begin] = /^trait:(.*)$/.exec(typed) ?? [];
    return begin === undefined ? items.filter(({name, status}) => status === "supported" && name.startsWith(typed)).map(({name}) => name)
      : (await traitsLike(begin)).map((trait) => `trait:${trait}`);
  };
  const name = field({label: "Name", pointer: "/flavor/name", required: true});
  const sizes = SIZES.map(([label, key, value]) => field({label, pointer: `/flavor/${key}`, kind: "number", value, required: true}));
  const description = field({label: "Description", pointer: "/flavor/description", value: flavor?.description ?? ""});
  const before = flavor?.extra_specs ?? {};
  const specs = list("Extra specs", "extra spec", flavor ? Object.entries(before) : [["resources:CUSTOM_", "1"]], (spec) => ({
    key: field({label: "Key", value: spec?.[0] ?? "", size: 32, suggest: keys, placeholder: "trait:CUSTOM_GPU"}),
    value: field({label: "Value", value: spec?.[1] ?? "", placeholder: "required"})}));
  const fields = () => [...flavor ? [] : [name, ...sizes], description, ...specs.rows.map((row) => Object.assign(row.value, {
    pointer: `/extra_specs/${row.key.value.replaceAll("~", "~0").replaceAll("/", "~1")}`}))];
  let made = flavor; // also when the extra specs are refused after it was made
  const send = async () => {
    const wanted = Object.fromEntries(specs.rows.map((row) => [row.key.value, row.value.value]));
    if (made === null) {
      const body = {flavor: {name: name.value, description: description.value || null,
        ...Object.fromEntries(SIZES.map(([, key], number) => [key, meant(sizes[number].value)]))}};
      const reply = await request("POST", FLAVORS, {body});
      if (reply.error) return reply;
      made = reply.json.flavor;
    } else if (description.value !== (made.description ?? "")) {
      const reply = await request("PUT", `${FLAVORS}/${made.id}`, {body: {flavor: {description: description.value || null}}});
      if (reply.error) return reply;
      made = {...made, description: description.value};
    }
    const path = `${FLAVORS}/${made.id}/os-extra_specs`;
    if (Object.keys(wanted).length > 0) {
      const reply = await request("POST", path, {body: {extra_specs: wanted}});
      if (reply.error) return reply;
    }
    for (const key of Object.keys(before).filter((each) => !Object.hasOwn(wanted, each))) {
      const reply = await request("DELETE", `${path}/${encodeURIComponent(key)}`);
      if (reply.error && reply.error.status !== 404) return reply;
    }
    return {error: null};
  };
  const reply = await form(flavor ? `Change ${flavor.name}` : "New flavor", "Save",
    [!flavor && [name.element, el("div", {class: "bar"}, sizes.map((each) => each.element))], description.element, specs.element], fields, send);
  if (reply === null && made === flavor) return;
  announce("Saved");
  if (flavor) again();
  else go(address("templates", "flavor", made.id));
}

/** Ask, delete a template or a flavor, and go to the list. */
export async function remove(kind, ident, name, place, told) {
  if (!await confirmed(`Delete ${name}?`, "Delete", el("p", {}, told))) return;
  const {error} = await request("DELETE", `${kind === "flavor" ? FLAVORS : TEMPLATES}/${encodeURIComponent(ident)}`);
  if (error) fill(place, notice(error));
  else {
    announce(`${name} is deleted`);
    go(address("templates"));
  }
}
