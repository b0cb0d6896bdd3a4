"""Reports of real-shaped machines, with the nodes that they become: ``tests/corpus``.

A machine is written with the names of its parts, and sends what ironic-python-agent of its year would. The result of
its inspection is compared in the same short form, see :func:`summary`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "corpus"
NOT_MACHINES = {"parts", "rules"}
#: The option [inspector]physical_network_cidr_map
NETWORKS = ("192.0.2.0/24:provider", "198.51.100.0/24:storage", "2001:db8:42::/48:v6")
#: vendor and product ids of the option [inspector]pci_device_alias, by capability
ALIASES = {"a100": "10de:20b2", "h100": "10de:2330", "mi250x": "1002:7408", "gaudi2": "1da3:1020", "cx7": "15b3:1021"}

Json = Any


def _load(name: str) -> Json:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


PARTS = _load("parts")
RULES: list[Json] = _load("rules")


def machines() -> list[dict[str, Json]]:
    """Return all machines, in the order of files and places."""
    names = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    return [machine for name in names if name not in NOT_MACHINES for machine in _load(name)]


def lldp(text: str) -> list[list[Json]]:
    """Return the frame of a switch's port such as ``leaf-1/7``."""
    switch, port = text.split("/", 1)
    chassis = f"04d89ef30011{int(switch.rpartition('-')[2]):02x}"
    return [[1, chassis], [2, "05" + port.encode().hex()], [5, switch.encode().hex()]]


def body(machine: dict[str, Json]) -> dict[str, Json]:
    """Return what the machine's ramdisk POSTs."""
    year = machine.get("agent", 2026)
    manufacturer, product, serial = machine.get("vendor", (None, None, None))
    firmware = dict(zip(("vendor", "version", "build_date"), machine.get("firmware", ("", "", "")), strict=True))
    cpu = PARTS["cpus"][machine["cpu"]]
    interfaces = [interface for entry in machine.get("interfaces", ()) for interface in _repeated(entry)]
    mode, _, booted = machine.get("boot", "uefi").partition(" ")
    if booted and not booted.startswith(("01-", "20-")):
        address = next(entry["mac"] for entry in interfaces if entry["name"] == booted)
        booted = f"01-{address.lower().replace(':', '-')}"
    inventory: dict[str, Json] = {
        "interfaces": [_fields(_interface(entry), "interface", year) for entry in interfaces],
        "cpu": _fields({"architecture": "x86_64", **cpu, "flags": PARTS["flags"][cpu["flags"]]}, "cpu", year),
        "disks": [_fields(_disk(disk), "disk", year) for entry in machine["disks"] for disk in _repeated(entry)],
        "memory": {"physical_mb": machine["memory_mb"], "total": (machine["memory_mb"] or 0) * 1_028_000},
        "bmc_address": machine.get("bmc", "0.0.0.0"), "bmc_v6address": machine.get("bmc_v6", "::/0"),
        "system_vendor": {"manufacturer": manufacturer, "product_name": product, "serial_number": serial,
                          "firmware": firmware},
        "boot": {"current_boot_mode": mode, "pxe_interface": booted or None},
        "hostname": machine.get("hostname", "localhost.localdomain"),
        **machine.get("inventory", {})}
    sent: dict[str, Json] = {"inventory": inventory, "error": None, "boot_interface": booted or None}
    if frames := {entry["name"]: lldp(entry["switch"]) for entry in interfaces if "switch" in entry}:
        sent["lldp_raw"] = frames
    if "pci" in machine:
        sent["pci_devices"] = list(_pci_devices(machine["pci"]))
    return {**sent, **machine.get("plugin_data", {})}


def _repeated(entry: dict[str, Json]) -> Iterator[dict[str, Json]]:
    """Yield an entry ``count`` times, once without it; ``{n}`` and ``{x}``, two digits, are replaced by the number."""
    for number in range(entry.get("count", 1)):
        yield {key: value.replace("{n}", str(number)).replace("{x}", f"{number:02x}") if isinstance(value, str)
               else value for key, value in entry.items() if key != "count"}


def _fields(values: dict[str, Json], kind: str, year: int) -> dict[str, Json]:
    """Return the fields that the agent of a year sends, null without a value, and those that only this machine has."""
    by_year = {name: since for since, kinds in PARTS["agents"].items() for name in kinds[kind]}
    sent = {name: values.get(name) for name, since in by_year.items() if since <= year}
    return sent | {name: value for name, value in values.items() if name not in by_year}


def _interface(entry: dict[str, Json]) -> dict[str, Json]:
    card = PARTS["cards"][entry["card"]] if "card" in entry else {}
    more = {key: value for key, value in entry.items() if key not in ("card", "mac", "ip", "ip6", "switch")}
    found = {"ipv4_address": entry.get("ip"), "ipv6_address": entry.get("ip6"), "mac_address": entry["mac"]}
    has_carrier = any(key in entry for key in ("ip", "ip6", "switch"))
    return {"has_carrier": has_carrier, "lldp": None, **card, **found, **more}


def _disk(entry: dict[str, Json]) -> dict[str, Json]:
    model = PARTS["disks"][entry["disk"]]
    return {"rotational": False, "logical_sectors": 512, "physical_sectors": 4096, **model,
            **{key: value for key, value in entry.items() if key != "disk"}}


def _pci_devices(entries: list[str]) -> Iterator[dict[str, Json]]:
    """Yield the devices of entries such as ``8 x 10de:2330``."""
    for bus, entry in enumerate(entries, 0x10):
        count, _, ids = entry.rpartition(" x ")
        vendor, product = ids.split(":")
        for number in range(int(count or 1)):
            yield {"vendor_id": vendor, "product_id": product, "class": "0x030200", "revision": "0xa1",
                   "bus": f"0000:{bus + number:02x}:00.0", "numa_node_id": number % 2}


def summary(node: dict[str, Json], ports: list[dict[str, Json]], plugin_data: dict[str, Json]) -> dict[str, Json]:
    """Return a node in the form of ``expect`` of a machine, without what is empty."""
    properties = dict(node["properties"])
    pairs = dict(pair.split(":") for pair in properties.pop("capabilities", "").split(",") if pair)
    accelerators = Counter(each["device_info"] for each in properties.pop("accelerators", ()))
    flags = " ".join(name.removeprefix("cpu_") for name in pairs if name.startswith("cpu_"))
    valid = plugin_data["valid_interfaces"]
    shown = {
        **properties, "root": (plugin_data.get("root_disk") or {}).get("name"), "boot": pairs.pop("boot_mode", None),
        "flags": flags, "devices": {name: int(value) for name, value in pairs.items() if not name.startswith("cpu_")},
        "accelerators": dict(accelerators),
        "bmc": plugin_data.get("bmc_address"), "extra": node["extra"],
        "ports": {port["address"]: _port(port, valid) for port in ports}}
    return {key: value for key, value in shown.items() if value not in (None, "", {}, [])}


def _port(port: dict[str, Json], valid: dict[str, Json]) -> dict[str, Json]:
    """Return a port: ``of`` the interfaces with its address, with the ``link`` ``SWITCH/PORT``."""
    link = port["local_link_connection"]
    of = [name for name, interface in valid.items() if interface["mac_address"] == port["address"]]
    found = {"of": " ".join(of), "pxe": port["pxe_enabled"], "net": port["physical_network"],
             "link": "/".join(link[key] for key in ("switch_info", "port_id") if key in link),
             "client_id": port["extra"].get("client-id")}
    return {key: value for key, value in found.items() if value}
