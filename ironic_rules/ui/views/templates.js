// Deploy templates and flavors: the ordered steps that a deployment would run, and where each comes from.

import {el, fill, when} from "../dom.js";
import {pages, request} from "../api.js";
import {address} from "../router.js";
import {empty, loading, notice, section, state, table} from "../parts.js";
import {args, stepTable} from "../steps.js";
import {editFlavor, editTemplate, remove} from "../template_forms.js";

export const title = "Templates";

export async function show(main, {path}, signal) {
  if (path[0] === "flavor" && path[1]) await showFlavor(main, path[1], signal);
  else if (path[0]) await showTemplate(main, path[0], signal);
  else await showLists(main, signal);
}

async function showLists(main, signal) {
  const templates = el("div", {});
  const flavors = el("div", {});
  const both = el("div", {}, loading("Loading templates and flavors …", 20));
  fill(main, el("div", {class: "head"}, el("h1", {}, title), el("span", {class: "grow"}),
    el("button", {onclick: () => editTemplate(null)}, "New template …"), el("button", {onclick: () => editFlavor(null)}, "New flavor …")), both);
  const again = () => showLists(main, signal);
  await Promise.all([
    list(templates, "/v1/deploy_templates?detail=true&limit=500", "deploy_templates", again, signal, (items) => table("Deploy templates",
      ["Name", {text: "Number", class: "num"}, "Steps"], items.map((template) => [
        {class: "name", children: el("a", {href: address("templates", template.uuid)}, template.name)},
        {class: "num", children: template.steps.length},
        template.steps.map((step) => [el("code", {}, `${step.interface}.${step.step}`), " "])])),
    empty("No template. ", el("button", {class: "link", onclick: () => editTemplate(null)}, "Make one"), ". It has the name of a trait, and the steps that machines with this trait run when they are deployed.")),
    list(flavors, "/v1/flavors/detail?limit=500", "flavors", again, signal, (items) => table("Flavors", ["Name", "Extra specs"],
      items.map((flavor) => [{class: "name", children: el("a", {href: address("templates", "flavor", flavor.id)}, flavor.name)},
        Object.entries(flavor.extra_specs ?? {}).map(([key, value]) => el("div", {}, el("code", {}, `${key}=${value}`)))])),
    empty("No flavor. ", el("button", {class: "link", onclick: () => editFlavor(null)}, "Make one"), ", here or as in Nova.")),
  ]);
  fill(both, el("div", {class: "columns"}, section("Deploy templates", templates), section("Flavors", flavors)));
}

async function list(place, path, name, again, signal, draw, otherwise) {
  const {items, error, more} = await pages(path, name, {signal, most: 1000});
  fill(place, error ? error.status === 403 ? empty(error.text) : notice(error, again)
    : items.length === 0 ? otherwise : [draw(items), more && empty("Shows the first 1,000.")]);
}

async function showTemplate(main, ident, signal) {
  const [steps, nodes, said] = [el("div", {}), el("div", {}), el("div", {})];
  const head = el("div", {class: "head"}, el("h1", {}, "Template"));
  // Both parts at once: nothing that is read already moves.
  fill(main, head, loading("Loading the template …", 20));
  const path = `/v1/deploy_templates/${encodeURIComponent(ident)}`;
  const [{json: template, headers, error}, found] = await Promise.all([
    request("GET", path, {signal}), pages(`${path}/nodes`, "nodes", {signal, most: 500})]);
  if (error) {
    fill(main, el("h1", {}, title), notice(error, () => showTemplate(main, ident, signal)), el("p", {}, el("a", {href: address("templates")}, "All templates")));
    return;
  }
  fill(head, el("h1", {}, template.name), el("span", {class: "dim"}, el("code", {}, template.uuid)),
    el("span", {class: "dim"}, template.updated_at ? ["changed ", when(template.updated_at)] : ["created ", when(template.created_at)]),
    el("a", {href: address("templates")}, "All templates"), el("span", {class: "grow"}),
    el("button", {onclick: () => editTemplate({template, tag: headers.get("ETag")}, () => showTemplate(main, ident, signal))}, "Change …"),
    el("button", {onclick: () => remove("template", template.uuid, template.name, said, "Nodes keep the trait; deployments run without these steps.")},
      "Delete …"));
  const ordered = [...template.steps].sort((a, b) => b.priority - a.priority);
  fill(steps, template.description && el("p", {}, template.description), table("Steps", ["Step", {text: "Priority", class: "num"}, "Arguments"],
    ordered.map((step) => [el("code", {}, `${step.interface}.${step.step}`), {class: "num", children: step.priority}, args(step)])),
  ordered.some((step) => step.priority === 0) && empty("A step with priority 0 does not run; it turns off that of the driver."));

  fill(nodes, found.error ? notice(found.error, () => showTemplate(main, ident, signal)) : found.items.length === 0
    ? empty("No node has the trait ", el("code", {}, template.name), ". A rule can give it, by what it finds in an inventory.")
    : table("Nodes with this trait", ["Node", "State", "Driver", "Can run the steps"], found.items.map((node) => [
      {class: "name", children: el("a", {href: address("node", node.uuid)}, node.name || node.uuid)}, state(node.provision_state), node.driver,
      {class: "long", children: [node.supported ? el("span", {class: "good"}, "yes") : el("span", {class: "bad"}, "no"),
        [...node.problems, ...node.warnings].map((each) => el("div", {class: "dim"}, each.text ?? String(each)))]}])),
  found.more && empty("Shows the first 500."));
  fill(main, head, said, section("Steps, in order", steps), section("Nodes with this trait", nodes));
}

/** Return what keeps nodes from fitting, as the end of a sentence about one or several of them. */
function hindrance({count, lacks: {kind, name}}) {
  const [are, have] = count === 1 ? ["is", "has"] : ["are", "have"];
  const what = el("code", {}, name);
  if (kind === "state") return [`${are} `, el("em", {}, name)];
  if (kind === "forbidden trait") return [`${have} the forbidden trait `, what];
  return kind === "capability" ? [`${have} not the required capability `, what] : [`${have} not the required trait `, what];
}

async function showFlavor(main, ident, signal) {
  fill(main, el("h1", {}, "Flavor"), loading("Loading the flavor …", 8));
  const path = `/v1/flavors/${encodeURIComponent(ident)}`;
  const [{json: told, error}, stored] = await Promise.all([
    request("GET", `${path}/explanation`, {signal}), request("GET", path, {signal})]);
  const said = el("div", {});
  if (error) {
    fill(main, el("h1", {}, "Flavor"), notice(error, () => showFlavor(main, ident, signal)), el("p", {}, el("a", {href: address("templates")}, "All flavors")));
    return;
  }
  const links = (nodes) => nodes.map((node) => [el("a", {href: address("node", node.uuid)}, node.name || node.uuid), " "]);
  fill(main,
    el("div", {class: "head"}, el("h1", {}, told.flavor.name),
      el("span", {class: `state ${told.schedulable ? "good" : "bad"}`}, told.schedulable ? "schedulable" : "not schedulable"),
      el("a", {href: address("templates")}, "All flavors"), el("span", {class: "grow"}),
      stored.json && el("button", {onclick: () => editFlavor(stored.json.flavor, () => showFlavor(main, ident, signal))}, "Change …"),
      el("button", {onclick: () => remove("flavor", ident, told.flavor.name, said, "Instances that were created with it stay as they are.")}, "Delete …")),
    said, told.warnings.map((warning) => el("div", {class: "notice busy"}, el("p", {}, warning.text), warning.pointer && el("p", {}, "At ", el("code", {}, warning.pointer)))),
    el("div", {class: "columns"},
      section("Requirements", table("Requirements", ["Requirement", {text: "Nodes", class: "num"}, "Template"], [
        ["resource class ", el("code", {}, told.resource_class.name ?? "none"), told.resource_class.nodes, ""],
        ...told.required_traits.map((each) => ["trait ", el("code", {}, each.trait), each.nodes, each.deploy_template
          ? el("a", {href: address("templates", each.deploy_template.uuid)}, "its steps") : ""]),
        ...told.forbidden_traits.map((each) => ["forbidden: the trait ", el("code", {}, each.trait), each.nodes, ""]),
        ...told.capabilities.map((each) => ["capability ", el("code", {}, `${each.name}: ${each.value}`), each.nodes, ""]),
      ].map(([what, name, nodes, template]) => [[what, name], {class: "num", children: nodes}, template]))),
      section("Nodes", el("p", {}, told.fitting.count === 0 ? "No node fits now." : [el("strong", {}, told.fitting.count), told.fitting.count === 1 ? " fits now: " : " fit now: ", links(told.fitting.nodes)]),
        told.nearly_fitting.map((each) => el("p", {}, el("strong", {}, each.count), " would fit, but ", hindrance(each), ": ", links(each.nodes))))),
    section("Deployment steps", told.deployment.node ? el("p", {class: "dim"}, "On ", links([told.deployment.node])) : empty(told.deployment.reason ?? ""),
      told.deployment.node && stepTable(told.deployment)));
}
