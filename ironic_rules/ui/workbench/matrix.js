// Rules and machines as a table: which rule matches which machine. A cell opens its trace.

import {el} from "../dom.js";
import {markOf, verdictOf} from "./traces.js";

/** Return the table.
 * @param {Array} machines its columns, in order
 * @param {Map<string, object>} replies answers of dry runs by the id of their machine
 * @param {object} shown {rule, machine}: the cell whose trace is shown
 * @param {function} nameOf(uuid, description) of a rule, for people
 * @param {Set<string>} drafts UUIDs of the rules that are written here
 * @param {boolean} isRunning whether machines without an answer are waited for; else they were not tried
 * @param {function} opened called with (rule, machine) */
export function matrix(machines, replies, shown, nameOf, drafts, isRunning, opened) {
  const rules = new Map(); // uuid -> description, in the order of execution
  const steps = new Map();
  for (const machine of machines) {
    const found = new Map();
    for (const step of replies.get(machine.id)?.steps ?? []) {
      if (step.rule === undefined) continue;
      found.set(step.rule, step);
      if (!rules.has(step.rule)) rules.set(step.rule, step.description);
    }
    steps.set(machine.id, found);
  }
  // The rule that is written comes first; the others are in the order of execution.
  const ordered = [...rules].sort(([one], [other]) => Number(drafts.has(other)) - Number(drafts.has(one)));
  const rows = ordered.map(([uuid, description]) => {
    const name = nameOf(uuid, description);
    return el("tr", {class: drafts.has(uuid) ? "draft" : ""}, el("th", {scope: "row", title: name}, name),
      machines.map((machine) => {
        if (!replies.has(machine.id)) return el("td", isRunning ? {"aria-busy": "true"} : {title: `not tried on ${machine.name}`});
        const {mark, kind, text} = markOf(verdictOf(steps.get(machine.id).get(uuid)));
        const isShown = shown.rule === uuid && shown.machine === machine.id;
        return el("td", {}, el("button", {class: kind, "aria-pressed": String(isShown), "data-rule": uuid, "data-machine": machine.id,
          "aria-label": `${name} ${text} on ${machine.name}`, title: `${text} on ${machine.name}`}, mark));
      }));
  });
  return el("div", {class: "matrix", tabindex: "0", role: "region", "aria-label": "Rules and machines", onclick: (event) => {
    const cell = event.target.closest("button[data-rule]");
    if (cell) opened(cell.dataset.rule, cell.dataset.machine);
  }},
  el("table", {}, el("caption", {class: "unseen"}, "Matches of rules and machines"),
    el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "Rule"),
      machines.map((machine) => el("th", {scope: "col", title: machine.name}, machine.name)))),
    el("tbody", {}, rows)));
}
