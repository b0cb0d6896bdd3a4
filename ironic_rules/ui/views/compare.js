// Two machines beside each other, a machine and the majority of its product, or two reports of one machine. The address has both.

import {announce, el, fill, newId} from "../dom.js";
import {pages, request} from "../api.js";
import {address, go} from "../router.js";
import {writeJson} from "../json.js";
import {empty, showsError, icon, loading, notice, section, short, table} from "../parts.js";
import {differences, versionOptions} from "../differences.js";

export const title = "Compare";

// Facts that no two machines share: shown, but not counted as differences.
const IDENTITIES = new Set(["serial", "system_uuid", "asset_tag", "hostname", "macs", "bmc_address", "bmc_v6_address", "bmc_mac"]);
const FIELDS = {provision_state: "State", resource_class: "Resource class", driver: "Driver", owner: "Owner", traits: "Traits"};
const MOST = 500; // differences of whole inventories
const FACTS = 60; // in one request for counts

export async function show(main, {path: [left, right], query}, signal) {
  const result = el("div", {});
  fill(main, el("div", {class: "head"}, el("h1", {}, title)), await chooser(left, right, query, signal), result);
  if (!left) {
    fill(result, empty("Choose a machine: it is compared with another one, with the majority of its product, or with what it reported before."));
    return;
  }
  fill(result, loading("Comparing …", 16));
  const draw = query.has("to") ? reports : right ? machines : majority;
  const again = () => draw(result, {left, right, query, signal, again});
  await again();
  announce("Compared");
}

/** Return the form: a machine, and with what it is compared. */
async function chooser(left, right, query, signal) {
  const names = el("datalist", {id: newId("machines")});
  let asked = 0;
  const suggest = async ({target}) => {
    const number = (asked += 1);
    if (!target.value.trim()) return;
    const found = (await request("GET", `/v1/search?${new URLSearchParams({q: target.value.trim()})}`, {signal})).json?.results ?? [];
    // Serial numbers and the like are found as facts: their machines are asked for.
    const facts = await Promise.all(found.filter(({type, fact}) => type === "fact" && IDENTITIES.has(fact)).slice(0, 5).map(async ({where, fact, value}) =>
      (await request("GET", `/v1/nodes?${new URLSearchParams({where, fields: "uuid,name", limit: 5})}`, {signal})).json?.nodes.map((node) => ({...node, matched: fact, value})) ?? []));
    const nodes = [...found.filter(({type}) => type === "node"), ...facts.flat()];
    if (number === asked) fill(names, nodes.map((node) => el("option", {value: node.name ?? node.uuid}, `${node.matched} ${node.value}`)));
  };
  const machine = (name, label, value) => el("label", {class: "field"}, el("span", {}, label),
    el("input", {name, value, list: names.id, oninput: suggest, spellcheck: "false", autocomplete: "off", required: true, placeholder: "Name, serial, MAC …"}));
  const kind = query.has("to") ? "reports" : right || !left ? "machine" : "product";
  const others = el("span", {class: "bar", style: {"margin": "0"}});
  const option = (value, text) => el("option", {value, selected: value === kind}, text);
  const form = el("form", {class: "bar", "aria-label": "Comparison", onsubmit: (event) => {
    event.preventDefault();
    const {one, other, against, from, to} = Object.fromEntries(new FormData(form));
    const query = against === "reports" && to ? {from, to} : {};
    go(address("compare", one.trim(), ...(against === "machine" && other?.trim() ? [other.trim()] : []), query));
  }}, machine("one", "Machine", left), el("label", {class: "field"}, el("span", {}, "Compare with"),
    el("select", {name: "against", onchange: (event) => choose(event.target.value)}, option("machine", "another machine"),
      option("product", "the majority of its product"), option("reports", "an earlier report of it"))), others, el("button", {class: "primary"}, icon("git-compare"), "Compare"), names);
  const choose = async (wanted) => {
    if (wanted !== "reports") {
      fill(others, wanted === "machine" && machine("other", "Other machine", right));
      return;
    }
    const ident = form.elements.one.value.trim();
    const {items, error} = ident ? await pages(`/v1/nodes/${encodeURIComponent(ident)}/inventory/versions?sort_dir=desc`, "versions", {signal, most: 100}) : {items: []};
    const select = (name, label, chosen) => el("label", {class: "field"}, el("span", {}, label), el("select", {name}, versionOptions(items, chosen)));
    fill(others, error ? notice(error) : items.length < 2 ? empty(ident ? "This machine has fewer than two reports." : "Name the machine first.")
      : [select("from", "Earlier report", query.get("from") ?? items[1].version), select("to", "Later report", query.get("to") ?? items[0].version)]);
  };
  await choose(kind);
  return form;
}

async function reports(place, {left, query, signal, again}) {
  const {json, error} = await request("GET", `/v1/nodes/${encodeURIComponent(left)}/inventory/diff?${new URLSearchParams({from: query.get("from"), to: query.get("to")})}`, {signal});
  fill(place, error ? notice(error, again) : section("Changes between two reports", differences(json)));
}

/** Return a machine: {node, facts}, or {error}. */
async function read(ident, signal) {
  const base = `/v1/nodes/${encodeURIComponent(ident)}`;
  const [node, facts] = await Promise.all([request("GET", `${base}?fields=uuid,name,traits,${Object.keys(FIELDS).filter((name) => name !== "traits").join()}`, {signal}), request("GET", `${base}/facts`, {signal})]);
  return {node: node.json, facts: facts.json?.facts, error: node.error ?? facts.error};
}

async function definitions(signal) {
  const {items} = await pages("/v1/facts?limit=1000", "facts", {signal, most: 5000});
  return new Map(items.map((fact) => [fact.name, fact]));
}

function same(one, other) {
  return writeJson(one ?? null) === writeJson(other ?? null);
}

function value(of, unit, without = null) {
  if (of === undefined || of === null) return el("span", {class: "dim"}, "–");
  if (!Array.isArray(of)) return el("strong", {}, short(of), unit && ` ${unit}`);
  const shared = without ?? [];
  const own = of.filter((item) => !shared.some((each) => same(each, item)));
  return [own.map((item) => el("div", {}, el("code", {}, short(item)))), own.length < of.length && el("div", {class: "dim small"}, `${of.length - own.length} in common`)];
}

function described(fact, name) {
  return {class: "name", children: [fact?.description ?? FIELDS[name] ?? name, fact && el("div", {class: "dim small"}, el("code", {}, name))]};
}

/** Return a headline and a table; with a switch for what is equal. */
function compared(heading, columns, rows, counted) {
  const differing = rows.filter((row) => row.differs);
  const list = el("div", {});
  const draw = (all) => {
    const wanted = all ? rows : differing;
    fill(list, wanted.length === 0 ? empty("No difference.") : table(heading, columns(), wanted.map((row) => row.cells)));
  };
  draw(false);
  return [el("p", {}, el("span", {class: "big"}, String(differing.filter(counted).length)), ` of ${rows.filter(counted).length} differ`),
    el("label", {class: "choice"}, el("input", {type: "checkbox", onchange: (event) => draw(event.target.checked)}), "Show what is equal, too"), list];
}

async function machines(place, {left, right, signal, again}) {
  const [one, other, known] = await Promise.all([read(left, signal), read(right, signal), definitions(signal)]);
  if (showsError(place, one.error ?? other.error, again)) return;
  const named = [one, other].map(({node}) => node.name ?? node.uuid);
  const row = (name, a, b, fact) => ({name, differs: !same(a, b), cells: [described(fact, name), value(a, fact?.unit, b), value(b, fact?.unit, a)]});
  const all = [...known.keys()].filter((name) => one.facts[name] !== undefined || other.facts[name] !== undefined);
  const rows = [...Object.keys(FIELDS).map((name) => row(name, one.node[name] ?? null, other.node[name] ?? null)),
    ...all.map((name) => row(name, one.facts[name], other.facts[name], known.get(name)))];
  const counted = ({name}) => !IDENTITIES.has(name);
  const columns = () => ["Fact", ...named.map((name) => ({text: el("a", {href: address("node", name)}, name)}))];
  const [own, identities] = [rows.filter(counted), rows.filter((each) => !counted(each))];
  const whole = el("details", {ontoggle: () => { if (whole.open && inventories.childElementCount === 0) compareInventories(inventories, left, right, named, signal); }},
    el("summary", {}, "All of both inventories"));
  const inventories = el("div", {});
  whole.append(inventories);
  fill(place, section("Differences", compared("Differences", columns, own, counted)),
    identities.length > 0 && section("Their own", table("Facts that no two machines share", columns(), identities.map((each) => each.cells))), el("section", {"aria-label": "Inventories"}, whole));
}

/** Yield the path of each value of JSON, with the value. */
function* leaves(of, path = "") {
  const entries = of !== null && typeof of === "object" ? Object.entries(of) : [];
  if (entries.length === 0) yield [path, of];
  for (const [key, item] of entries) yield* leaves(item, `${path}/${key}`);
}

async function compareInventories(place, left, right, named, signal) {
  fill(place, loading("Comparing …", 6));
  const [one, other] = await Promise.all([left, right].map((ident) => request("GET", `/v1/nodes/${encodeURIComponent(ident)}/inventory`, {signal})));
  if (showsError(place, one.error ?? other.error, () => compareInventories(place, left, right, named, signal))) return;
  const [a, b] = [one, other].map(({json}) => new Map(leaves(json.inventory)));
  const paths = [...new Set([...a.keys(), ...b.keys()])].filter((path) => !same(a.get(path), b.get(path)));
  const cell = (of, path) => (of.has(path) ? el("code", {}, short(of.get(path))) : el("span", {class: "dim"}, "–"));
  fill(place, el("p", {class: "dim"}, `${paths.length} values differ. Lists are compared by position.`),
    table("Differences of the inventories", ["Path", ...named], paths.slice(0, MOST).map((path) => [el("code", {}, path), cell(a, path), cell(b, path)])),
    paths.length > MOST && empty(`Shows the first ${MOST}.`));
}

async function majority(place, {left, signal, again}) {
  const [one, known] = await Promise.all([read(left, signal), definitions(signal)]);
  const product = one.facts?.product;
  if (one.error || product === undefined) {
    fill(place, one.error ? notice(one.error, again) : empty("The product of this machine is not known yet. ", el("a", {href: address("node", left)}, "Inspect it first.")));
    return;
  }
  const wanted = [...known.values()].filter(({name, origin}) => name !== "product" && !IDENTITIES.has(name) && (origin === "built-in" || one.facts[name] !== undefined));
  const where = `fact[product] = "${String(product).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  const chunks = Array.from({length: Math.ceil(wanted.length / FACTS)}, (_, index) => wanted.slice(index * FACTS, (index + 1) * FACTS));
  const replies = await Promise.all(chunks.map((chunk) => request("GET", `/v1/facts/values?${new URLSearchParams({facts: chunk.map(({name}) => name).join(), where, limit: 200})}`, {signal})));
  const failed = replies.find(({error}) => error);
  if (failed) {
    fill(place, notice(failed.error, again));
    return;
  }
  const total = replies[0].json.nodes;
  const rows = replies.flatMap(({json}) => json.facts).map((counts) => {
    const fact = known.get(counts.fact);
    const own = one.facts[counts.fact];
    const usual = counts.values.filter(({nodes}) => nodes * 2 > total);
    const [most] = usual;
    const lacking = counts.absent * 2 > total;
    const common = counts.is_list ? usual.map((each) => each.value) : most?.value;
    const differs = counts.is_list ? !lacking && (own ?? []).some((item) => !common.some((each) => same(each, item))) || common.some((item) => !(own ?? []).some((each) => same(each, item)))
      : most !== undefined ? !same(own, common) : lacking && own !== undefined;
    const told = counts.is_list ? value(common, fact.unit, own ?? []) : most ? value(common, fact.unit) : el("span", {class: "dim"}, lacking ? "–" : "no majority");
    const number = counts.is_list ? "" : most ? `${most.nodes} of ${total}` : lacking ? `${counts.absent} of ${total}` : "";
    return {name: counts.fact, differs, cells: [described(fact, counts.fact), value(own, fact.unit, counts.is_list ? common : null), told, {class: "num", children: number}]};
  });
  const name = one.node.name ?? one.node.uuid;
  fill(place, el("p", {}, `${total} ${total === 1 ? "machine is" : "machines are"} a `, el("strong", {}, short(product)), ". More than half of them decide what is usual."),
    section("Differences from the majority", compared("Differences from the majority", () => ["Fact", {text: el("a", {href: address("node", name)}, name)}, "Usual", {text: "Machines", class: "num"}], rows, () => true)));
}
