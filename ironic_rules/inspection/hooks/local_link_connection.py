"""``local-link-connection``: store the switch and switch port that each port of the node is connected to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.inspection import lldp, shared_addresses
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import addresses
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task
from ironic_rules.text import printable

_MAX_TEXT = 255


class LocalLinkConnectionHook(InspectionHook):
    """Sets ``local_link_connection`` of ports from LLDP, so that the network service can configure the switch.

    ``switch_id``
        the chassis ID, if that is a MAC address
    ``port_id``
        the port ID
    ``switch_info``
        the system name

    It reads ``parsed_lldp`` of the plugin data if the hook ``parse-lldp`` is enabled before it, else the frames
    themselves. The port is the one with the interface's MAC address. Of interfaces that share an address, the network
    card's frame is used; if it has none, that of a bond or bridge, then that of a VLAN.

    Keys that are not in the frame are unchanged. A ``switch_id`` or ``port_id`` that differs is replaced, with a
    warning, because the frame shows the current cabling. However, ``switch_info`` is replaced only together with
    ``switch_id``, because some network services look up a switch by the name that an operator has set there, and a
    ``port_id`` is not replaced if the frame does not confirm an existing ``switch_id``. Ports of smart NICs, and those
    with ``network_type: unmanaged``, are not changed.

    LLDP data are part of the machine's report, and anyone who controls the machine can forge them. Enable this hook
    only if such data may determine how a switch port is configured.
    """

    dependencies = ["validate-interfaces"]

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        parsed = plugin_data.get("parsed_lldp")
        if not isinstance(parsed, dict):
            frames, _ = lldp.received(inventory, plugin_data)
            parsed = {name: lldp.decode(tlvs).values for name, tlvs in frames.items()}
        ports = {port.address: port for port in task.ports}
        for address, interfaces in shared_addresses.by_address(plugin_data["all_interfaces"]).items():
            if (port := ports.get(address)) is None:
                continue
            links = (_link(parsed.get(name)) for name, _ in interfaces)
            # One frame, because parts of several could be a port of one switch at another one.
            if (seen := next((link for link in links if link), None)) is not None:
                _update(task, port, seen)


def _link(values: Any) -> dict[str, str]:
    """Return the known ones of ``switch_id``, ``port_id`` and ``switch_info``; none if ``values`` is not an object."""
    if not isinstance(values, dict):
        return {}
    found: dict[str, Any] = {"port_id": values.get("switch_port_id"), "switch_info": values.get("switch_system_name")}
    if addresses.is_mac(values.get("switch_chassis_id")):
        found["switch_id"] = addresses.normalize_mac(values["switch_chassis_id"])
    # Rules and ramdisks may have written any value to the plugin data.
    return {key: printable(value, _MAX_TEXT) for key, value in found.items() if isinstance(value, str) and value}


def _update(task: Task, port: PortDraft, seen: Mapping[str, str]) -> None:
    link = port.local_link_connection
    if port.is_smartnic or link.get("network_type") == "unmanaged":
        return
    moved = bool(link.get("switch_id")) and "switch_id" in seen and not _is_same_switch(
        link["switch_id"], seen["switch_id"])
    replaced = {"switch_id": moved, "port_id": "switch_id" in seen or not link.get("switch_id"), "switch_info": moved}
    changes = []
    for key, value in seen.items():
        old = link.get(key)
        if old and old != value and replaced[key]:
            changes.append(f"{key} was {printable(old, 64)} and is {printable(value, 64)}")
        if not old or replaced[key]:
            link[key] = value
    if changes:
        warn(task, f"port {port.address} is connected elsewhere: {', '.join(changes)}")


def _is_same_switch(old: object, new: str) -> bool:
    """Compare by digits: an OpenFlow datapath ID ends with the MAC address, and notations vary."""
    digits = "".join(character for character in str(old).lower() if character in "0123456789abcdef")
    return digits.endswith(new.replace(":", ""))
