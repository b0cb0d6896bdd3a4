"""Hooks about LLDP: ``parse-lldp`` stores the data readably, ``local-link-connection`` the switch port of each port."""

from __future__ import annotations

from collections.abc import Mapping

from ironic_rules.inspection import lldp, shared_addresses
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import PortDraft
from ironic_rules.models.task import Task
from ironic_rules.text import enumeration, printable


class ParseLLDPHook(InspectionHook):
    """Stores the LLDP data of switches in ``plugin_data.parsed_lldp``: ``{interface name: values}``.

    The frames come from ``plugin_data.lldp_raw``, else from ``lldp`` of the inventory's interfaces. The ramdisk
    collects them with the kernel parameter ``ipa-collect-lldp=1``. A frame can have these values:

    basic
        ``switch_chassis_id``, ``switch_port_id``, ``switch_ttl`` (seconds), ``switch_port_description``,
        ``switch_system_name``, ``switch_system_description``, ``switch_capabilities_support`` and
        ``switch_capabilities_enabled`` (lists such as ``[Bridge, Router]``), ``switch_mgmt_addresses`` (list)
    IEEE 802.1
        ``switch_port_untagged_vlan_id``, ``switch_port_vlans`` (list of ``{id, name}``),
        ``switch_port_protocol_vlan_support``, ``switch_port_protocol_vlan_enabled``, ``switch_port_protocol_vlan_ids``,
        ``switch_protocol_identities``, ``switch_port_management_vlan_id``, ``switch_port_link_aggregation_support``,
        ``switch_port_link_aggregation_enabled``, ``switch_port_link_aggregation_id``
    IEEE 802.3
        ``switch_port_autonegotiation_support``, ``switch_port_autonegotiation_enabled``,
        ``switch_port_physical_capabilities`` (list), ``switch_port_mau_type``, ``switch_port_mtu``,
        ``switch_port_power`` (object, powers in mW)
    LLDP-MED
        ``switch_med_capabilities``, ``switch_med_device_type``, ``switch_med_network_policies``,
        ``switch_med_locations``, ``switch_med_power``, ``switch_hardware_revision``, ``switch_firmware_revision``,
        ``switch_software_revision``, ``switch_serial_number``, ``switch_manufacturer``, ``switch_model``,
        ``switch_asset_id``

    Malformed parts are left out with a warning. Characters that are not printable are stored as backslash escapes. At
    most 64 interfaces, and 1600 octets of each frame, are processed.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        frames, left_out = lldp.received(inventory, plugin_data)
        neighbours = {name: lldp.decode(tlvs) for name, tlvs in frames.items()}
        # Even without any frame: a value that a ramdisk sent under this name must be replaced.
        plugin_data["parsed_lldp"] = {name: switch.values for name, switch in neighbours.items() if switch.values}
        if left_out:
            warn(task, f"LLDP of {left_out} interfaces is ignored: there are more than {lldp.MAX_INTERFACES}")
        problems = [f"{printable(name, 16)}: {text}" for name, switch in neighbours.items() for text in switch.problems]
        if problems:
            warn(task, f"LLDP is incomplete: {enumeration(problems)}")


_MAX_TEXT = 255


class LocalLinkConnectionHook(InspectionHook):
    """Sets ``local_link_connection`` of ports from LLDP, so that the network service can configure the switch.

    ``switch_id``
        the chassis ID, if that is a MAC address other than ``00:00:00:00:00:00`` and ``ff:ff:ff:ff:ff:ff``
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

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
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
            if (link_seen := next((link for link in links if link), None)) is not None:
                _update(task, port, link_seen)


def _link(values: object) -> dict[str, str]:
    """Return the known ones of ``switch_id``, ``port_id`` and ``switch_info``; none if ``values`` is not an object."""
    if not isinstance(values, dict):
        return {}
    link: JSONObject = {"port_id": values.get("switch_port_id"), "switch_info": values.get("switch_system_name")}
    if (switch := _switch_id(values.get("switch_chassis_id"))) is not None:
        link["switch_id"] = switch
    # Rules and ramdisks may have written any value to the plugin data.
    return {key: printable(value, _MAX_TEXT) for key, value in link.items() if isinstance(value, str) and value}


#: Chassis IDs of switches that have no address of their own.
_NO_ADDRESSES = frozenset({"00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"})


def _switch_id(chassis_id: object) -> str | None:
    """Return a chassis ID that is a MAC address in lower case.

    No frame is sent to it, so that it identifies a switch also with the bit of multicast addresses, as virtual switches
    and those whose address was changed by hand have it.
    """
    try:
        mac = addresses.check_mac(chassis_id)
    except ValueError:
        return None
    return None if mac in _NO_ADDRESSES else mac


def _update(task: Task, port: PortDraft, reported: Mapping[str, str]) -> None:
    link = port.local_link_connection
    if port.is_smartnic or link.get("network_type") == "unmanaged":
        return
    moved = bool(link.get("switch_id")) and "switch_id" in reported and not _is_same_switch(
        link["switch_id"], reported["switch_id"])
    has_port = "switch_id" in reported or not link.get("switch_id")
    replaced = {"switch_id": moved, "port_id": has_port, "switch_info": moved}
    changes = []
    for key, value in reported.items():
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
