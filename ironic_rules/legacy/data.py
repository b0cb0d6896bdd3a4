"""The data that rules of ironic-inspector read: what its hooks made of a ramdisk's report, under their names there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.models import addresses


def processed(inventory: Mapping[str, Any], plugin_data: Mapping[str, Any], *,
              auto_discovered: bool = False) -> dict[str, Any]:
    """Return the data with the keys that ironic-inspector's rules read, besides all that the ramdisk has sent.

    :param plugin_data: with what hooks write: ``all_interfaces``, ``local_gb``, ``parsed_lldp`` and ``extra``
    :param auto_discovered: whether this inspection has enrolled the node

    ``memory_mb``, ``cpus``, ``cpu_arch``
        from the inventory
    ``ipmi_address``, ``ipmi_v6address``
        the addresses of the BMC
    ``all_interfaces``
        by name, each with ``mac``, ``ip``, ``pxe``, ``client_id``, and ``lldp_processed`` if a switch sent LLDP
    ``interfaces``
        those of ``valid_interfaces``, in this form; ``macs``: their addresses
    ``boot_interface``
        the address from which the ramdisk was booted
    ``local_gb``, ``root_disk``, ``extra``
        as hooks write them
    ``auto_discovered``
        true, or missing
    """
    found = {**plugin_data, "inventory": inventory}
    cpu, memory, boot = (_object(inventory.get(name)) for name in ("cpu", "memory", "boot"))
    lldp = _object(plugin_data.get("parsed_lldp"))
    known = {name: _interface(value, lldp.get(name))
             for name, value in _object(plugin_data.get("all_interfaces")).items() if isinstance(value, dict)}
    said = {
        "memory_mb": memory.get("physical_mb"), "cpus": cpu.get("count"), "cpu_arch": cpu.get("architecture"),
        "ipmi_address": addresses.normalize(inventory.get("bmc_address")),
        "ipmi_v6address": addresses.normalize(inventory.get("bmc_v6address")),
        "boot_interface": boot.get("pxe_interface") or plugin_data.get("boot_interface"),
    }
    found.update((name, value) for name, value in said.items() if value is not None)
    if "all_interfaces" in plugin_data:
        valid = _object(plugin_data.get("valid_interfaces"))
        found["all_interfaces"] = known
        found["interfaces"] = {name: value for name, value in known.items() if name in valid}
    found.pop("auto_discovered", None)
    if auto_discovered:
        found["auto_discovered"] = True
    return found


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _interface(value: Mapping[str, Any], lldp: Any) -> dict[str, Any]:
    return {
        **value, "mac": value.get("mac_address"), "ip": value.get("ipv4_address") or value.get("ipv6_address"),
        "client_id": value.get("client_id"), "pxe": bool(value.get("pxe_enabled")),
        **({"lldp_processed": lldp} if lldp else {}),
    }
