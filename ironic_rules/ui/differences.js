// Differences between two reports of a machine.

import {el, when} from "./dom.js";
import {empty, short, table} from "./parts.js";

const LISTS = {disks: "Disks", interfaces: "Interfaces", pci_devices: "PCI devices", firmware_components: "Firmware components"};
const FIELDS = {memory: "Memory", firmware: "Firmware"};
const MOST = 500;

/** Return an answer of GET /v1/nodes/{node}/inventory/diff as elements. */
export function differences(told) {
  const rows = [];
  for (const [name, title] of Object.entries(LISTS)) {
    const {added = [], removed = [], changed = []} = told[name] ?? {};
    for (const item of added) rows.push([title, mark("came", "good"), describe(item), "", ""]);
    for (const item of removed) rows.push([title, mark("went", "plain"), describe(item), "", ""]);
    for (const {identity, changes} of changed) {
      for (const [field, {before, after}] of Object.entries(changes)) rows.push([title, mark("changed", "busy"), [describe(identity), " ", el("code", {}, field)], value(before), value(after)]);
    }
  }
  for (const [name, title] of Object.entries(FIELDS)) {
    for (const [field, {before, after}] of Object.entries(told[name] ?? {})) {
      rows.push([title, mark("changed", "busy"), el("code", {}, field), value(before), value(after)]);
    }
  }
  const patch = told.patch ?? [];
  return [
    el("p", {class: "dim"}, "From ", when(told.from.created_at), " to ", when(told.to.created_at), "."),
    rows.length === 0 ? empty("The same disks, interfaces, memory, PCI devices and firmware.")
      : table("Changes", ["Part", "Change", "Item", "Before", "After"], rows),
    el("details", {}, el("summary", {}, `All of the inventory: ${patch.length} ${patch.length === 1 ? "difference" : "differences"}`),
      table("All differences", ["Change", "Path", "Value"], patch.slice(0, MOST).map(({op, path, value: to}) => [
        mark(...{add: ["came", "good"], remove: ["went", "plain"]}[op] ?? ["changed", "busy"]), el("code", {}, path), value(to)])),
      patch.length > MOST && empty(`Shows the first ${MOST}.`)),
  ];
}

function mark(text, kind) {
  return el("span", {class: `state ${kind}`}, text);
}

function value(of) {
  return of === undefined ? "" : el("code", {}, short(of));
}

function describe(item) {
  const known = ["name", "model", "vendor", "serial", "mac_address", "bus", "vendor_id", "product_id", "component", "id"];
  const told = known.filter((key) => item?.[key]).map((key) => short(item[key], 60));
  return told.length > 0 ? told.join(" · ") : short(item);
}

/** Return options of a choice among versions of an inventory. */
export function versionOptions(versions, chosen = null) {
  return versions.map((each) => {
    const date = new Date(each.created_at).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});
    return el("option", {value: each.version, selected: String(each.version) === String(chosen)}, `${date}, ${each.status} (${each.version})`);
  });
}
