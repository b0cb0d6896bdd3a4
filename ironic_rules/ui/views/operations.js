// Operations on many nodes: how far they are, what a dry run has found, which nodes failed; and how to stop them.

import {announce, el, fill, when} from "../dom.js";
import {poll, request} from "../api.js";
import {address} from "../router.js";
import {confirmed, empty, showsError, keepingFocus, loading, notice, relative, section, short, table, timeOf} from "../parts.js";
import {changeList, patchOf} from "../changes.js";
import {line, namedNode} from "../messages.js";

export const title = "Operations";

const KINDS = {reapply: "Re-run of rules", inspect: "Inspection", manage: "Manage", provide: "Provide", abort: "Abort",
  "set-maintenance": "Maintenance", "clear-maintenance": "End of maintenance", delete: "Deletion",
  find_facts: "Search for facts", "legacy-rule-cleanup": "Clean-up of older rules"};
/** Filters of nodes that the fleet shows, as people call them. */
const FILTERS = {where: "", failure: "one cause of failure", provision_state: "state", resource_class: "resource class"};

export async function show(main, {path}, signal) {
  if (path[0]) await showOne(main, path[0], signal);
  else await showList(main, signal);
}

function what(operation) {
  return operation.filters?.dry_run && operation.kind === "reapply" ? "Dry run" : KINDS[operation.kind] ?? operation.kind;
}

async function showList(main, signal) {
  const list = el("div", {class: "list"}, loading("Loading operations …", 6));
  fill(main, el("div", {class: "head"}, el("h1", {}, title), el("span", {class: "dim"}, "Work on many nodes, started by one request")), list);
  await poll("/v1/operations?detail=true&sort_key=created_at&sort_dir=desc&limit=50", {signal, seconds: 3}, ({json, error, headers}, again) => {
    keepingFocus(list, () => fill(list, error ? notice(error, again) : json.operations.length === 0
      ? empty("None. Start a dry run, or re-run rules, from ", el("a", {href: address("fleet")}, "Fleet"), ".")
      : table("Operations", ["Started", "Operation", "State", "Progress", {text: "Changed", class: "num"}, {text: "Failed", class: "num"}],
        json.operations.map((operation) => [
          {class: "nowrap", children: el("a", {href: address("operations", operation.uuid)}, relative(operation.created_at, timeOf(headers)))},
          [what(operation), el("div", {class: "dim"}, about(operation))], status(operation.status), bar(operation.progress),
          {class: "num", children: operation.progress.changed}, {class: `num ${operation.progress.failed ? "bad" : ""}`, children: operation.progress.failed}]))));
  });
}

function about(operation) {
  const nodes = operation.filters?.nodes;
  if (!nodes) return "";
  const told = Object.entries(nodes).map(([key, value]) => {
    const text = key === "failure" ? FILTERS[key] : `${FILTERS[key] ?? key.replaceAll("_", " ")} ${short(value, 120)}`.trim();
    return [Object.hasOwn(FILTERS, key) ? el("a", {href: address("fleet", {[key]: value})}, text) : text, " "];
  });
  return told.length > 0 ? told : "all nodes";
}

function status(name) {
  return el("span", {class: `state ${{running: "busy", finished: "good", cancelled: "plain"}[name] ?? "plain"}`}, name);
}

function bar(progress) {
  return el("div", {}, el("progress", {max: Math.max(progress.total, 1), value: progress.total === 0 ? 1 : progress.done,
    "aria-label": `${progress.done} of ${progress.total} nodes`}),
  el("div", {class: "dim"}, `${progress.done.toLocaleString()} of ${progress.total.toLocaleString()}`));
}

async function showOne(main, uuid, signal) {
  const head = el("div", {class: "head"}, el("h1", {}, "Operation"), el("span", {class: "dim"}, el("code", {}, uuid)));
  const [told, groups] = [el("div", {}), el("div", {})];
  // Both at once, as soon as they are known: nothing that is read already moves.
  fill(main, head, loading("Loading the operation …", 12));
  const isShown = () => main.contains(told);
  const path = `/v1/operations/${encodeURIComponent(uuid)}`;
  let wasRunning = false;
  const ended = new AbortController();
  const polling = AbortSignal.any([signal, ended.signal]);
  await poll(path, {signal: polling, seconds: 1}, async ({json: operation, error}, again) => {
    if (error) {
      fill(told, notice(error, again));
      fill(groups);
      if (!isShown()) fill(main, head, told, groups);
      if (error.status === 404) ended.abort();
      return;
    }
    const isRunning = operation.status === "running";
    fill(head, el("h1", {}, what(operation)), status(operation.status), el("span", {class: "dim"}, about(operation)),
      el("span", {class: "dim"}, "started ", when(operation.created_at), operation.user && ` by ${operation.user}`),
      el("a", {href: address("operations")}, "All operations"));
    const {progress} = operation;
    const verb = operation.filters?.dry_run ? "would change" : "changed";
    keepingFocus(told, () => fill(told, bar(progress),
      el("p", {}, `${progress.changed.toLocaleString()} ${verb}, `, el("span", {class: progress.failed ? "bad" : ""}, `${progress.failed.toLocaleString()} failed`),
        `, ${progress.left.toLocaleString()} left`),
      isRunning && el("button", {onclick: () => cancel(path, told)}, "Cancel …"),
      operation.errors?.length > 0 && section("Failed", table("Nodes that failed", ["Node", "Why"], operation.errors.map((each) => [
        namedNode(each.node), {class: "long", children: line(each.error ?? "")}])))));
    await showGroups(groups, path, signal).catch((problem) => { if (problem.name !== "AbortError") throw problem; });
    if (!isShown() && !signal.aborted) fill(main, head, told, groups);
    if (!isRunning) {
      if (wasRunning) announce(`The operation is ${operation.status}`);
      ended.abort();
    }
    wasRunning = isRunning;
  });
}

async function cancel(path, place) {
  if (!await confirmed("Cancel this operation?", "Cancel it", el("p", {}, "Nodes that are done stay done; the others stay as they are."))) return;
  const {error} = await request("DELETE", path);
  if (error) place.append(notice(error));
  else announce("Cancelled");
}

async function showGroups(place, path, signal) {
  const {json, error} = await request("GET", `${path}/groups`, {signal});
  if (showsError(place, error, () => showGroups(place, path, signal))) return;
  const opened = new Set([...place.querySelectorAll("details[open]")].map((each) => each.dataset.group));
  keepingFocus(place, () => fill(place, json.groups.length > 0 && section("Changes",
    json.groups.map(({group, number, result}) => el("details", {"data-group": group, open: opened.has(group), ontoggle: (event) => {
      const list = event.currentTarget.querySelector(".names");
      if (event.currentTarget.open && !list.hasChildNodes()) showNodes(list, path, group, signal).catch(() => {});
    }}, el("summary", {}, el("strong", {}, number.toLocaleString()), ` ${number === 1 ? "node" : "nodes"}: `, el("span", {class: "clamp"}, outline(result))),
    changeList(result), el("p", {class: "names"}))))));
}

function outline(result) {
  const paths = patchOf(result?.node).map(({path: to}) => to);
  const told = [result?.outcome && result.outcome !== "finished" ? result.outcome : null, result?.failure?.reason,
    ...(result?.traits?.added ?? []).map((trait) => `+ ${trait}`), ...(result?.traits?.removed ?? []).map((trait) => `− ${trait}`),
    ...paths].filter(Boolean);
  return told.length === 0 ? "nothing changes" : told.map((text, number) => [number > 0 && ", ", line(text, 300)]);
}

async function showNodes(place, path, group, signal) {
  const {json, error} = await request("GET", `${path}/nodes?group=${encodeURIComponent(group)}&limit=60`, {signal});
  fill(place, error ? notice(error, () => showNodes(place, path, group, signal)) : [json.nodes.map(({node}) => [namedNode(node), " "]), json.next && "and more"]);
}
