// The journal of rejected reports: from which machines, why, and which nodes are near matches.

import {announce, el, fill, when} from "../dom.js";
import {poll, request} from "../api.js";
import {address, go, guardLeaving} from "../router.js";
import {empty, showsError, keepingFocus, loading, nextPage, notice, relative, section, short, table, timeOf} from "../parts.js";
import {tree} from "../tree.js";
import {lines, named, namedNode} from "../messages.js";

export const title = "Journal";

const REASONS = ["unknown", "discovery off", "wrong state", "several nodes", "bmc conflict", "not enrolled", "over its limit",
  "early rule", "malformed", "other"];
const MAC = /^[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}$/i;

export async function show(main, {path, query}, signal) {
  if (path[0]) await showEntry(main, path[0], signal);
  else await showList(main, query, signal);
}

async function showList(main, query, signal) {
  const reason = query.get("reason") ?? "";
  const search = query.get("mac") ?? query.get("address") ?? "";
  const list = el("div", {class: "list"}, loading("Loading the journal …", 10));
  const form = el("form", {class: "bar", role: "search", "aria-label": "Entries", onsubmit: (event) => {
    event.preventDefault();
    const text = form.elements.search.value.trim();
    go(address("journal", {reason: form.elements.reason.value, [MAC.test(text) ? "mac" : "address"]: text}));
  }},
  el("label", {class: "field"}, el("span", {}, "Why"), el("select", {name: "reason", onchange: () => form.requestSubmit()},
    el("option", {value: ""}, "any reason"), REASONS.map((each) => el("option", {value: each, selected: each === reason}, each)))),
  el("label", {class: "field"}, el("span", {}, "MAC, or address of a BMC"), el("input", {name: "search", value: search, spellcheck: "false"})),
  el("button", {}, "Apply"),
  (reason || search) && el("a", {class: "button", href: address("journal")}, "Clear"));
  const shared = el("div", {});
  fill(main, el("div", {class: "head"}, el("h1", {}, title),
    el("span", {class: "dim"}, "Reports of ramdisks that were rejected")), form, list, shared);

  const wanted = new URLSearchParams({sort_key: "seen_at", sort_dir: "desc", limit: 100});
  for (const name of ["reason", "mac", "address", "marker"]) if (query.get(name)) wanted.set(name, query.get(name));
  await Promise.all([showShared(shared, signal), poll(`/v1/inspection_journal?${wanted}`, {signal, seconds: 5}, ({json, error, headers}, again) => {
    const isFirst = list.querySelector("[aria-busy]") !== null;
    if (showsError(list, error, again)) return;
    const entries = json.inspection_journal;
    keepingFocus(list, () => fill(list, entries.length === 0
      ? empty(reason || search ? "No entries match." : "No report was rejected.")
      : table("Rejected reports", ["Machine", "Last", {text: "Times", class: "num"}, "Why", "Near matches", "From"],
        entries.map((entry) => [
          {class: "name", children: el("a", {href: address("journal", entry.uuid)}, machine(entry))},
          {class: "nowrap", children: relative(entry.seen_at, timeOf(headers))}, {class: "num", children: entry.times.toLocaleString()},
          {class: "long", children: [entry.reason, entry.detail && el("div", {class: "dim"}, named(entry.detail))]},
          near(entry.nodes), entry.source])),
    nextPage(json, (marker) => address("journal", {...Object.fromEntries(query), marker}))));
    if (isFirst) announce(`${entries.length} entries`);
  })]);
}

/** Return what a machine is called that no node is known for. */
function machine({macs, source}) {
  return macs[0] ?? source ?? "a machine without a MAC address";
}

async function showShared(place, signal) {
  const {json} = await request("GET", "/v1/shared_macs", {signal});
  if (!json?.shared_macs?.length) return;
  const heading = "Addresses that identify no machine";
  fill(place, section(heading, table(heading, ["MAC address", "Since", "Reported by machines of", "Port of"],
    json.shared_macs.map((entry) => [el("code", {}, entry.address), {class: "nowrap", children: when(entry.created_at)},
      entry.nodes.map((uuid) => el("div", {}, namedNode(uuid))), entry.port_of && namedNode(entry.port_of)]))));
}

function near(nodes) {
  return nodes.map((node) => el("div", {}, namedNode(node.uuid ?? node.node)));
}

async function showEntry(main, uuid, signal) {
  const {json: entry, error} = await request("GET", `/v1/inspection_journal/${encodeURIComponent(uuid)}`, {signal});
  if (error) {
    fill(main, el("h1", {}, title), notice(error, () => showEntry(main, uuid, signal)),
      el("p", {}, el("a", {href: address("journal")}, "All entries")));
    return;
  }
  const enrolment = el("div", {}, loading("Loading drivers …", 3));
  fill(main,
    el("div", {class: "head"}, el("h1", {}, machine(entry)),
      el("span", {class: "dim"}, `rejected ${entry.times === 1 ? "once" : `${entry.times} times`}, last `, when(entry.seen_at)),
      el("a", {href: address("journal")}, "All entries")),
    el("div", {class: "notice bad", id: "why"}, el("p", {}, el("strong", {}, entry.reason)), entry.detail && lines(entry.detail)),
    el("div", {class: "columns"},
      section("The machine", el("dl", {class: "facts"},
        fact("From", entry.source), fact("MAC addresses", entry.macs.map((mac) => el("div", {}, el("code", {}, mac)))),
        fact("BMC", entry.bmc_addresses.map((each) => el("div", {}, el("code", {}, each)))),
        fact("Says it is", entry.node_uuid && namedNode(entry.node_uuid)), fact("First", when(entry.created_at)))),
      section("Near matches", entry.nodes.length === 0 ? empty("No node has anything in common with this machine.")
        : table("Near matches", ["Node", "In common with the machine"], entry.nodes.map((node) => {
          const {uuid: id, node: other, name, ...others} = node;
          return [name ? el("a", {href: address("node", id ?? other)}, name) : namedNode(id ?? other), Object.entries(others).map(([key, value]) =>
            el("div", {}, `${key.replaceAll("_", " ")}: `, el("code", {}, short(value))))];
        }))),
      section("Enroll this machine", enrolment)),
    entry.report && section("Report", tree(entry.report, {label: "the report"})));

  const offer = async () => {
    const {json, error} = await request("GET", "/v1/drivers", {signal});
    if (error) fill(enrolment, notice(error, offer));
    else await showEnrolment(enrolment, entry, json.drivers.map((driver) => driver.name), signal);
  };
  await offer();
}

// Keys of driver_info by which a driver reaches the BMC; the others have defaults, or are set at the node.
const CREDENTIALS = /^[a-z]+_(?:address|username|password|system_id|verify_ca)$/;
const REQUIRED = / Required\.$/;
const DRIVER_INFO = "driver_info.";

async function showEnrolment(place, entry, drivers, signal) {
  const result = el("div", {});
  const button = el("button", {class: "primary"}, "Enroll");
  const input = (name, label, attributes = {}) => el("label", {class: "field"}, el("span", {}, label),
    el("input", {name, spellcheck: "false", autocomplete: "off", ...attributes}));
  const bmc = el("div", {class: "bar", role: "group", "aria-label": "BMC"});
  const showDriver = async (driver) => {
    const {json, error} = await request("GET", `/v1/drivers/${encodeURIComponent(driver)}/properties`, {signal});
    const keys = Object.entries(json ?? {}).filter(([key]) => CREDENTIALS.test(key));
    fill(bmc, error && notice(error, () => showDriver(driver)), keys.map(([key, text]) => input(DRIVER_INFO + key, `${key.replaceAll("_", " ")}${REQUIRED.test(text) ? "" : " (optional)"}`, {
      title: text, required: REQUIRED.test(text), type: key.endsWith("password") ? "password" : "text",
      autocomplete: key.endsWith("password") ? "new-password" : "off", value: key.endsWith("_address") ? entry.bmc_addresses[0] : null})),
    !error && keys.length === 0 && el("p", {class: "dim"}, "This driver has no BMC."));
  };
  const form = el("form", {onsubmit: async (event) => {
    event.preventDefault();
    const body = {};
    for (const [name, text] of new FormData(form)) {
      if (text === "") continue;
      const value = name.endsWith("password") ? text : text.trim();
      if (name.startsWith(DRIVER_INFO)) body.driver_info = {...body.driver_info, [name.slice(DRIVER_INFO.length)]: value};
      else body[name] = value;
    }
    button.disabled = true;
    const reply = await request("POST", `/v1/inspection_journal/${entry.uuid}/enroll`, {body, signal});
    button.disabled = false;
    if (showsError(result, reply.error)) return;
    form.reset();
    announce("Enrolled");
    go(address("node", reply.json.uuid));
  }},
  el("p", {class: "dim"}, "It becomes a node that waits for the machine’s next report."),
  el("div", {class: "bar"}, input("name", "Name (optional)"), el("label", {class: "field"}, el("span", {}, "Driver"),
    el("select", {name: "driver", onchange: (event) => showDriver(event.target.value)}, drivers.map((name) => el("option", {}, name))))), bmc,
  el("div", {class: "bar"}, input("resource_class", "Resource class (optional)"), input("owner", "Owner (optional)")), button, result);
  guardLeaving(signal, () => form.isConnected && [...form.elements].some((each) => each.matches("input") && each.value !== each.defaultValue));
  if (drivers.length > 0) await showDriver(drivers[0]);
  fill(place, drivers.length === 0 ? empty("No conductor is alive, so that there is no driver.") : form);
}

function fact(name, value) {
  const isEmpty = value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  return el("div", {}, el("dt", {}, name), el("dd", {}, isEmpty ? "–" : value));
}
