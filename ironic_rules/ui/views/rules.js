// The rules in the order in which they run, over all phases: what became of each, what it writes, and what it fights with;
// and the revisions of the set, with the way back.

import {announce, el, fill, when} from "../dom.js";
import {pages, request} from "../api.js";
import {address, go} from "../router.js";
import {confirmed, empty, showsError, keepingFocus, loading, notice, section, table} from "../parts.js";
import {WITHHELD} from "../workbench/saving.js";
import {changeList} from "../changes.js";
import {called, line, named} from "../messages.js";

export const title = "Rules";

const RULES = "/v1/inspection_rules";
/** Rules that are shown at most. */
const MOST = 5000;
const REVISIONS = 20;
const SHOWN = {
  "": ["all", () => true],
  enabled: ["enabled", ({rule}) => rule.enabled],
  disabled: ["disabled", ({rule}) => !rule.enabled],
  invalid: ["invalid", ({rule}) => !rule.valid],
  unmatched: ["enabled and never matched", ({rule, counts}) => rule.enabled && counts?.matched === 0],
  shared: ["writing what others write", ({conflicts}) => conflicts.length > 0],
  built_in: ["built-in", ({rule}) => rule.built_in],
};

export async function show(main, {query}, signal) {
  // Both at once: nothing that is read already moves.
  const both = el("div", {class: "stack"}, loading("Loading rules …", 30));
  fill(main, el("div", {class: "head"}, el("h1", {}, title), el("a", {href: address("workbench")}, "Write a rule")), both);
  await draw(both, query, signal);
}

/** Request and show the rules and revisions; until they are there, what was shown stays. */
async function draw(both, query, signal) {
  const again = () => draw(both, query, signal);
  const list = el("div", {});
  const history = el("div", {});
  const [rules, statistics, written, revisions] = await Promise.all([
    pages(`${RULES}?sort_key=execution&detail=true&limit=1000`, "inspection_rules", {signal, most: MOST}),
    pages(`${RULES}/statistics?limit=1000`, "statistics", {signal, most: MOST}),
    pages(`${RULES}/conflicts?limit=1000`, "conflicts", {signal, most: MOST}),
    request("GET", `${RULES}/revisions?limit=${REVISIONS}`, {signal})]);
  if (rules.error) fill(list, notice(rules.error, again));
  else {
    const counts = new Map(statistics.items.map((found) => [found.uuid, found]));
    const writing = new Map(written.items.map((found) => [found.uuid, found]));
    // Who may not see what rules write, does not see conditions and actions either.
    const isWithheld = written.error?.status === 403;
    fill(list, isWithheld && el("p", {class: "dim"}, WITHHELD),
      [statistics.error, !isWithheld && written.error].map((error) => error && notice(error, again)),
      ...listed(rules, counts, writing, query, again, signal));
  }
  fill(history, revisions.error ? notice(revisions.error, again) : listedRevisions(revisions.json, again, signal));
  keepingFocus(both, () => fill(both, list, section("Revisions", history)));
}

function listed(found, counts, writing, query, again, signal) {
  if (found.items.length === 0) {
    return [empty("There are no rules yet. ", el("a", {href: address("workbench")}, "Write the first one"), " in the workbench.")];
  }
  const entries = entriesOf(found.items, counts, writing);
  const wanted = Object.hasOwn(SHOWN, query.get("show") ?? "") ? query.get("show") ?? "" : "";
  const sought = (query.get("text") ?? "").toLowerCase();
  const shown = entries.filter((entry) => SHOWN[wanted][1](entry) && entry.text.includes(sought));
  const said = el("div", {});
  const filter = (changes) => go(address("rules", {show: wanted, text: query.get("text"), ...changes}), {replace: true});
  return [
    el("div", {class: "bar"},
      el("label", {class: "field"}, el("span", {}, "Show"), el("select", {onchange: (event) => filter({show: event.target.value})},
        Object.entries(SHOWN).map(([name, [text, matches]]) => el("option", {value: name, selected: name === wanted},
          `${text} (${entries.filter(matches).length})`)))),
      el("label", {class: "field"}, el("span", {}, "Name, description or what it writes"), el("input", {
        type: "search", value: query.get("text") ?? "", onchange: (event) => filter({text: event.target.value})}))),
    found.more && el("p", {class: "dim"}, `Shows the first ${MOST} rules.`),
    said,
    shown.length === 0 ? empty("No rule is of this kind.") : table("Rules in the order in which they run", [
      {text: "No.", class: "num"}, "Rule", "Phase", {text: "Priority", class: "num"}, "Valid", {text: "Matched", class: "num"},
      {text: "of", class: "num"}, {text: "Failed", class: "num"}, "Last match", "Writes", "Change"],
    shown.map((entry) => row(entry, said, again, signal))),
  ];
}

/** Return {number, rule, counts, writes, conflicts, text} of each rule; `writing` is what the API says of what they write. */
function entriesOf(rules, counts, writing) {
  const names = new Map(rules.map((rule) => [rule.uuid, called(rule)]));
  return rules.map((rule, number) => {
    const {writes, conflicts} = writing.get(rule.uuid) ?? {};
    const places = [...new Set((writes ?? []).map(placeOf))];
    const fights = (conflicts ?? []).map(({rules: others, ...conflict}) => ({
      ...conflict, place: placeOf(conflict), others: others.map((uuid) => names.get(uuid) ?? uuid)}));
    const text = [rule.name, rule.description, rule.bundle, rule.scope, ...places].filter(Boolean).join("\n").toLowerCase();
    return {number: number + 1, rule, counts: counts.get(rule.uuid), writes: places, conflicts: fights, text};
  });
}

function placeOf({path, name}) {
  return name === null ? path : `${path} ${name}`;
}

function row({number, rule, counts, writes, conflicts}, said, again, signal) {
  const name = called(rule);
  const isDead = rule.enabled && counts?.matched === 0 && counts.considered > 0;
  return [
    {class: "num dim", children: number},
    {class: "name", children: [
      rule.sensitive ? name : el("a", {href: address("workbench", rule.uuid)}, name),
      rule.name && rule.description && el("div", {class: "dim"}, rule.description),
      el("div", {}, [rule.built_in && "built-in", !rule.enabled && "disabled", rule.sensitive && "sensitive",
        rule.bundle && `bundle ${rule.bundle}`, rule.scope && `scope ${rule.scope}`,
        rule.max_nodes && `${rule.nodes_counted} of ${rule.max_nodes} nodes`].filter(Boolean).map((text) => [el("span", {class: "tag"}, text), " "]))]},
    rule.phase, {class: "num", children: rule.priority},
    {children: rule.valid ? el("span", {class: "good"}, "yes") : el("div", {class: "bad"}, el("strong", {}, "no"),
      (rule.problems ?? []).map((problem) => el("div", {}, problem.pointer && [el("code", {}, problem.pointer), ": "], line(problem.text))))},
    {class: `num${isDead ? " busy" : ""}`, children: counts?.considered > 0 ? isDead ? "never" : counts.matched : "–"},
    {class: "num", children: counts?.considered > 0 ? counts.considered : "none yet"},
    {class: `num${counts?.failed > 0 ? " bad" : ""}`, children: counts?.failed ?? ""},
    {class: "nowrap", children: [when(counts?.last_matched_at), counts?.last_node && el("div", {},
      el("a", {href: address("node", counts.last_node)}, "its node"))]},
    {class: "name", children: writes.map((place) => {
      const fight = conflicts.find((found) => found.place === place);
      return el("div", {}, el("code", {}, place), fight && el("div", {class: "busy"}, "also written by ", fight.others.slice(0, 3).join(", "),
        fight.count > 3 && ` and ${fight.count - 3} more`));
    })},
    {class: "nowrap", children: rule.built_in ? "" : [el("button", {
      "aria-label": `${rule.enabled ? "Disable" : "Enable"} ${name}`, onclick: () => toggle(rule, said, again, signal)},
    rule.enabled ? "Disable" : "Enable"), " ", el("button", {"aria-label": `Delete ${name}`, onclick: () => remove(rule, counts, said, again, signal)},
    "Delete …")]},
  ];
}

/** Ask, and disable, enable or delete a rule that nobody has changed since the question. */
async function change(rule, {question, yes, text, done}, send, said, again, signal) {
  const path = `${RULES}/${rule.uuid}`;
  const {headers, error} = await request("GET", `${path}?fields=uuid`, {signal});
  if (!error && question && !await confirmed(question, yes, el("p", {}, text))) return;
  const {error: failed} = error ? {error} : await send(path, {signal, headers: {"If-Match": headers.get("ETag")}});
  if (showsError(said, failed)) return;
  await again();
  announce(`${called(rule)} is ${done}`);
}

function toggle(rule, ...others) {
  return change(rule, {question: rule.enabled && `Disable ${called(rule)}?`, yes: "Disable", text: "The next inspections run without it.",
    done: rule.enabled ? "disabled" : "enabled"},
  (path, options) => request("PATCH", path, {...options, body: [{op: "add", path: "/enabled", value: !rule.enabled}]}), ...others);
}

function remove(rule, counts, ...others) {
  const matched = counts?.matched > 0 ? `It has matched ${counts.matched.toLocaleString()} of ${counts.considered.toLocaleString()} inspections. ` : "";
  return change(rule, {question: `Delete ${called(rule)}?`, yes: "Delete", done: "deleted",
    text: `${matched}The next inspections run without it, and what it has written stays. A rollback to the present revision brings it back.`},
  (path, options) => request("DELETE", path, options), ...others);
}

// ---- revisions

function listedRevisions({revisions, next}, again, signal) {
  if (revisions.length === 0) return [empty("The rules have not been changed since this service began to keep revisions.")];
  const said = el("div", {});
  return [said, table("Revisions, the newest first", [{text: "Revision", class: "num"}, "Time", "User", "Change", "Roll back"],
    revisions.map(({revision, created_at: at, user, summary}, number) => [
      {class: "num", children: revision}, {class: "nowrap", children: when(at)},
      user ?? el("span", {class: "dim"}, "not known"), {class: "long", children: named(summary)},
      {class: "nowrap", children: number === 0 ? el("span", {class: "dim"}, "current") : el("button", {
        "aria-label": `Roll back to revision ${revision}`, onclick: () => rollBack(revision, said, again, signal)}, "Roll back …")}])),
  next && el("p", {class: "dim"}, `Shows the last ${REVISIONS}; `, el("code", {}, "openstack baremetal inspection rule revision list"), " has all that are kept.")];
}

/** Show what a rollback would change, and do it only if that is still so. */
async function rollBack(revision, said, again, signal) {
  const path = `${RULES}/revisions/${revision}/rollback`;
  const {json, headers, error} = await request("POST", path, {body: {dry_run: true}, signal});
  if (showsError(said, error)) return;
  const parts = ["created", "changed", "replaced", "removed"].filter((name) => json[name].length > 0);
  if (parts.length === 0) {
    fill(said, el("div", {class: "notice", role: "status"}, el("p", {}, `The rules are those of revision ${revision} already.`)));
    return;
  }
  const details = el("div", {class: "choices", tabindex: "0"}, parts.map((name) => [el("h3", {}, `Rules that would be ${name === "created" ? "created again" : name}`),
    el("ul", {}, json[name].map((rule) => el("li", {}, called(rule),
      rule.patch && changeList({node: rule.patch.slice(0, 20)}))))]));
  if (!await confirmed(`Roll back to revision ${revision}?`, "Roll back", details) || signal.aborted) return;
  const made = await request("POST", path, {signal, headers: {"If-Match": headers.get("ETag")}, body: {}});
  if (made.error) {
    fill(said, notice(made.error, made.error.status === 412 ? () => rollBack(revision, said, again, signal) : null));
    return;
  }
  await again();
  announce(`The rules are those of revision ${revision}, as revision ${made.json.revision}`);
}
