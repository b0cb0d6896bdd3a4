"""``validate-interfaces``: validate the network interfaces, the boot interface and the BMC address."""

from __future__ import annotations

from typing import Any

import orjson

from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.inspection.shared_addresses import has_ip, natural
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.task import Task
from ironic_rules.text import enumeration, printable


class ValidateInterfacesHook(InspectionHook):
    """Stores in the plugin data what other hooks, rules and clients read:

    ``all_interfaces``
        ``{name: interface}`` of every interface with a name and an Ethernet address: the inventory's fields, with
        ``mac_address`` in lower case, ``ipv6_address`` without its zone, and the Boolean ``pxe_enabled``: whether the
        ramdisk booted from the interface's address. With ``infiniband_addresses`` also those with an InfiniBand
        address, whose ``mac_address`` is that which stands for it
    ``valid_interfaces``
        interfaces that may become ports: not the loopback interface
    ``macs``
        their addresses, each once
    ``boot_interface``
        the interface that the ramdisk booted from, in the ramdisk's notation; missing if unknown
    ``bmc_address``
        the BMC's IPv4 address, else its IPv6 address; missing if there is none

    Interfaces that share an address (a bond, a VLAN or a bridge has that of its parent) are all there. The order is
    that of the names, because that of a report is random. A machine without a valid interface does not fail: it may be
    identified by its BMC.
    """

    def preprocess(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        boot = inventory.get("boot")
        boot = boot if isinstance(boot, dict) else {}
        reported = [boot.get("pxe_interface"), plugin_data.get("boot_interface")]
        boot_interface = next((text for text in reported if addresses.mac_from_pxelinux(text)), None)
        interfaces = _interfaces(task, inventory, addresses.mac_from_pxelinux(boot_interface),
                                 self.settings.infiniband_addresses)
        valid = {name: dict(interface) for name, interface in interfaces.items() if not _is_loopback(name, interface)}
        plugin_data["all_interfaces"] = interfaces
        plugin_data["valid_interfaces"] = valid
        plugin_data["macs"] = list(dict.fromkeys(interface["mac_address"] for interface in valid.values()))
        _put(plugin_data, "boot_interface", boot_interface)
        _put(plugin_data, "bmc_address", addresses.normalize(inventory.get("bmc_address"))
             or addresses.normalize(inventory.get("bmc_v6address")))

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        pass


def _interfaces(task: Task, inventory: JSONObject, boot_address: str | None, infiniband: bool) -> dict[str, JSONObject]:
    by_name: dict[str, list[JSONObject]] = {}
    listed = inventory.get("interfaces") or []
    if not isinstance(listed, list):
        warn(task, "interfaces are not evaluated: /interfaces is not a list")
        listed = []
    for index, interface in enumerate(listed):
        where = f"/interfaces/{index}"
        if not isinstance(interface, dict):
            warn(task, f"{where} is ignored: it is not an object")
            continue
        name, address = interface.get("name"), interface.get("mac_address")
        if not address or (addresses.is_infiniband(address) and not infiniband):
            continue
        address = addresses.mac_of_interface(address, infiniband=infiniband)
        if address is None:
            warn(task, f"{where} is ignored: its MAC address is malformed")
            continue
        if not isinstance(name, str) or not name:
            warn(task, f"{where} ({address}) is ignored: it has no name")
        else:
            by_name.setdefault(name, []).append({
                **clone(interface), "mac_address": address, "pxe_enabled": address == boot_address,
                "ipv6_address": _without_zone(interface.get("ipv6_address")),
            })
    return {name: _one(task, name, by_name[name]) for name in sorted(by_name, key=natural)}


def _one(task: Task, name: str, interfaces: list[JSONObject]) -> JSONObject:
    """Return the interface of a name: if the report has several, not the one that happens to be the first."""
    if len(interfaces) > 1:
        interfaces.sort(key=lambda item: (not item["pxe_enabled"], not has_ip(item), item["mac_address"],
                                          orjson.dumps(item, option=orjson.OPT_SORT_KEYS)))
        ignored = [interface["mac_address"] for interface in interfaces[1:]]
        warn(task, f"interfaces of the name {printable(name, 64)} are ignored except for {interfaces[0]['mac_address']}"
                   f": {enumeration(ignored)}")
    return interfaces[0]


def _is_loopback(name: str, interface: JSONObject) -> bool:
    parsed = (addresses.parse(interface.get(key)) for key in ("ipv4_address", "ipv6_address"))
    return name == "lo" or any(address is not None and address.is_loopback for address in parsed)


def _without_zone(address: object) -> Any:
    return address.split("%")[0] if isinstance(address, str) else address


def _put(data: JSONObject, key: str, value: object) -> None:
    if value is None:
        data.pop(key, None)
    else:
        data[key] = value
