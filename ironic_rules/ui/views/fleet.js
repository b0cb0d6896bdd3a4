// The fleet: how many nodes are in which state, how inspections ended, why nodes failed, and all nodes as a table that a
// question narrows. The address keeps the question, the order and the columns. What others change appears by itself.

import {announce, el, fill} from "../dom.js";
import {poll, request, setPath} from "../api.js";
import {address, go} from "../router.js";
import {confirmed, empty, keepingFocus, kindOf, loading, nextPage, nodeLink, notice, relative, section, short, startOperation, state, table, timeOf} from "../parts.js";
import {line} from "../messages.js";
import {bars, stackedBar, stackedColumns} from "../plots.js";
import {counted, showFacets} from "../facets.js";
import {choosing} from "../many.js";
import {suggesting} from "../search.js";
import {completions, joined, partsOf, quoted, toggled} from "../where.js";

export const title = "Fleet";

const FIELDS = "uuid,name,provision_state,provision_updated_at,last_error,resource_class,maintenance";
/** Parameters of older addresses, as clauses. */
const OLDER = {provision_state: (value) => `state = ${quoted(value)}`, resource_class: (value) => `resource_class = ${quoted(value)}`,
  owner: (value) => `owner = ${quoted(value)}`, description_contains: (value) => `description contains ${quoted(value)}`};
const PAGE = 100;
const MOST_CAUSES = 8;
/** Nodes that have waited longest: as many as the panel has room for. */
const LONGEST = 5;
const EVERY_S = 5;
const OUTCOMES = [["good", "finished"], ["bad", "failed"], ["busy", "timed out"], ["plain", "aborted"]];
const LAST_DAY = "Inspections of the last 24 hours";

/** State of the list: `where`, a clause; `failure`, a cause; `columns`, names of facts; and the order. */
let query = {where: "", failure: "", columns: "", sort_key: "", sort_dir: ""};
let vocabulary = null; // a promise of it

/** Return what selects the nodes that are listed, as parameters of requests for nodes. */
function filters() {
  return Object.fromEntries(Object.entries({where: query.where, failure: query.failure}).filter(([, value]) => value));
}

function to(changes) {
  return address("fleet", {...query, ...changes});
}

export async function show(main, {query: given}, signal) {
  const older = Object.keys(OLDER).filter((name) => given.get(name)).map((name) => OLDER[name](given.get(name)));
  query = Object.fromEntries(Object.keys(query).map((name) => [name, given.get(name) ?? ""]));
  query.where = joined([...partsOf(query.where), ...older]);
  const marker = given.get("marker");
  const isWhole = !query.where && !query.failure && !marker;
  const [selected, total] = [el("strong", {}), el("span", {})];
  const [list, facets, common] = [el("div", {class: "list"}, loading("Loading nodes …", 14)),
    el("aside", {"aria-label": "Filter by value"}), el("div", {class: "common"}, query.failure && loading("Loading the cause …", 2))];
  const [states, day, failures, waiting, rejected] = [["Counting …", 3], ["Loading …", 4], ["Loading …", 3], ["Loading …", 3], ["Loading …", 3]]
    .map(([text, lines]) => el("div", {}, loading(text, lines)));
  const many = choosing(filters());
  fill(main, el("div", {class: "head"}, el("h1", {}, title), el("span", {class: "dim", role: "status"}, selected, total)),
    el("div", {class: "columns strip"}, section("States", states), section(LAST_DAY, day)),
    isWhole && el("div", {class: "columns panels"}, section("Failures by cause", failures), section("Waiting longest", waiting),
      section("Rejected reports", rejected)),
    common, bar(), el("div", {class: "with-facets"}, facets, list), many.bar);

  const {columns, sort_key: sorted} = query;
  const wanted = new URLSearchParams({...filters(), fields: FIELDS, limit: PAGE, ...(columns && {facts: columns}),
    ...(sorted && {sort_key: sorted, sort_dir: query.sort_dir || "asc"}), ...(marker && {marker})});
  let listed = () => {};
  const isListed = new Promise((resolve) => { listed = resolve; });
  await Promise.all([
    query.failure && explain(common, query.failure, signal),
    poll(`/v1/nodes?${wanted}`, {signal, seconds: EVERY_S}, ({json, error, headers}, again) => {
      const isFirst = list.querySelector("[aria-busy]") !== null;
      listed();
      if (error) {
        fill(list, notice(error, error.status === 400 ? null : again));
        return;
      }
      keepingFocus(list, () => fill(list, nodes(json, timeOf(headers), many)));
      if (isFirst) announce(`${json.nodes.length} nodes${json.next ? ", and more on the next page" : ""}`);
    }),
    poll("/v1/node_states", {signal, seconds: EVERY_S}, ({json, error}) => {
      if (error) {
        fill(states, refusal(error));
        return;
      }
      const all = json.node_states.reduce((sum, entry) => sum + entry.count, 0);
      fill(total, `${all.toLocaleString()} ${all === 1 ? "node" : "nodes"}`);
      keepingFocus(states, () => fill(states, all === 0 ? empty("No nodes yet.") : showStates(json.node_states)));
      counted.state ??= json.node_states.map((entry) => entry.provision_state);
    }),
    isWhole && poll(setPath("/v1/nodes", {where: "state contains wait", fields: "uuid,name,provision_state,provision_updated_at",
      sort_key: "provision_updated_at", limit: LONGEST}), {signal, seconds: EVERY_S},
    ({json, error, headers}) => keepingFocus(waiting, () => fill(waiting, error ? refusal(error) : listWaiting(json, timeOf(headers))))),
    isListed.then(() => Promise.all([
      showFacets(facets, query, {to: (where) => to({where}), tell: (number) => {
        fill(selected, query.where || query.failure ? `${number.toLocaleString()} of ` : "");
      }}, signal),
      poll("/v1/inspection_outcomes", {signal, seconds: 2 * EVERY_S}, ({json, error}) => keepingFocus(day, () => fill(day,
        error ? refusal(error) : showDay(json.inspection_outcomes)))),
      isWhole && poll(`/v1/node_failures?limit=${MOST_CAUSES}`, {signal, seconds: EVERY_S}, ({json, error}) => keepingFocus(
        failures, () => fill(failures, error ? refusal(error) : json.groups === 0 ? empty("No node has failed.") : listCauses(json)))),
      isWhole && poll("/v1/inspection_journal?sort_key=seen_at&sort_dir=desc&limit=5", {signal, seconds: EVERY_S},
        ({json, error, headers}) => keepingFocus(rejected, () => fill(rejected, error ? refusal(error) : listRejected(json, timeOf(headers))))),
    ])),
  ]);
}

/** A part that the person may not see is said quietly, where the rest of the view is useful. */
function refusal(error) {
  return error.status === 403 ? empty(error.text) : notice(error);
}

// ---- the strip

function showStates(found) {
  const entries = found.map(({provision_state: name, count}) => ({text: name, count, kind: kindOf(name),
    part: `state = ${quoted(name)}`}));
  return [stackedBar("Nodes by state", entries.map((entry) => ({...entry, to: address("fleet", {where: entry.part})}))),
    el("div", {class: "counts"}, entries.map(({text, count, part}) => el("a", {class: "chip", href: address("fleet", {where: part}),
      "aria-current": query.where === part ? "true" : null}, el("span", {class: "chip-count"}, count.toLocaleString()), " ", state(text))))];
}

function showDay(hours) {
  const at = (iso) => new Date(iso).toLocaleTimeString(undefined, {hour: "2-digit", minute: "2-digit"});
  const sums = OUTCOMES.map(([, name]) => hours.reduce((sum, hour) => sum + hour[name.replace(" ", "_")], 0));
  if (sums.every((sum) => sum === 0)) return empty("No inspection has ended in this time.");
  return [el("p", {}, OUTCOMES.map(([kind, name], place) => (sums[place] > 0 || place < 2) && [
    el("span", {class: `swatch fill-${kind}`, "aria-hidden": "true"}), ` ${sums[place].toLocaleString()} ${name} `])),
  stackedColumns(LAST_DAY, hours.map((hour) => ({text: at(hour.from),
    counts: OUTCOMES.map(([, name]) => hour[name.replace(" ", "_")])})), OUTCOMES)];
}

function listCauses({groups, node_failures: found}) {
  return [bars("Failures by cause", found.map((group) => ({count: group.count, to: address("fleet", {failure: group.failure}),
    title: `${group.provision_state}: ${group.reason}`, text: [cause(group)]}))),
  groups > found.length && empty(`Shows the ${found.length} most frequent of ${groups.toLocaleString()} causes.`)];
}

/** Return what failed, by its name, and its message; not a link, as it may be in one. */
function cause({rule, hook, name, reason, provision_state: where}) {
  const by = rule ? name ?? "a deleted rule" : hook ? `hook ${name}` : where;
  return [el("strong", {}, by), " ", el("span", {class: "dim"}, reason === "" ? "no error is stored" : line(reason, 200))];
}

/** Say which cause the nodes of the list have in common. */
async function explain(place, failure, signal) {
  const {json, error} = await request("GET", "/v1/node_failures", {signal});
  const group = json?.node_failures?.find((each) => each.failure === failure);
  fill(place, error ? notice(error, () => explain(place, failure, signal)) : el("div", {class: "notice"}, el("p", {}, group
    ? [state(group.provision_state), " ", cause(group), group.rule && group.name && [" ", el("a", {href: address("rules", {text: group.name})}, "Show the rule")]]
    : "No node fails for this cause any more.")));
}

function listWaiting({nodes}, now) {
  return nodes.length === 0 ? empty("No node waits for its machine.") : el("ul", {class: "plain"}, nodes.map((node) => el("li", {},
    nodeLink(node), " ", state(node.provision_state), " ", el("span", {class: "dim"}, relative(node.provision_updated_at, now)))));
}

function listRejected({inspection_journal: entries, next}, now) {
  return entries.length === 0 ? empty("None: the report of every machine was accepted.") : [
    el("ul", {class: "plain"}, entries.map((entry) => el("li", {},
      el("a", {href: address("journal", entry.uuid)}, entry.macs[0] ?? entry.source ?? "a machine without a MAC address"),
      el("span", {class: "dim"}, ` ${entry.reason}, `, relative(entry.seen_at, now))))),
    next && el("p", {}, el("a", {href: address("journal")}, "All of them"))];
}

// ---- the question

function bar() {
  const said = el("div", {role: "alert"});
  const field = suggesting({label: "Filter", name: "where", placeholder: "vendor = Dell and memory_gib >= 512", size: 44,
    find: async (text) => {
      const known = await (vocabulary ??= readVocabulary());
      if (!known) return [];
      const {from, options} = completions(text, known, counted);
      return options.map((option) => ({taken: `${text.slice(0, from)}${option} `, children: el("code", {}, option)}));
    },
    choose: ({taken}, input) => {
      input.value = taken;
      input.focus();
      input.dispatchEvent(new Event("input"));
    }});
  const form = el("form", {class: "bar", role: "search", "aria-label": "Nodes", onsubmit: async (event) => {
    event.preventDefault();
    field.close();
    await ask(field.input, said);
  }},
  el("div", {class: "field"}, el("span", {"aria-hidden": "true"}, "Filter"), el("div", {class: "suggesting"}, field.input, field.list)),
  el("button", {}, "Add filter"), el("span", {class: "grow"}),
  el("button", {type: "button", class: "quiet", onclick: chooseColumns}, "Columns …"),
  el("button", {type: "button", class: "quiet", onclick: () => startOperation("Dry run on these nodes?",
    "Hooks and rules run over the data of the last inspection. Nothing is changed.", "Dry run",
    setPath("/v1/nodes/reapply", filters()), {dry_run: true})}, "Dry run …"));
  return [form, said, chips()];
}

function chips() {
  const parts = partsOf(query.where);
  const chip = (text, to) => el("a", {class: "chip", href: to, "aria-label": `Remove filter ${text}`}, el("code", {}, text), el("span", {"aria-hidden": "true"}, "×"));
  return (parts.length > 0 || query.failure) && el("div", {class: "counts chips", role: "group", "aria-label": "Filters"},
    parts.map((part) => chip(part, to({where: toggled(query.where, part)}))), query.failure && chip("cause of failure", to({failure: ""})),
    el("a", {class: "button", href: to({where: "", failure: ""})}, "Clear"));
}

/** Add what was typed to the question, if the service understands it; else show where it does not. */
async function ask(input, said) {
  const typed = input.value.trim();
  if (typed === "") return;
  const clause = /^[\w.:-]+$/.test(typed) ? `name contains ${typed}` : typed;
  const {error} = await request("GET", setPath("/v1/nodes", {where: clause, limit: 1, fields: "uuid"}));
  if (!error) {
    go(to({where: joined([...partsOf(query.where), ...(partsOf(clause).length > 1 ? partsOf(clause) : [clause])])}));
    return;
  }
  const column = Number(/column (\d+)/.exec(error.text)?.[1] ?? 0);
  const near = /did you mean '(.+?)'\?/.exec(error.text)?.[1];
  fill(said, el("div", {class: "notice bad"}, column > 0 && el("pre", {}, clause.slice(0, column - 1), el("mark", {}, clause.slice(column - 1) || " ")),
    el("p", {}, error.text.replace(/^where: /, "")), near && el("button", {onclick: () => {
      input.value = clause.slice(0, column - 1) + clause.slice(column - 1).replace(/^[^\s=!<>]+/, near);
      fill(said);
      input.focus();
    }}, `Use ${near}`)));
  input.focus();
  if (column > 0 && clause === typed) input.setSelectionRange(column - 1, typed.length);
}

async function readVocabulary() {
  const {json, error} = await request("GET", "/v1/facts/vocabulary");
  if (error) vocabulary = null;
  return json?.names ? json : null;
}

async function chooseColumns() {
  const known = await (vocabulary ??= readVocabulary());
  const chosen = query.columns.split(",").filter(Boolean);
  const form = el("div", {class: "choices", tabindex: "0", role: "group", "aria-label": "Facts"},
    known?.names.filter((name) => name.of === "fact").map(({name, unit}) => el("label", {class: "choice"},
      el("input", {type: "checkbox", value: name, checked: chosen.includes(name)}), name, unit && el("span", {class: "dim"}, unit))) ?? empty("Facts cannot be read."));
  if (!await confirmed("Facts as columns", "Show", form)) return;
  go(to({columns: [...form.querySelectorAll("input:checked")].map((box) => box.value).join(",")}));
}

// ---- the list

/** Return the columns: `head`, as of a table, and `cell(node, now)`. Others may be put before or after them. */
function columnsOf() {
  const {sort_key: sorted, sort_dir: direction} = query;
  const by = (key, text) => ({text, sorted: sorted === key ? `${direction || "asc"}ending` : null,
    sort: () => go(to({sort_key: key, sort_dir: sorted === key && direction !== "desc" ? "desc" : "asc"}))});
  return [
    {head: by("natural_name", "Name"), cell: (node) => ({class: "name", children: [nodeLink(node), node.maintenance && [" ", el("span", {class: "tag"}, "maintenance")]]})},
    {head: by("provision_state", "State"), cell: (node) => ({class: "nowrap", children: state(node.provision_state)})},
    {head: by("provision_updated_at", "Since"), cell: (node, now) => ({class: "nowrap", children: relative(node.provision_updated_at, now)})},
    {head: by("resource_class", "Resource class"), cell: (node) => ({class: "nowrap", children: node.resource_class})},
    ...query.columns.split(",").filter(Boolean).map((name) => ({head: by(`fact:${name}`, name), cell: ({facts}) => {
      const value = facts?.[name] ?? null;
      return {class: typeof value === "number" ? "num" : null, children: value === null ? "" : short([value].flat().join(", "), 80)};
    }})),
    {head: "Last error", cell: (node) => ({class: "long", children: node.last_error && el("div", {class: "clamp", onmouseenter: (event) => {
      event.currentTarget.title = event.currentTarget.textContent;
    }}, line(node.last_error))})},
  ];
}

function nodes(json, now, many) {
  if (json.nodes.length === 0) {
    return query.where || query.failure ? empty("No nodes match. ", el("a", {href: address("fleet")}, "Show all"))
      : empty("There are no nodes yet. ", el("code", {}, "ironic-rules --demo"), " makes some, and ",
        el("code", {}, "openstack baremetal node create"), " enrolls yours.");
  }
  const pick = {head: {text: many.head(json.nodes), class: "pick"}, cell: (node) => ({class: "pick", children: many.box(node)})};
  const columns = [pick, ...columnsOf()];
  return [table("Nodes", columns.map(({head}) => head), json.nodes.map((node) => columns.map(({cell}) => cell(node, now)))),
    nextPage(json, (marker) => to({marker}))];
}
