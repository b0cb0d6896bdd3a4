// One node: why it failed, what its inspections did, and what it is made of.

import {announce, el, fill, shown, when} from "../dom.js";
import {pages, poll, request} from "../api.js";
import {address, go} from "../router.js";
import {shortcut} from "../shortcuts.js";
import {confirmed, empty, keepingFocus, loading, notice, ruleLink, section, short, startOperation, state, table} from "../parts.js";
import {tree} from "../tree.js";
import {differences} from "../differences.js";
import {changeList} from "../changes.js";
import {stepTable} from "../steps.js";
import {begin, benchOf, isOver} from "../guide.js";
import {called, lines, named} from "../messages.js";

export const title = "Node";

const STAGES = ["wait", "lookup", "queue", "receive", "hooks", "rules", "finish", "commit"];
// What can be begun here, and in which states the service accepts it.
const REST = ["manageable", "available", "inspect failed"];
const ACTIONS = {manage: ["enroll"], inspect: REST, reapply: ["enroll", ...REST], abort: ["inspect wait"]};
const KINDS = {ramdisk: "inspection", "out-of-band": "out-of-band inspection", reapply: "rules applied again"};

export async function show(main, {path}, signal) {
  const [ident] = path;
  const base = `/v1/nodes/${encodeURIComponent(ident)}`;
  const head = el("div", {class: "head"}, el("h1", {}, "Node"), el("span", {class: "dim"}, ident));
  const actions = el("div", {class: "buttons"});
  const refused = el("div", {});
  const why = el("div", {});
  const [timeline, traits, ports, steps, callbacks] = Array.from({length: 5}, () => el("div", {}));
  const inventory = el("div", {}, loading("Loading the inventory …", 16));
  // All parts at once, so that nothing that is read already moves: the reason first, then what there is to know.
  const parts = [
    el("div", {class: "columns"}, section("Time line", timeline),
      el("div", {class: "stack sections"}, section("Traits", traits), section("Ports", ports),
        section("What a deployment runs", steps), section("Refused callbacks that came near", callbacks))),
    section("Inventory", inventory)];
  const below = el("div", {});
  const wait = () => fill(below, loading("Loading the node …", 40));
  fill(main, head, wait());

  const names = rules(signal);
  let version = null; // of the inspection that the time line shows as the newest
  let stamp = null;
  const reload = async () => {
    const [newest] = await Promise.all([
      showTimeline(timeline, base, names, signal, why),
      showTable(ports, `${base}/ports/detail`, "ports", "Ports", ["Address", "PXE", "Physical network", "Switch"], (port) => [
        {class: "nowrap", children: el("code", {}, port.address)}, port.pxe_enabled ? "yes" : "no", port.physical_network ?? "",
        [port.local_link_connection?.switch_info ?? port.local_link_connection?.switch_id ?? "",
          port.local_link_connection?.port_id ? ` ${port.local_link_connection.port_id}` : ""]],
      "No port. An inspection adds those that the machine reports.", signal),
      showSteps(steps, base, signal),
      showTraits(traits, base, names, signal),
      showTable(callbacks, `${base}/inspection_journal`, "inspection_journal", "Refused callbacks",
        ["Last", "Why", "From", "Times"], (entry) => [
          {class: "nowrap", children: el("a", {href: address("journal", entry.uuid)}, when(entry.seen_at))},
          {class: "long", children: [entry.reason, entry.detail && el("div", {class: "dim"}, named(entry.detail))]}, entry.source,
          {class: "num", children: entry.times}],
        "None: no machine with an address of this node was turned away.", signal),
    ]);
    if (!below.contains(timeline)) fill(below, parts);
    const seen = newest?.[0]?.inventory_id ?? null;
    if (version === null || seen !== version) {
      version = seen ?? 0;
      await showInventory(inventory, base, newest ?? [], signal);
    }
  };

  let before = null; // the provision state
  const update = ({json: node, error}, again) => {
    if (error) {
      if (stamp === null) fill(main, el("h1", {}, "Node"), notice(error, again));
      else fill(why, notice(error, again));
      return;
    }
    if (stamp === null) fill(main, head, actions, refused, why, wait());
    document.title = `${shown(node.name ?? node.uuid)} – ironic-rules`;
    fill(head, el("h1", {}, node.name ?? node.uuid), state(node.provision_state),
      node.target_provision_state && el("span", {class: "dim"}, `→ ${node.target_provision_state}`),
      node.maintenance && el("span", {class: "tag"}, "maintenance"),
      el("span", {class: "dim"}, el("code", {}, node.uuid)),
      el("span", {class: "dim"}, [node.driver, node.resource_class, node.power_state].filter(Boolean).join(" · ")),
      node.provision_updated_at && el("span", {class: "dim"}, "since ", when(node.provision_updated_at)));
    why.dataset.error = node.last_error ?? "";
    explain(why, node);
    if (before !== node.provision_state) {
      if (before !== null) announce(`${node.name ?? node.uuid} is ${node.provision_state}`);
      before = node.provision_state;
      keepingFocus(actions, () => fill(actions, offered(node)));
    }
    const now = [node.provision_state, node.provision_updated_at, node.inspection_finished_at, node.updated_at].join();
    if (now !== stamp) {
      stamp = now;
      reload().catch((problem) => { if (problem.name !== "AbortError") throw problem; });
    }
  };
  await poll(base, {signal, seconds: 5}, update);

  function offered(node) {
    const name = node.name ?? node.uuid;
    const can = (action) => ACTIONS[action].includes(node.provision_state);
    const reboots = node.inspect_interface === "agent"
      ? "It is rebooted into the ramdisk, which reports what it has; hooks and rules run on the report."
      : "Its data are read from its BMC; hooks and rules run on them.";
    return [
      can("manage") && el("button", {onclick: () => change("manage")}, "Manage"),
      can("inspect") && el("button", {onclick: async () => {
        if (await confirmed(`Inspect ${name}?`, "Inspect", el("p", {}, reboots))) await change("inspect");
      }}, node.inspection_finished_at || node.provision_state === "inspect failed" ? "Inspect again \u2026" : "Inspect \u2026"),
      can("reapply") && el("button", {class: "quiet", onclick: () => startOperation(`Apply hooks and rules again to ${name}?`,
        "Over the data of its last inspection, without a reboot. What they change is saved.", "Apply",
        `${base}/inventory/reapply`, {})}, "Apply again \u2026"),
      can("abort") && el("button", {onclick: () => change("abort")}, "Abort the inspection"),
    ];
  }

  async function change(target) {
    const {error} = await request("PUT", `${base}/states/provision`, {body: {target}});
    fill(refused, error && notice(error));
    if (error) return;
    const reply = await request("GET", base);
    if (!signal.aborted) update(reply); // otherwise the person has gone to another view
  }

  function explain(place, node) {
    if (!node.last_error) {
      fill(place, node.maintenance_reason && el("div", {class: "notice busy"}, lines(node.maintenance_reason)));
      return;
    }
    const failed = /fail|error/.test(node.provision_state);
    fill(place, el("div", {class: `notice ${failed ? "bad" : "busy"}`, id: "why"},
      el("p", {}, el("strong", {}, failed ? "Why it failed" : "Last error")), lines(node.last_error),
      el("div", {class: "buttons"},
        el("button", {onclick: () => timeline.querySelector("details.failed")?.toggleAttribute("open", true)
          || timeline.querySelector("details")?.scrollIntoView({block: "nearest"})}, "Show that inspection"),
        el("button", {onclick: () => main.querySelector(".tree-frame")?.focusSearch()}, "Search the inventory"),
        isOver() ? el("button", {onclick: async () => go(await benchOf(node.uuid))}, "Write a rule")
          : el("button", {onclick: () => begin(node.uuid)}, "Write a first rule"))));
  }

  shortcut("/", "Search the inventory", () => main.querySelector(".tree-frame")?.focusSearch(), signal);
  shortcut("u", "Back to the fleet", () => go(address("fleet")), signal);
}

/** Return a promise of a map from the UUID of a rule to what it is called. */
async function rules(signal) {
  const {items} = await pages("/v1/inspection_rules?fields=uuid,name,description,priority,phase&limit=1000",
    "inspection_rules", {signal, most: 10000});
  return new Map(items.map((rule) => [rule.uuid, called(rule)]));
}

async function showTimeline(place, base, names, signal) {
  const {json, error} = await request("GET", `${base}/inspections?detail=true&sort_key=id&sort_dir=desc&limit=30`, {signal});
  if (error) {
    fill(place, notice(error, () => showTimeline(place, base, names, signal)));
    return null;
  }
  const known = await names;
  // What was opened or closed stays so; an inspection that has just ended is open.
  const drawn = new Map([...place.querySelectorAll("details[data-uuid]")].map((each) => [each.dataset.uuid, each.open]));
  fill(place, json.inspections.length === 0
    ? empty("No inspection has ended yet.")
    : el("ol", {class: "timeline"}, json.inspections.map((entry, index) => el("li", {},
      inspection(entry, known, drawn.get(entry.uuid) ?? index === 0)))),
  json.next && empty("Older ones are kept, too; this list has the newest 30."));
  return json.inspections;
}

function inspection(entry, known, isOpen) {
  const seconds = Object.values(entry.seconds ?? {}).reduce((sum, each) => sum + each, 0);
  const failed = entry.outcome !== "finished";
  const matched = entry.rules?.length ?? 0;
  const body = el("div", {class: "stack"});
  let filled = false;
  const build = () => {
    if (filled) return;
    filled = true;
    fill(body,
      entry.failure && el("div", {class: "notice bad"},
        el("p", {}, el("strong", {}, entry.failure.hook ? `Hook ${entry.failure.hook}` : entry.failure.rule
          ? ["Rule ", ruleLink(entry.failure.rule, known)] : "Failed"),
        entry.failure.pointer && [" at ", el("code", {}, entry.failure.pointer)]), lines(entry.failure.reason ?? "")),
      stages(entry.seconds ?? {}, seconds),
      failed && matched > 0 && el("p", {class: "dim"}, "The inspection failed, so that nothing of what these rules did was saved."),
      matched > 0 && table("Rules that matched", ["Rule that matched", failed ? "Not saved" : "What it changed"], entry.rules.map((rule) => [
        {class: "name", children: ruleLink(rule.rule, known)},
        rule.sensitive ? el("span", {class: "dim"}, "sensitive") : changeList(rule.changes)])),
      matched === 0 && !failed && empty("No rule matched."),
      entry.messages?.length > 0 && el("ul", {class: "messages"}, entry.messages.map((message) =>
        el("li", {}, el("span", {class: "tag"}, message.level ?? ""), " ", message.text ? lines(message.text) : short(message)))),
      el("p", {class: "dim"}, [entry.source && `from ${entry.source}`, entry.conductor && `conductor ${entry.conductor}`,
        entry.request_id, entry.user && `by ${entry.user}`].filter(Boolean).join(" · ")));
  };
  const details = el("details", {class: failed ? "failed" : "", "data-uuid": entry.uuid, ontoggle: () => { if (details.open) build(); }},
    el("summary", {}, el("span", {class: `state ${failed ? "bad" : "good"}`}, entry.outcome), " ",
      when(entry.created_at), el("span", {class: "dim"},
        ` · ${KINDS[entry.kind] ?? entry.kind} · ${seconds.toFixed(2)} s · ${matched} ${matched === 1 ? "rule" : "rules"}`)),
    body);
  if (isOpen) {
    build();
    details.open = true;
  }
  return details;
}

function stages(seconds, sum) {
  const told = STAGES.filter((name) => seconds[name] !== undefined);
  if (told.length === 0) return null;
  return el("div", {},
    el("div", {class: "stages", "aria-hidden": "true"}, told.map((name) => el("span", {class: `stage ${name}`, style: {
      "flex-grow": String(Math.max(seconds[name] / (sum || 1), 0.004))}}))),
    el("dl", {class: "facts"}, told.map((name) => el("div", {}, el("dt", {}, el("span", {class: `stage-dot ${name}`, "aria-hidden": "true"}), name),
      el("dd", {}, `${Number(seconds[name]).toFixed(3)} s`)))));
}

async function showTraits(place, base, names, signal) {
  const [{json, error}, origins] = await Promise.all([
    request("GET", `${base}/traits`, {signal}), request("GET", `${base}/trait_origins`, {signal})]);
  if (error ?? origins.error) {
    fill(place, notice(error ?? origins.error, () => showTraits(place, base, names, signal)));
    return;
  }
  const givers = new Map(origins.json.trait_origins.map(({trait, rule}) => [trait, rule]));
  const known = await names;
  const {items} = json.traits.length > 0
    ? await pages("/v1/deploy_templates?fields=uuid,name&limit=1000", "deploy_templates", {signal, most: 5000}) : {items: []};
  const templates = new Map(items.map((template) => [template.name, template.uuid]));
  fill(place, json.traits.length === 0 ? empty("No trait. Rules give them, by what they find in the inventory.")
    : table("Traits", ["Trait", "Given by", "Deploy template"], json.traits.map((trait) => [
      el("code", {}, trait), givers.get(trait) ? ruleLink(givers.get(trait), known)
        : el("span", {class: "dim"}, "not by a rule of a known inspection"),
      templates.has(trait) ? el("a", {href: address("templates", templates.get(trait))}, "its steps") : ""])));
}

async function showSteps(place, base, signal) {
  const {json, error} = await request("GET", `${base}/deploy_steps`, {signal});
  if (error) {
    fill(place, notice(error, () => showSteps(place, base, signal)));
    return;
  }
  fill(place, stepTable(json));
}

async function showTable(place, path, name, caption, columns, cells, otherwise, signal) {
  const {items, error, more} = await pages(path, name, {signal, most: 200});
  const again = () => showTable(place, path, name, caption, columns, cells, otherwise, signal);
  fill(place, error ? notice(error, again) : items.length === 0 ? empty(otherwise)
    : [table(caption, columns, items.map(cells)), more && empty("There are more than these 200.")]);
}

/** Return the values of a report that could not be used as they came; nothing, if there are none. */
function warned(warnings = []) {
  const used = (each) => each.left_out ? "left out" : "used" in each ? JSON.stringify(each.used) : "as it came";
  return warnings.length > 0 && el("details", {class: "notice", open: warnings.length <= 10},
    el("summary", {}, `${warnings.length} ${warnings.length === 1 ? "value is" : "values are"} not used as the machine sent ${warnings.length === 1 ? "it" : "them"}`),
    el("ul", {}, warnings.map((each) => el("li", {}, el("code", {}, each.path || "/"), ` ${each.problem}. Hooks and rules read: ${used(each)}.`))));
}

async function showInventory(place, base, newest, signal) {
  const {items, error} = await pages(`${base}/inventory/versions?sort_dir=desc`, "versions", {signal, most: 100});
  if (error || items.length === 0) {
    fill(place, error ? notice(error, () => showInventory(place, base, newest, signal)) : empty("No data have been received. An inspection brings them."));
    return;
  }
  const body = el("div", {}, loading("Loading the inventory …", 16));
  const options = () => items.map((each) => {
    const date = new Date(each.created_at).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});
    return el("option", {value: each.version}, `${date}, ${each.status} (${each.version})`);
  });
  const one = el("select", {onchange: showOne}, options());
  const other = el("select", {onchange: compare}, el("option", {value: ""}, "–"), options());
  fill(place, el("div", {class: "bar"}, el("label", {class: "field"}, el("span", {}, "Received"), one),
    items.length > 1 && el("label", {class: "field"}, el("span", {}, "Compare with"), other)), body);

  async function showOne() {
    if (other.value) {
      await compare();
      return;
    }
    fill(body, loading("Loading the inventory …", 16));
    const reply = await request("GET", `${base}/inventory?version=${encodeURIComponent(one.value)}`, {signal});
    if (reply.error) fill(body, notice(reply.error, showOne));
    else fill(body, warned(reply.json.warnings), tree({inventory: reply.json.inventory, plugin_data: reply.json.plugin_data}, {label: "the inventory"}));
  }

  async function compare() {
    if (!other.value) {
      await showOne();
      return;
    }
    fill(body, loading("Comparing …", 6));
    const [from, to] = [other.value, one.value].map(Number).sort((a, b) => a - b);
    const reply = await request("GET", `${base}/inventory/diff?from=${from}&to=${to}`, {signal});
    fill(body, reply.error ? notice(reply.error, compare) : differences(reply.json));
  }

  await showOne();
}
