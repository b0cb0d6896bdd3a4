// The fleet: how many nodes are in which state, why some failed, which wait longest, and all of them as a table that the
// API filters, sorts and pages. Numbers and rows are requested again every few seconds.

import {announce, el, fill, when} from "../dom.js";
import {fromLink, poll, repeat, request, setPath} from "../api.js";
import {address, go} from "../router.js";
import {shortcut} from "../shortcuts.js";
import {ago, empty, keepingFocus, loading, nodeLink, notice, section, startOperation, state, table, timeOf} from "../parts.js";
import {line} from "../messages.js";
import {choosing} from "../many.js";

export const title = "Fleet";

const FIELDS = "uuid,name,provision_state,provision_updated_at,last_error,resource_class,maintenance";
const FILTERS = ["provision_state", "failure", "resource_class", "owner", "description_contains"];
const PAGE = 100;
const MOST_REASONS = 20;
const EVERY_S = 5;

export async function show(main, {query}, signal) {
  const filters = Object.fromEntries(FILTERS.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  const sorted = query.get("sort_key") ?? ""; // by creation, which needs no sorting
  const direction = query.get("sort_dir") ?? "asc";
  const isWhole = Object.keys(filters).length === 0 && !query.get("marker");
  const total = el("span", {class: "dim", role: "status"});
  const counts = el("div", {class: "counts"}, loading("Counting …", 2));
  const failures = el("div", {}, loading("Loading …", 3));
  const waiting = el("div", {}, loading("Loading …", 3));
  const refused = el("div", {}, loading("Loading …", 3));
  const common = el("div", {class: "common"}, filters.failure && loading("Loading the reason …", 2));
  const list = el("div", {class: "list"}, loading("Loading nodes …", 14));
  const many = choosing(filters);
  fill(main, el("div", {class: "head"}, el("h1", {}, title), total), counts,
    isWhole && el("div", {class: "columns panels"}, section("Failed, by reason", failures), section("Waiting longest", waiting),
      section("Refused callbacks", refused)), common,
    bar(filters, sorted, direction), list, many.bar);
  shortcut("/", "Filter the nodes", () => main.querySelector("form input")?.focus(), signal);

  const wanted = new URLSearchParams({...filters, fields: FIELDS, sort_dir: direction, limit: PAGE});
  if (sorted) wanted.set("sort_key", sorted);
  if (query.get("marker")) wanted.set("marker", query.get("marker"));
  let refresh = () => null;
  const tasks = [
    filters.failure && explain(common, filters.failure, signal),
    // Another node may wait while the numbers stay the same.
    repeat(() => refresh(), {signal, seconds: 3 * EVERY_S}),
    poll("/v1/node_states", {signal, seconds: EVERY_S}, ({json, error, headers}) => {
      if (error) {
        fill(counts, notice(error));
        if (isWhole) fill(waiting, refusal(error));
        return;
      }
      const all = json.node_states.reduce((sum, entry) => sum + entry.count, 0);
      fill(total, `${all.toLocaleString()} ${all === 1 ? "node" : "nodes"}`);
      keepingFocus(counts, () => fill(counts, all > 0 && chip("all", all, {}, isWhole, null),
        json.node_states.map(({provision_state: name, count}) => chip(name, count, {provision_state: name},
          filters.provision_state === name, name))));
      if (isWhole) {
        const states = json.node_states.map((entry) => entry.provision_state);
        const [at, seen] = [timeOf(headers), performance.now()];
        refresh = () => showWaiting(waiting, states.filter((name) => /wait/.test(name)), at + performance.now() - seen, signal);
        refresh().catch(left);
      }
    }),
    poll(`/v1/nodes?${wanted}`, {signal, seconds: EVERY_S}, ({json, error}, again) => {
      const isFirst = list.querySelector("[aria-busy]") !== null;
      if (error) {
        fill(list, notice(error, again));
        return;
      }
      keepingFocus(list, () => fill(list, nodes(json, filters, sorted, direction, many)));
      if (isFirst) announce(`${json.nodes.length} nodes${json.next ? ", and more on the next page" : ""}`);
    }),
  ];
  if (isWhole) {
    tasks.push(poll(`/v1/node_failures?limit=${MOST_REASONS}`, {signal, seconds: EVERY_S}, ({json, error}) => keepingFocus(
      failures, () => fill(failures, error ? refusal(error) : json.groups === 0 ? empty("No node has failed.") : listFailures(json)))));
    tasks.push(poll("/v1/inspection_journal?sort_key=seen_at&sort_dir=desc&limit=5", {signal, seconds: EVERY_S},
      ({json, error, headers}) => keepingFocus(refused, () => fill(refused, error ? refusal(error) : json.inspection_journal.length === 0
        ? empty("None: every machine that called was let in.") : el("ul", {class: "plain"}, json.inspection_journal.map((entry) => el("li", {},
          el("a", {href: address("journal", entry.uuid)}, entry.macs[0] ?? entry.source ?? entry.uuid),
          el("span", {class: "dim"}, ` ${entry.reason}, ${ago(entry.seen_at, timeOf(headers))} ago`)))),
      json?.next && el("p", {}, el("a", {href: address("journal")}, "All of them"))))));
  }
  await Promise.all(tasks);
}

function left(error) {
  if (error.name !== "AbortError") throw error;
}

/** A part that the person may not see is said quietly, where the rest of the view is useful. */
function refusal(error) {
  return error.status === 403 ? empty(error.text) : notice(error);
}

function chip(text, count, filters, isCurrent, name) {
  return el("a", {class: "chip", href: address("fleet", filters), "aria-current": isCurrent ? "true" : null},
    el("span", {class: "chip-count"}, count.toLocaleString()), name === null ? text : state(name));
}

function bar(filters, sorted, direction) {
  const input = (name, attributes = {}) => el("input", {name, value: filters[name] ?? "", spellcheck: "false", autocomplete: "off", ...attributes});
  const form = el("form", {class: "bar", role: "search", "aria-label": "Nodes", onsubmit: (event) => {
    event.preventDefault();
    const wanted = Object.fromEntries(new FormData(form));
    const {ident, ...others} = wanted;
    if (ident) go(address("node", ident.trim()));
    else go(address("fleet", {provision_state: filters.provision_state, failure: filters.failure, ...others}));
  }},
  el("label", {class: "field"}, el("span", {}, "Open a node by name or UUID"), input("ident", {size: 30})),
  el("label", {class: "field"}, el("span", {}, "Resource class"), input("resource_class", {size: 14})),
  el("label", {class: "field"}, el("span", {}, "Owner"), input("owner", {size: 14})),
  el("label", {class: "field"}, el("span", {}, "Description has"), input("description_contains", {size: 14})),
  el("button", {}, "Apply"),
  Object.keys(filters).length > 0 && el("a", {class: "button", href: address("fleet", sorted ? {sort_key: sorted, sort_dir: direction} : {})}, "Clear"),
  el("span", {class: "grow"}),
  el("button", {type: "button", class: "quiet", onclick: () => startOperation("Try the rules on these nodes?",
    "Hooks and rules run over the data of their last inspections. Nothing is changed.", "Try",
    setPath("/v1/nodes/reapply", filters), {dry_run: true})}, "Dry run on these …"),
  el("button", {type: "button", class: "quiet", onclick: () => startOperation("Apply hooks and rules again to these nodes?",
    "Over the data of their last inspections. What they change is saved. Nodes with an instance are left out.", "Apply",
    setPath("/v1/nodes/reapply", filters), {})}, "Apply again …"));
  return form;
}

function nodes(json, filters, sorted, direction, many) {
  const column = (key, text) => ({text, sorted: sorted === key ? `${direction}ending` : null,
    sort: () => go(address("fleet", {...filters, sort_key: key, sort_dir: sorted === key && direction === "asc" ? "desc" : "asc"}))});
  if (json.nodes.length === 0) {
    return Object.keys(filters).length > 0 ? empty("No node is like this. ", el("a", {href: address("fleet")}, "Show all"))
      : empty("There is no node yet. ", el("code", {}, "ironic-rules --demo"), " makes some, and ",
        el("code", {}, "openstack baremetal node create"), " enrols yours.");
  }
  const marker = json.next && new URLSearchParams(fromLink(json.next).split("?")[1]).get("marker");
  return [table("Nodes", [
    {text: many.head(json.nodes), class: "pick"}, column("name", "Name"), column("provision_state", "State"), column("provision_updated_at", "Since"),
    column("resource_class", "Resource class"), "Last error",
  ], json.nodes.map((node) => [
    {class: "pick", children: many.box(node)}, {class: "name", children: [nodeLink(node), node.maintenance && [" ", el("span", {class: "tag"}, "maintenance")]]},
    {class: "nowrap", children: state(node.provision_state)},
    {class: "nowrap", children: when(node.provision_updated_at)}, node.resource_class,
    {class: "long", children: el("div", {class: "clamp", onmouseenter: (event) => { event.currentTarget.title = event.currentTarget.textContent; }},
      node.last_error && line(node.last_error))},
  ])),
  marker && el("p", {}, el("a", {class: "button", href: address("fleet", {...filters, sort_key: sorted, sort_dir: direction, marker})}, "Next page"))];
}

function listFailures({groups, node_failures: found}) {
  return [el("ul", {class: "plain"}, found.map((group) => el("li", {},
    el("a", {href: address("fleet", {failure: group.failure})}, el("strong", {}, group.count.toLocaleString()), ` ${group.provision_state}`),
    " ", said(group)))),
  groups > found.length && empty(`These are the ${found.length} most frequent of ${groups.toLocaleString()} reasons.`)];
}

function said({reason}) {
  return reason === "" ? "no error is stored" : line(reason);
}

/** Say which reason the nodes of the list have in common. */
async function explain(place, failure, signal) {
  const {json, error} = await request("GET", "/v1/node_failures", {signal});
  const group = json?.node_failures?.find((each) => each.failure === failure);
  fill(place, error ? notice(error, () => explain(place, failure, signal)) : el("div", {class: "notice"}, el("p", {}, group
    ? [state(group.provision_state), " ", said(group)] : "No node has failed for this reason any more.")));
}

async function showWaiting(place, states, now, signal) {
  const found = [];
  for (const name of states) {
    const {json, error} = await request("GET", `/v1/nodes?provision_state=${encodeURIComponent(name)}&fields=uuid,name,provision_state,provision_updated_at`
      + "&sort_key=provision_updated_at&sort_dir=asc&limit=6", {signal});
    if (error) {
      fill(place, notice(error));
      return;
    }
    found.push(...json.nodes);
  }
  found.sort((a, b) => Date.parse(a.provision_updated_at) - Date.parse(b.provision_updated_at));
  keepingFocus(place, () => fill(place, found.length === 0 ? empty("No node waits for its machine.")
    : el("ul", {class: "plain"}, found.slice(0, 6).map((node) => el("li", {}, nodeLink(node), " ", state(node.provision_state),
      el("span", {class: "dim"}, ` ${ago(node.provision_updated_at, now)}`))))));
}
