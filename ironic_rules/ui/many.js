// Acting on many nodes: which ones are chosen, and the bar with what can be done with them. Each action first says on how
// many it is possible and why not on the others; then it is an operation, which continues when the page is closed.

import {announce, el, fill} from "./dom.js";
import {request} from "./api.js";
import {address, go} from "./router.js";
import {notice} from "./parts.js";
import {line} from "./messages.js";
import {field, form, problemsOf} from "./forms.js";

// [action, text of its button, its text with a number, and afterwards]
const ACTIONS = [
  ["inspect", "Inspect", "Inspect", "They boot the ramdisk, or are asked by their BMC."],
  ["reapply", "Re-run rules", "Re-run rules on", "Hooks and rules run over the last reports. The changes are saved."],
  ["manage", "Manage", "Manage", "Their BMCs are checked."],
  ["provide", "Provide", "Provide", "They are cleaned, if that is switched on, and become available."],
  ["set-maintenance", "Maintenance", "Set maintenance on", "They stay as they are, and are left alone until maintenance ends."],
  ["clear-maintenance", "End maintenance", "End maintenance on", "Their faults are cleared."],
  ["delete", "Delete", "Delete", "Their ports, inspections and history are deleted with them. This cannot be undone."],
];
const EXAMPLES = 5;

// Chosen nodes stay chosen while other pages of the list, and other views, are shown.
const chosen = new Map(); // uuid -> name
let whole = null; // the filters, if all nodes of a query are chosen
let query = "";

const nodesOf = (number) => `${number.toLocaleString()} ${number === 1 ? "node" : "nodes"}`;

/** Return {bar, head, box} of a list of nodes: the bar is empty while nothing is chosen, `head(nodes)` begins a page and
 * is its checkbox, `box(node)` that of a node.
 * @param {object} filters of the query, as those of a request for nodes */
export function choosing(filters) {
  if (JSON.stringify(filters) !== query) {
    query = JSON.stringify(filters);
    chosen.clear();
    whole = null;
  }
  const said = el("strong", {role: "status"});
  const choose = (wanted) => { whole = wanted; chosen.clear(); draw(); };
  const all = el("button", {onclick: () => choose(filters)}, "Choose all of this query");
  const bar = el("div", {class: "acting", role: "group", "aria-label": "Act on the chosen nodes"}, said, all,
    el("button", {class: "quiet", onclick: () => { choose(null); announce("No nodes are chosen"); }}, "Choose none"),
    ACTIONS.map(([action, text, verb, then]) => el("button", {onclick: () => act(action, verb, then)}, `${text} …`)));
  let boxes = []; // [input, its nodes] of the page that is shown, the head first

  function draw() {
    bar.style.display = chosen.size === 0 && whole === null ? "none" : "";
    all.hidden = whole !== null;
    fill(said, whole === null ? `${nodesOf(chosen.size)} chosen` : "All nodes of this query");
    for (const [input, nodes] of boxes) {
      const number = whole === null ? nodes.filter((node) => chosen.has(node.uuid)).length : nodes.length;
      input.checked = nodes.length > 0 && number === nodes.length;
      input.indeterminate = number > 0 && number < nodes.length;
    }
  }

  function checkbox(label, nodes) {
    const input = el("input", {type: "checkbox", "aria-label": label, onchange: () => {
      whole = null;
      for (const node of nodes) {
        if (input.checked) chosen.set(node.uuid, node.name);
        else chosen.delete(node.uuid);
      }
      draw();
    }});
    boxes.push([input, nodes]);
    draw();
    return input;
  }

  draw();
  return {bar, head: (nodes) => { boxes = []; return checkbox("Choose all on this page", nodes); }, box: (node) => checkbox(`Choose ${node.name || node.uuid}`, [node])};
}

/** Return {body, json, error} of the preview; chosen nodes that another user has deleted are left out. */
async function previewed(action) {
  for (;;) {
    const uuids = [...chosen.keys()];
    const body = {action, ...whole === null ? {uuids} : {nodes: whole}};
    const {json, error} = await request("POST", "/v1/operations", {body: {...body, dry_run: true}});
    const gone = problemsOf(json).map(({pointer}) => uuids[/^\/uuids\/(\d+)$/.exec(pointer)?.[1]]).filter(Boolean);
    if (gone.length === 0 || gone.length === uuids.length) return {body, json, error};
    for (const uuid of gone) chosen.delete(uuid);
  }
}

/** Say what an action would do to the chosen nodes, and begin it. */
async function act(action, verb, then) {
  const {body, json, error} = await previewed(action);
  const {possible = 0, total = 0, impossible = []} = json ?? {};
  const reason = action === "set-maintenance" && field({label: "Reason", pointer: "/reason", kind: "area", rows: "2"});
  const number = action === "delete" && field({label: `Type ${possible} to confirm`, inputmode: "numeric", pointer: "/number"});
  const fields = [reason, number].filter(Boolean);
  const content = error ? notice(error) : [
    el("p", {}, possible > 0 ? then : "None of the chosen nodes can."),
    impossible.length > 0 && [el("h3", {}, `Not possible on ${nodesOf(total - possible)}`), el("ul", {class: "reasons"}, impossible.map((group) => el("li", {},
      el("strong", {}, group.number.toLocaleString()), ": ", line(group.reason), el("div", {class: "dim small"}, examples(group)))))],
    fields.map((each) => each.element)];
  const reply = await form(error ? `${verb} nodes` : `${verb} ${possible.toLocaleString()} of ${nodesOf(total)}?`,
    `${verb} ${possible.toLocaleString()}`, content, () => fields, async () => {
      if (error || possible === 0) return {error: error ?? {text: "There is nothing to do."}};
      if (number && number.value.trim() !== String(possible)) {
        return {error: {}, problems: [{pointer: "/number", text: `This is not ${possible}.`}]};
      }
      return request("POST", "/v1/operations", {body: {...body, ...(reason && reason.value ? {reason: reason.value} : {})}});
    });
  if (reply === null) return;
  chosen.clear();
  whole = null;
  go(address("operations", reply.json.uuid));
}

function examples({nodes, number}) {
  const shown = nodes.slice(0, EXAMPLES).map((node) => node.name || node.uuid).join(", ");
  return number > EXAMPLES ? `${shown} and ${(number - EXAMPLES).toLocaleString()} more` : shown;
}
