"""``validate-interfaces``: validate the network interfaces, the boot interface and the BMC address."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import addresses, mac
from ironic_rules.models.json_values import clone
from ironic_rules.models.task import Task


class ValidateInterfacesHook(InspectionHook):
    """Stores in the plugin data what other hooks, rules and clients read:

    ``all_interfaces``
        ``{name: interface}`` of every interface with a name and an Ethernet address: the inventory's fields, with
        ``mac_address`` in lower case, ``ipv6_address`` without its zone, and the Boolean ``pxe_enabled``: whether the
        ramdisk booted from the interface
    ``valid_interfaces``
        those of them that may become ports: not the loopback interface
    ``macs``
        their addresses
    ``boot_interface``
        the interface that the ramdisk booted from, in the ramdisk's notation; missing if unknown
    ``bmc_address``
        the BMC's IPv4 address, else its IPv6 address; missing if there is none

    A machine without a valid interface does not fail: it may be identified by its BMC.
    """

    def preprocess(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        boot = inventory.get("boot") or {}
        reported = [boot.get("pxe_interface"), plugin_data.get("boot_interface")]
        boot_interface = next((text for text in reported if mac.from_pxelinux(text)), None)
        known = _interfaces(task, inventory, mac.from_pxelinux(boot_interface))
        valid = {name: dict(interface) for name, interface in known.items() if not _is_loopback(name, interface)}
        plugin_data["all_interfaces"] = known
        plugin_data["valid_interfaces"] = valid
        plugin_data["macs"] = [interface["mac_address"] for interface in valid.values()]
        _put(plugin_data, "boot_interface", boot_interface)
        _put(plugin_data, "bmc_address", addresses.normalize(inventory.get("bmc_address"))
             or addresses.normalize(inventory.get("bmc_v6address")))

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        pass


def _interfaces(task: Task, inventory: dict[str, Any], boot_address: str | None) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    listed = inventory.get("interfaces") or []
    if not isinstance(listed, list):
        raise InvalidInventory(node=task.node.uuid, where="/interfaces is not a list")
    for index, interface in enumerate(listed):
        where = f"/interfaces/{index}"
        if not isinstance(interface, dict):
            raise InvalidInventory(node=task.node.uuid, where=f"{where} is not an object")
        name, address = interface.get("name"), interface.get("mac_address")
        if not address or mac.is_infiniband(address):
            continue
        if not mac.is_mac(address):
            warn(task, f"{where} is ignored: its MAC address is malformed")
            continue
        address = mac.normalize(address)
        if not isinstance(name, str) or not name:
            warn(task, f"{where} ({address}) is ignored: it has no name")
        elif name in found or address in seen:
            warn(task, f"{where} ({name}, {address}) is ignored: an earlier interface has the same name or address")
        else:
            seen.add(address)
            found[name] = {
                **clone(interface), "mac_address": address, "pxe_enabled": address == boot_address,
                "ipv6_address": _without_zone(interface.get("ipv6_address")),
            }
    return found


def _is_loopback(name: str, interface: dict[str, Any]) -> bool:
    parsed = (addresses.parse(interface.get(key)) for key in ("ipv4_address", "ipv6_address"))
    return name == "lo" or any(address is not None and address.is_loopback for address in parsed)


def _without_zone(address: Any) -> Any:
    return address.split("%")[0] if isinstance(address, str) else address


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        data.pop(key, None)
    else:
        data[key] = value
