"""``parse-lldp``: store the LLDP data of the switches in readable form."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection import lldp
from ironic_rules.inspection.hooks.base import InspectionHook, warn
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

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        frames, left_out = lldp.received(inventory, plugin_data)
        neighbours = {name: lldp.decode(tlvs) for name, tlvs in frames.items()}
        # Even without any frame: a value that a ramdisk sent under this name must be replaced.
        plugin_data["parsed_lldp"] = {name: found.values for name, found in neighbours.items() if found.values}
        if left_out:
            warn(task, f"LLDP of {left_out} interfaces is ignored: there are more than {lldp.MAX_INTERFACES}")
        problems = [f"{printable(name, 16)}: {text}" for name, found in neighbours.items() for text in found.problems]
        if problems:
            warn(task, f"LLDP is incomplete: {enumeration(problems)}")
