// A machine in short: what it is, from its facts, or from its report where an inspection failed before there were any.

import {el} from "./dom.js";
import {address} from "./router.js";
import {copyButton, empty, icon, ruleLink, table} from "./parts.js";

const GIB = 1024;

/** Return a size of disks in GB as people say it. */
function size(gb) {
  return gb >= 1000 ? `${(gb / 1000).toFixed(1)} TB` : `${Math.round(gb)} GB`;
}

function speed(mbps) {
  return mbps >= 1000 ? `${mbps / 1000} Gbit/s` : `${mbps} Mbit/s`;
}

function count(number, one, many = `${one}s`) {
  return `${number} ${Number(number) === 1 ? one : many}`;
}

function joined(...parts) {
  return parts.filter((part) => part !== null && part !== undefined && part !== "" && part !== false).join(" · ");
}

/** Return the values of a report that have the names of facts. */
export function reported(report) {
  const {system_vendor: system = {}, cpu = {}, memory = {}, disks = [], interfaces = [], ...others} = report?.inventory ?? {};
  const sizes = (Array.isArray(disks) ? disks : []).map((disk) => Number(disk?.size) || 0).filter((each) => each > 0);
  return {vendor: system?.manufacturer, product: system?.product_name, serial: system?.serial_number, bios_version: system?.firmware?.version,
    cpu_model: cpu?.model_name, cpu_count: cpu?.count, cpu_arch: cpu?.architecture, memory_gib: memory?.physical_mb && memory.physical_mb / GIB,
    disk_count: sizes.length, disk_gb: sizes.reduce((sum, each) => sum + each, 0) / 1e9, nic_count: interfaces?.length, bmc_address: others.bmc_address};
}

/** Return what a machine is, in tiles. `facts` are those of the node, or of reported(). */
export function machine(node, facts) {
  const product = String(facts.product ?? "").replace(/ \(SKU=.*\)$/, "");
  const disks = [["nvme", "NVMe"], ["ssd", "SSD"], ["hdd", "HDD"]].filter(([key]) => facts[`${key}_count`] > 0).map(([key, name]) => `${facts[`${key}_count`]} ${name}`);
  return el("dl", {class: "tiles"},
    tile("server", "Model", product, joined(facts.vendor, facts.virtual === true && "virtual")),
    tile("tag", "Serial", facts.serial && [facts.serial, copyButton(String(facts.serial), "Copy", "serial")], facts.asset_tag && `asset ${facts.asset_tag}`),
    tile("microchip", "CPU", facts.cpu_model && joined(facts.cpu_sockets > 1 && `${facts.cpu_sockets} ×`, String(facts.cpu_model).replaceAll(/\((?:R|TM)\)/g, "")).replace(" · ", " "),
      joined(facts.cpu_count && count(facts.cpu_count, "thread"), facts.cpu_arch)),
    tile("memory-stick", "Memory", facts.memory_gib && `${Math.round(facts.memory_gib * 10) / 10} GiB`),
    tile("hard-drive", "Disks", facts.disk_count > 0 ? size(facts.disk_gb) : facts.disk_count === 0 && "none", disks.length > 0 ? disks.join(", ") : facts.disk_count > 0 && count(facts.disk_count, "disk")),
    tile("ethernet-port", "Network", facts.nic_count !== undefined && count(facts.nic_count, "NIC"),
      joined(facts.nic_speed && `up to ${speed(facts.nic_speed)}`, facts.nic_link_count !== undefined && `${facts.nic_link_count} with link`)),
    tile("monitor", "BMC", facts.bmc_address ?? facts.bmc_v6_address, facts.bmc_mac),
    tile("settings", "Firmware", facts.bios_version, joined(facts.bios_date, facts.boot_mode)),
    tile("layers", "Class", node.resource_class, joined(node.driver, node.conductor_group)),
    tile("box", "Instance", node.instance_uuid ?? "none", node.lessee && `leased to ${node.lessee}`),
    tile("user", "Owner", node.owner ?? "none", node.description));
}

function tile(picture, name, value, more = null) {
  return el("div", {}, el("dt", {}, icon(picture), name), el("dd", {}, el("strong", {}, value || "–"), more && el("div", {class: "dim small"}, more)));
}

/** Return traits as chips, each with the rule that gave it, and a link to the steps that it brings. `names` are of rules. */
export function traitChips(traits, givers, names, templates) {
  if (traits.length === 0) return empty("No trait. Rules give them, by what they find in the inventory.");
  return el("ul", {class: "chips plain", "aria-label": "Traits"}, traits.map((trait) => el("li", {class: "chip"}, el("code", {}, trait),
    el("span", {class: "dim small"}, givers.has(trait) ? ["by ", ruleLink(givers.get(trait), names)] : "not by a rule"),
    templates.has(trait) && el("a", {class: "small", href: address("templates", templates.get(trait))}, "its steps"))));
}

/** Return the network interfaces: those of the ports, and those that the newest report has. */
export function nics(ports, report) {
  const seen = new Map((Array.isArray(report?.inventory?.interfaces) ? report.inventory.interfaces : []).filter((each) => each?.mac_address)
    .map((each) => [String(each.mac_address).toLowerCase(), each]));
  const known = new Map(ports.map((port) => [port.address, port]));
  const rows = [...new Set([...known.keys(), ...seen.keys()])].map((mac) => {
    const [port, nic] = [known.get(mac), seen.get(mac)];
    const told = report?.plugin_data?.parsed_lldp?.[nic?.name] ?? {};
    const link = port?.local_link_connection ?? {};
    return [{class: "nowrap", children: [el("strong", {}, nic?.name ?? port?.name ?? ""), el("div", {}, el("code", {}, mac))]},
      nic ? [nic.speed_mbps ? speed(nic.speed_mbps) : "", el("div", {class: "dim small"}, nic.has_carrier === true ? "link" : nic.has_carrier === false ? "no link" : "")]
        : el("span", {class: "dim"}, report ? "not in the newest report" : ""),
      [link.switch_info ?? told.switch_system_name ?? link.switch_id ?? told.switch_chassis_id ?? "", el("div", {class: "dim small"}, link.port_id ?? told.switch_port_id ?? "")],
      [port ? port.physical_network ?? "" : el("span", {class: "dim"}, "no port"), port?.pxe_enabled && el("div", {class: "dim small"}, "PXE")]];
  });
  return rows.length === 0 ? empty("No network interface is known. An inspection adds those that the machine reports.")
    : table("Network interfaces", ["Interface", "Speed", "Switch and port", "Network"], rows);
}
