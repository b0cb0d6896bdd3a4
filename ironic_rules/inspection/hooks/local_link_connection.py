"""``local-link-connection``: which port of which switch each port of the node is plugged into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironic_rules.inspection import lldp
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import mac
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task
from ironic_rules.text import printable

_MAX_TEXT = 255


class LocalLinkConnectionHook(InspectionHook):
    """Sets ``local_link_connection`` of ports from LLDP, for the network service to configure the switch.

    ``switch_id``
        the chassis ID, if that is a MAC address
    ``port_id``
        the port ID
    ``switch_info``
        the system name

    It reads ``parsed_lldp`` of the plugin data if the hook ``parse-lldp`` is enabled before it, else the frames
    themselves. The port is that with the interface's MAC address.

    What the frame does not tell, and further keys, stay as they are. A ``switch_id`` or ``port_id`` that differs is
    replaced, with a warning, because the cable is where it is. But ``switch_info`` is replaced only together with
    ``switch_id``: some network services look a switch up by the name that an operator wrote there. And a ``port_id`` is
    not replaced beside a ``switch_id`` that the frame does not confirm. Ports of smart NICs, and those with
    ``network_type: unmanaged``, are left alone.

    LLDP comes with the report of the machine, and whoever controls the machine can make it up. Enable this hook only
    where that may decide how a switch's port is configured.
    """

    dependencies = ["validate-interfaces"]

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        parsed = plugin_data.get("parsed_lldp")
        if not isinstance(parsed, dict):
            frames, _ = lldp.received(inventory, plugin_data)
            parsed = {name: lldp.decode(tlvs).values for name, tlvs in frames.items()}
        ports = {port.address: port for port in task.ports}
        for name, interface in plugin_data["all_interfaces"].items():
            port, values = ports.get(interface["mac_address"]), parsed.get(name)
            if port is not None and isinstance(values, dict):
                _update(task, port, _link(values))


def _link(values: Mapping[str, Any]) -> dict[str, str]:
    """Return what is known of ``switch_id``, ``port_id`` and ``switch_info``."""
    found: dict[str, Any] = {"port_id": values.get("switch_port_id"), "switch_info": values.get("switch_system_name")}
    if mac.is_mac(values.get("switch_chassis_id")):
        found["switch_id"] = mac.normalize(values["switch_chassis_id"])
    # Rules and ramdisks can have put anything into the plugin data.
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
        warn(task, f"port {port.address} is plugged in elsewhere: {', '.join(changes)}")


def _is_same_switch(old: object, new: str) -> bool:
    """Compare by digits: an OpenFlow datapath ID ends in the MAC address, and spellings vary."""
    digits = "".join(character for character in str(old).lower() if character in "0123456789abcdef")
    return digits.endswith(new.replace(":", ""))
