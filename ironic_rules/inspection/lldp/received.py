"""The places of received LLDP frames in a ramdisk's data."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection.shared_addresses import natural

#: Maximum number of interfaces whose frames are decoded; no machine has more cables.
MAX_INTERFACES = 64


def received(inventory: dict[str, Any], plugin_data: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the TLVs by interface name, for at most :data:`MAX_INTERFACES`, and how many interfaces are left out.

    They are read from ``plugin_data.lldp_raw``, else from the interface's own ``lldp``, where old ramdisks put them;
    they are unchanged and not validated. Interfaces without TLVs are not counted. The order is that of the names.
    """
    raw = plugin_data.get("lldp_raw")
    by_name = raw if isinstance(raw, dict) else {}
    interfaces = inventory.get("interfaces")
    found: dict[str, Any] = {}
    for interface in interfaces if isinstance(interfaces, list) else ():
        name = interface.get("name") if isinstance(interface, dict) else None
        if isinstance(name, str) and name and (tlvs := by_name.get(name) or interface.get("lldp")):
            # Two interfaces of one name have frames of their own only in the inventory; their order is random.
            found[name] = min(tlvs, found.get(name, tlvs), key=repr)
    kept = sorted(found, key=natural)[:MAX_INTERFACES]
    return {name: found[name] for name in kept}, len(found) - len(kept)
