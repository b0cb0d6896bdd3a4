// The machines that a rule is tried on: nodes with what they sent last, entries of the journal, samples, pasted reports.

import {announce, el, fill, modal} from "../dom.js";
import {isObject, readJson} from "../json.js";
import {pages, request} from "../api.js";
import {empty, notice} from "../parts.js";

/** Machines at a time: each is a dry run after each change of the rule. */
export const MOST = 50;
const MOST_SHOWN = 200;
/** Characters from which on a pasted text is not shown: a text field takes seconds to break 10 MiB into lines. */
const LONG = 200_000;

/** Return a machine, whose data are requested when they are first needed.
 * @param {object | null} asked what a dry run of it has besides the rules; null: known with the data
 * @param {function} get(signal) returns a promise of {data: {inventory, plugin_data}, asked, error} */
function machine(id, name, kind, asked, get) {
  return {id, name, kind, asked, data: null,
    /** Return an error as request() has it, or null when `data` and `asked` are there. */
    async load(signal) {
      if (this.data !== null) return null;
      const {error = null, ...got} = await get(signal);
      if (error === null) Object.assign(this, got);
      return error;
    }};
}

export function nodeMachine(uuid, name = uuid) {
  return machine(`node ${uuid}`, name, "node", {node: uuid}, async (signal) => {
    const {json, error} = await request("GET", `/v1/nodes/${encodeURIComponent(uuid)}/inventory`, {signal});
    return {error, data: error ? null : {inventory: json.inventory, plugin_data: json.plugin_data ?? {}}};
  });
}

function reported(id, name, kind, report) {
  return Object.assign(machine(id, name, kind, {report, imagined: true}), {data: split(report)});
}

/** Return what a report is for rules: everything beside the inventory is plug-in data. */
function split(report) {
  const {inventory, ...others} = report;
  return {inventory: inventory ?? {}, plugin_data: others};
}

function journalMachine(entry) {
  const name = entry.macs?.[0] ?? entry.source ?? entry.uuid;
  return machine(`journal ${entry.uuid}`, name, "journal entry", null, async (signal) => {
    const {json, error} = await request("GET", `/v1/inspection_journal/${entry.uuid}`, {signal});
    if (error) return {error};
    if (!json.report) {
      return {error: {status: 0, text: "The journal has not kept this report: [inspection_journal]keep_reports is false, "
        + "or the report is longer than 1 MiB."}};
    }
    return {data: split(json.report), asked: {report: json.report, imagined: true}};
  });
}

let samples = null;

/** Return the machines of the samples: they are part of the service. */
export async function sampleMachines(signal) {
  if (samples === null) {
    const {json, error} = await request("GET", "/v1/inspection_rules/samples", {signal});
    if (error) return {machines: [], error};
    samples = json.samples.map(({name, report}) => reported(`sample ${name}`, name, "sample", report));
  }
  return {machines: samples, error: null};
}

let pasted = 0;

/** Return the machine of a pasted report, or throw an Error whose message says why it is none.
 * @param {string} text JSON: what a ramdisk sends, what `GET /v1/nodes/NODE/inventory` returns, or an inventory alone
 */
export function pastedMachine(text) {
  let value;
  try {
    value = readJson(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`, {cause: error});
  }
  if (!isObject(value)) throw new Error("A report is an object.");
  const report = value.inventory === undefined ? {inventory: value}
    : isObject(value.plugin_data) ? {...value.plugin_data, inventory: value.inventory} : value;
  pasted += 1;
  return reported(`pasted ${pasted}`, `pasted ${pasted}`, "pasted", report);
}

/** Let the person choose machines in a dialog; return a promise of them, null if nothing is to change. */
export function chooseMachines(current, signal) {
  return new Promise((resolve) => {
    const chosen = new Map(current.map((machine) => [machine.id, machine]));
    const list = el("div", {class: "choices", tabindex: "0", role: "group", "aria-label": "Machines"});
    const told = el("p", {class: "dim", role: "status"});
    const seek = el("input", {type: "search", autocomplete: "off", spellcheck: "false", oninput: () => draw()});
    const paste = el("textarea", {spellcheck: "false", "aria-label": "A report or an inventory as JSON", onpaste: (event) => {
      const text = event.clipboardData.getData("text/plain");
      if (text.length < LONG || paste.value !== "") return;
      event.preventDefault();
      add(text);
    }});
    const mistake = el("div", {});
    let groups = null;
    let answer = null;

    function draw() {
      if (groups === null) return;
      const sought = seek.value.trim().toLowerCase();
      fill(list, groups.map(({title, machines, more, error, hint}) => {
        const hits = machines.filter((machine) => `${machine.name} ${machine.id}`.toLowerCase().includes(sought));
        const shown = hits.slice(0, MOST_SHOWN);
        return [el("h3", {}, title), error && notice(error, load), !error && shown.length === 0 && empty(sought ? "None has this in its name." : hint),
          shown.map((machine) => el("label", {class: "choice"}, el("input", {type: "checkbox",
            checked: chosen.has(machine.id), onchange: (event) => {
              if (event.target.checked) chosen.set(machine.id, machine);
              else chosen.delete(machine.id);
              tell();
            }}), el("span", {}, machine.name, machine.detail && el("span", {class: "dim"}, ` ${machine.detail}`)))),
        hits.length > shown.length && empty(`Shows the first ${shown.length} of ${hits.length.toLocaleString()}: search for the others.`),
        more && empty(`Only the first ${machines.length.toLocaleString()} are listed and searched.`)];
      }));
      tell();
    }

    function load() {
      fill(list, el("p", {class: "dim", "aria-busy": "true"}, "Loading …"));
      offered(current, signal).then((found) => { groups = found; draw(); }, (error) => {
        if (error.name !== "AbortError") fill(list, notice({text: String(error.message ?? error)}, load));
      });
    }

    function tell() {
      told.textContent = chosen.size > MOST ? `${chosen.size} are chosen, the first ${MOST} of them are tried.`
        : `${chosen.size} chosen`;
    }

    function add(text) {
      try {
        const machine = pastedMachine(text);
        chosen.set(machine.id, machine);
        groups?.unshift({title: "Pasted", machines: [machine], hint: ""});
        paste.value = "";
        fill(mistake, el("p", {class: "dim"}, `${machine.name} is added.`));
        announce(`${machine.name} is added`);
        draw();
      } catch (error) {
        fill(mistake, notice({text: error.message}));
      }
    }

    const dialog = modal("Machines to try the rule on", {class: "wide-dialog", closed: () => resolve(answer)},
      el("label", {class: "field"}, el("span", {}, "Search"), seek), list,
      el("details", {}, el("summary", {}, "Paste a report"), paste, mistake, el("button", {type: "button", onclick: () => add(paste.value)}, "Add")),
      told,
      el("form", {method: "dialog", class: "buttons", onsubmit: (event) => {
        if (event.submitter?.value === "yes") answer = [...chosen.values()].slice(0, MOST);
      }}, el("button", {class: "primary", value: "yes"}, "Try on these"), el("button", {value: "no"}, "Cancel")));
    signal.addEventListener("abort", () => dialog.close(), {once: true});
    load();
  });
}

async function offered(current, signal) {
  const [nodes, entries, known] = await Promise.all([
    pages("/v1/nodes?fields=uuid,name,provision_state&limit=1000", "nodes", {signal, most: 5000}),
    pages("/v1/inspection_journal?sort_key=seen_at&sort_dir=desc&limit=100", "inspection_journal", {signal, most: 100}),
    sampleMachines(signal)]);
  const pastedOnes = current.filter((machine) => machine.kind === "pasted");
  return [
    ...pastedOnes.length > 0 ? [{title: "Pasted", machines: pastedOnes, hint: ""}] : [],
    {title: "Nodes", error: nodes.error, more: nodes.more, hint: "There are no nodes.", machines: nodes.items.map((node) =>
      Object.assign(nodeMachine(node.uuid, node.name ?? node.uuid), {detail: node.provision_state}))},
    {title: "Samples", error: known.error, hint: "There are no samples.", machines: known.machines},
    {title: "Rejected reports, in the journal", error: entries.error, hint: "No report was rejected.",
      machines: entries.items.map((entry) => Object.assign(journalMachine(entry), {detail: entry.reason}))},
  ];
}
