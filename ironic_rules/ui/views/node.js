// One machine: what it is, what can be done with it, why it failed, what its inspections did, and all that it reported.

import {announce, el, fill, shown, when} from "../dom.js";
import {pages, poll, request} from "../api.js";
import {address, go} from "../router.js";
import {shortcut} from "../shortcuts.js";
import {actionButton, confirmed, empty, showsError, icon, keepingFocus, loading, notice, ruleLink, section, short, startOperation, state, table} from "../parts.js";
import {tree} from "../tree.js";
import {changeList} from "../changes.js";
import {stepTable} from "../steps.js";
import {begin, benchOf, isOver} from "../guide.js";
import {called, lines, named} from "../messages.js";
import {versionOptions} from "../differences.js";
import {machine, nics, reported, traitChips} from "../machine.js";

export const title = "Node";

// Stages of an inspection; "wait" is the boot of the machine, which is not on the scale.
const STAGES = ["wait", "lookup", "queue", "receive", "hooks", "rules", "finish", "commit"];
const BOOT = "wait";
// The states in which the service accepts an action.
const REST = ["manageable", "available", "inspect failed"];
const ACTIONS = {manage: ["enroll", "available", "inspect failed", "clean failed", "adopt failed"], provide: ["manageable"], inspect: REST,
  reapply: ["enroll", ...REST]};
const KINDS = {ramdisk: "inspection", "out-of-band": "out-of-band inspection", reapply: "re-run of rules"};

export async function show(main, {path}, signal) {
  const [ident] = path;
  const base = `/v1/nodes/${encodeURIComponent(ident)}`;
  const head = el("div", {class: "head"}, el("h1", {}, "Node"), el("span", {class: "dim"}, ident));
  const actions = el("div", {class: "buttons actions"});
  const [summary, traits, refused, why, timeline, network, steps, rejected, below] = Array.from({length: 9}, () => el("div", {}));
  const inventory = el("div", {}, loading("Loading the inventory …", 16));
  // All parts at once, so that nothing that is read already moves: the reason first, then what there is to know.
  const parts = [
    el("div", {class: "columns"}, section("Time line", timeline),
      el("div", {class: "stack sections"}, section("Network", network), section("Deployment steps", steps),
        section("Near matches among rejected reports", rejected))),
    section("Inventory", inventory)];
  const wait = () => fill(below, loading("Loading the node …", 40));
  fill(main, head, wait());

  const names = rules(signal);
  let node = null; // as it was told last
  let isDrawn = false;
  let stamp = null;
  let offeredFor = null;
  let report = {version: null, json: null}; // the newest one

  async function readReport(newest) {
    const version = newest?.find((entry) => entry.inventory_id)?.inventory_id ?? null;
    if (version === null || version === report.version) return;
    const {json} = await request("GET", `${base}/inventory?version=${version}`, {signal});
    report = {version, json};
  }

  const reload = async () => {
    const [facts, told, origins, inspections] = await Promise.all([request("GET", `${base}/facts`, {signal}), request("GET", `${base}/traits`, {signal}),
      request("GET", `${base}/trait_origins`, {signal}), request("GET", `${base}/inspections?detail=true&sort_key=id&sort_dir=desc&limit=30`, {signal})]);
    const known = await names;
    const templates = told.json?.traits.length > 0
      ? (await pages("/v1/deploy_templates?fields=uuid,name&limit=1000", "deploy_templates", {signal, most: 5000})).items : [];
    const before = report.version;
    const read = readReport(inspections.json?.inspections);
    const own = facts.json?.facts ?? {};
    const hasFacts = Object.keys(own).length > 0;
    if (!hasFacts) await read;
    keepingFocus(summary, () => fill(summary, facts.error && notice(facts.error, reload), machine(node, hasFacts ? own : reported(report.json)),
      !hasFacts && report.json && el("p", {class: "dim small"}, "As the machine reported it. No inspection has finished yet, so that nothing of it is saved.")));
    keepingFocus(traits, () => fill(traits, told.error ?? origins.error ? notice(told.error ?? origins.error, reload)
      : traitChips(told.json.traits, new Map(origins.json.trait_origins.map(({trait, rule}) => [trait, rule])), known,
        new Map(templates.map((template) => [template.name, template.uuid])))));
    if (!isDrawn) fill(main, head, summary, traits, actions, refused, why, wait());
    isDrawn = true;
    drawNode();
    const ports = pages(`${base}/ports/detail`, "ports", {signal, most: 500});
    await Promise.all([showSteps(steps, base, signal), showRejected(rejected, base, signal), read]);
    const {items, error} = await ports;
    keepingFocus(network, () => fill(network, error ? notice(error, reload) : nics(items, report.json)));
    keepingFocus(timeline, () => showTimeline(timeline, node, known, inspections, reload));
    if (!below.contains(timeline)) fill(below, parts);
    if (before === null || before !== report.version) await showInventory(inventory, base, node.name ?? node.uuid, report, signal);
  };

  function drawNode() {
    fill(head, el("h1", {}, node.name ?? node.uuid), state(node.provision_state),
      node.target_provision_state && el("span", {class: "dim"}, `→ ${node.target_provision_state}`),
      node.provision_updated_at && el("span", {class: "dim"}, "since ", when(node.provision_updated_at)),
      node.maintenance && el("span", {class: "tag"}, "maintenance"), node.retired && el("span", {class: "tag"}, "retired"),
      el("span", {class: "dim"}, node.target_power_state ? `${node.power_state} → ${node.target_power_state}` : node.power_state ?? "power unknown"),
      el("code", {class: "dim small"}, node.uuid));
    explain(why);
    const decides = [node.provision_state, node.maintenance, node.power_state, node.target_power_state, node.retired, node.inspection_finished_at].join();
    if (decides === offeredFor) return;
    offeredFor = decides;
    keepingFocus(actions, () => fill(actions, offered()));
  }

  let before = null; // the provision state
  const update = ({json, error}, again) => {
    if (error) {
      if (isDrawn) fill(why, notice(error, again));
      else fill(main, el("h1", {}, "Node"), notice(error, again));
      return;
    }
    node = json;
    document.title = `${shown(node.name ?? node.uuid)} – ironic-rules`;
    if (isDrawn) drawNode();
    if (before !== null && before !== node.provision_state) announce(`${node.name ?? node.uuid} is ${node.provision_state}`);
    before = node.provision_state;
    const now = [node.provision_state, node.provision_updated_at, node.inspection_finished_at, node.updated_at].join();
    if (now !== stamp) {
      stamp = now;
      reload().catch((problem) => { if (problem.name !== "AbortError") throw problem; });
    }
  };
  await poll(base, {signal, seconds: 5}, update);

  function offered() {
    const name = node.name ?? node.uuid;
    const unless = (action) => (ACTIONS[action].includes(node.provision_state) ? null
      : `Possible in ${ACTIONS[action].join(", ")}; this machine is ${node.provision_state}.`);
    const reboots = node.inspect_interface === "agent"
      ? "It is rebooted into the ramdisk, which reports what it has; hooks and rules run on the report."
      : "Its data are read from its BMC; hooks and rules run on them.";
    const power = (text, picture, target, question = null) => actionButton(text, {picture,
      reason: node.target_power_state ? `The power changes to ${node.target_power_state} now.` : node.provision_state === "clean wait" ? "Not while the machine is cleaned." : null}, async () => {
      const details = el("p", {}, node.instance_uuid ? `It has the instance ${node.instance_uuid}, which is interrupted.` : "It has no instance.");
      if (question === null || await confirmed(`${question} ${name}?`, question, details)) await change("PUT", "states/power", {target});
    });
    return [
      node.provision_state === "inspect wait"
        ? actionButton("Abort the inspection", {picture: "ban"}, () => provision("abort"))
        : actionButton(node.inspection_finished_at || node.provision_state === "inspect failed" ? "Inspect again \u2026" : "Inspect \u2026",
          {picture: "search", reason: unless("inspect"), kind: unless("inspect") ? null : "primary"}, async () => {
            if (await confirmed(`Inspect ${name}?`, "Inspect", el("p", {}, reboots))) await provision("inspect");
          }),
      actionButton("Re-run rules \u2026", {picture: "refresh-cw", reason: unless("reapply")}, () => startOperation(`Re-run hooks and rules on ${name}?`,
        "They run on its newest report, without a reboot. The changes are saved.", "Re-run", `${base}/inventory/reapply`, {})),
      actionButton("Manage", {picture: "settings", reason: node.provision_state === "manageable" ? "The machine is manageable already." : unless("manage")}, () => provision("manage")),
      actionButton("Provide", {picture: "check", reason: node.retired ? "The machine is retired." : unless("provide")}, () => provision("provide")),
      node.maintenance ? actionButton("End maintenance", {picture: "wrench"}, () => change("DELETE", "maintenance"))
        : actionButton("Maintenance \u2026", {picture: "wrench"}, async () => {
          const reason = el("input", {autofocus: true, maxlength: 255, autocomplete: "off"});
          const details = el("label", {class: "field"}, el("span", {}, "Reason, for others"), reason);
          if (await confirmed(`Put ${name} into maintenance?`, "Put into maintenance", details)) {
            await change("PUT", "maintenance", reason.value.trim() ? {reason: reason.value.trim()} : {});
          }
        }),
      node.power_state !== "power on" && power("Power on", "power", "power on"),
      node.power_state !== "power off" && [power("Power off \u2026", "power-off", "power off", "Power off"), power("Reboot \u2026", "rotate-cw", "rebooting", "Reboot")],
      el("a", {class: "button", href: address("compare", name)}, icon("git-compare"), "Compare"),
    ];
  }

  function provision(target) {
    return change("PUT", "states/provision", {target});
  }

  async function change(method, what, body) {
    const {error} = await request(method, `${base}/${what}`, {body});
    if (signal.aborted) return; // the person has gone to another view
    fill(refused, error && notice(error));
    if (error) return;
    const reply = await request("GET", base);
    if (!signal.aborted) update(reply);
  }

  function explain(place) {
    const text = `${node.last_error ?? ""} ${node.maintenance_reason ?? ""} ${node.provision_state}`;
    if (place.dataset.text === text) return;
    place.dataset.text = text;
    const maintenance = node.maintenance_reason && el("div", {class: "notice busy"}, el("p", {}, el("strong", {}, "In maintenance")), lines(node.maintenance_reason));
    if (!node.last_error) {
      fill(place, maintenance);
      return;
    }
    const failed = /fail|error/.test(node.provision_state);
    fill(place, maintenance, el("div", {class: `notice ${failed ? "bad" : "busy"}`, id: "why"},
      el("p", {}, el("strong", {}, failed ? "Why it failed" : "Last error")), lines(node.last_error),
      el("div", {class: "buttons"},
        el("button", {onclick: () => timeline.querySelector("details.failed")?.toggleAttribute("open", true)
          || timeline.querySelector("details")?.scrollIntoView({block: "nearest"})}, "Show that inspection"),
        el("button", {onclick: () => main.querySelector(".tree-frame")?.focusSearch()}, "Search the inventory"),
        isOver() ? el("button", {onclick: async () => go(await benchOf(node.uuid))}, "Write a rule")
          : el("button", {onclick: () => begin(node.uuid)}, "Write a first rule"))));
  }

  shortcut("i", "Search the inventory", () => main.querySelector(".tree-frame")?.focusSearch(), signal);
  shortcut("u", "Back to the fleet", () => go(address("fleet")), signal);
}

/** Return a promise of a map from the UUID of a rule to what it is called. */
async function rules(signal) {
  const {items} = await pages("/v1/inspection_rules?fields=uuid,name,description,priority,phase&limit=1000",
    "inspection_rules", {signal, most: 10000});
  return new Map(items.map((rule) => [rule.uuid, called(rule)]));
}

function showTimeline(place, node, known, {json, error}, again) {
  if (showsError(place, error, again)) return;
  // A section that was opened or closed stays so; an inspection that has just ended is open.
  const drawn = new Map([...place.querySelectorAll("details[data-uuid]")].map((each) => [each.dataset.uuid, each.open]));
  fill(place, json.inspections.length === 0
    ? empty("No inspection has ended yet. “Inspect” begins one.")
    : el("ol", {class: "timeline"}, json.inspections.map((entry, index) => {
      const earlier = json.inspections.slice(index + 1).find((each) => each.inventory_id && each.inventory_id !== entry.inventory_id);
      const changes = entry.inventory_id && earlier ? address("compare", node.name ?? node.uuid, {from: earlier.inventory_id, to: entry.inventory_id}) : null;
      return el("li", {}, inspection(entry, known, drawn.get(entry.uuid) ?? index === 0, changes));
    })),
  json.next && empty("Shows the newest 30. Older ones are kept."));
}

function inspection(entry, known, isOpen, changes) {
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
      stages(entry.seconds ?? {}),
      failed && matched > 0 && el("p", {}, el("strong", {}, "Not saved: "), "the inspection failed, so that nothing of what these rules did was saved."),
      matched > 0 && table("Rules that matched", ["Rule", failed ? "Not saved" : "Changes"], entry.rules.map((rule) => [
        {class: "name", children: ruleLink(rule.rule, known)},
        rule.sensitive ? el("span", {class: "dim"}, "sensitive") : {class: failed ? "not-saved" : null, children: failed ? [el("span", {class: "tag"}, "not saved"), Object.keys(rule.changes ?? {}).length > 0 && changeList(rule.changes)] : changeList(rule.changes)}])),
      matched === 0 && !failed && empty("No rule matched."),
      entry.messages?.length > 0 && el("ul", {class: "messages"}, entry.messages.map((message) =>
        el("li", {}, el("span", {class: "tag"}, message.level ?? ""), " ", message.text ? lines(message.text) : short(message)))),
      changes && el("p", {}, el("a", {href: changes}, "Compare with the report before")),
      el("p", {class: "dim small"}, [entry.source && `from ${entry.source}`, entry.conductor && `conductor ${entry.conductor}`,
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

/** Return the stages as bars, on the scale of the longest but the machine's boot, which takes minutes where the others take seconds. */
function stages(seconds) {
  const told = STAGES.filter((name) => seconds[name] !== undefined);
  if (told.length === 0) return null;
  const most = Math.max(...told.filter((name) => name !== BOOT).map((name) => Number(seconds[name])), 0.001);
  return el("ul", {class: "stages", "aria-label": "Stages"}, told.map((name) => el("li", {class: name === BOOT ? "idle" : null}, el("span", {class: "dim"}, name),
    name === BOOT ? el("span", {class: "dim"}, "for the machine; not on the scale")
      : el("i", {"aria-hidden": "true", style: {"inline-size": `${seconds[name] / most * 100}%`}}),
    el("span", {class: "num"}, `${Number(seconds[name]).toFixed(3)} s`))));
}

async function showSteps(place, base, signal) {
  const {json, error} = await request("GET", `${base}/deploy_steps`, {signal});
  if (!showsError(place, error, () => showSteps(place, base, signal))) fill(place, stepTable(json));
}

async function showRejected(place, base, signal) {
  const {items, error, more} = await pages(`${base}/inspection_journal`, "inspection_journal", {signal, most: 200});
  fill(place, error ? notice(error, () => showRejected(place, base, signal)) : items.length === 0 ? empty("None: no report with an address of this machine was rejected.")
    : [table("Rejected reports", ["Last", "Reason", "From", {text: "Times", class: "num"}], items.map((entry) => [
      {class: "nowrap", children: el("a", {href: address("journal", entry.uuid)}, when(entry.seen_at))},
      {class: "long", children: [entry.reason, entry.detail && el("div", {class: "dim"}, named(entry.detail))]}, entry.source,
      {class: "num", children: entry.times}])), more && empty("Shows the first 200.")]);
}

/** Return the values of a report that could not be used as they came; nothing, if there are none. */
function warned(warnings = []) {
  const used = (each) => each.left_out ? "left out" : "used" in each ? JSON.stringify(each.used) : "as it came";
  return warnings.length > 0 && el("details", {class: "notice", open: warnings.length <= 10},
    el("summary", {}, `${warnings.length} ${warnings.length === 1 ? "value is" : "values are"} not used as the machine sent ${warnings.length === 1 ? "it" : "them"}`),
    el("ul", {}, warnings.map((each) => el("li", {}, el("code", {}, each.path || "/"), ` ${each.problem}. Hooks and rules read: ${used(each)}.`))));
}

async function showInventory(place, base, ident, newest, signal) {
  const {items, error} = await pages(`${base}/inventory/versions?sort_dir=desc`, "versions", {signal, most: 100});
  if (error || items.length === 0) {
    fill(place, error ? notice(error, () => showInventory(place, base, ident, newest, signal)) : empty("No report has been received. An inspection brings one."));
    return;
  }
  const body = el("div", {}, loading("Loading the inventory …", 16));
  const one = el("select", {onchange: () => showOne()}, versionOptions(items));
  const other = el("select", {onchange: () => go(address("compare", ident, {from: Math.min(one.value, other.value), to: Math.max(one.value, other.value)}))},
    el("option", {value: ""}, "–"), versionOptions(items));
  fill(place, el("div", {class: "bar"}, el("label", {class: "field"}, el("span", {}, "Received"), one),
    items.length > 1 && el("label", {class: "field"}, el("span", {}, "Compare with"), other)), body);

  async function showOne() {
    const known = Number(one.value) === Number(newest.version) ? newest.json : null;
    if (!known) fill(body, loading("Loading the inventory …", 16));
    const reply = known ? {json: known} : await request("GET", `${base}/inventory?version=${encodeURIComponent(one.value)}`, {signal});
    if (reply.error) fill(body, notice(reply.error, showOne));
    else fill(body, warned(reply.json.warnings), tree({inventory: reply.json.inventory, plugin_data: reply.json.plugin_data}, {label: "the inventory"}));
  }

  await showOne();
}
