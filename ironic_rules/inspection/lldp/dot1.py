"""TLVs of IEEE 802.1 (802.1Q, annex D): VLANs, protocols, link aggregation."""

from __future__ import annotations

from ironic_rules.inspection.lldp.octets import Octets, Values, add, put, text

OUI = bytes.fromhex("0080c2")


def port_vlan(octets: Octets, values: Values) -> None:
    """``switch_port_untagged_vlan_id``; 0: none"""
    _vlan("switch_port_untagged_vlan_id", octets, values)


def management_vlan(octets: Octets, values: Values) -> None:
    """``switch_port_management_vlan_id``; 0: none"""
    _vlan("switch_port_management_vlan_id", octets, values)


def _vlan(name: str, octets: Octets, values: Values) -> None:
    number = octets.number(2)
    octets.end()
    put(values, name, number)


def protocol_vlan(octets: Octets, values: Values) -> None:
    """``switch_port_protocol_vlan_support``, ``…_enabled`` (booleans), ``…_ids`` (list of numbers)"""
    flags, number = octets.number(1), octets.number(2)
    octets.end()
    put(values, "switch_port_protocol_vlan_support", bool(flags & 0x02))
    put(values, "switch_port_protocol_vlan_enabled", bool(flags & 0x04))
    add(values, "switch_port_protocol_vlan_ids", number)


def vlan_name(octets: Octets, values: Values) -> None:
    """``switch_port_vlans``: list of ``{id, name}``"""
    number = octets.number(2)
    name = text(octets.take(octets.number(1)))
    octets.end()
    add(values, "switch_port_vlans", {"id": number, "name": name})


def protocol_identity(octets: Octets, values: Values) -> None:
    """``switch_protocol_identities``: list of the first octets of protocols' frames, in hexadecimal"""
    identity = octets.take(octets.number(1))
    octets.end()
    add(values, "switch_protocol_identities", identity.hex())


def link_aggregation(octets: Octets, values: Values) -> None:
    """``switch_port_link_aggregation_support``, ``…_enabled`` (booleans), ``…_id`` (number of the aggregated port)"""
    status, port = octets.number(1), octets.number(4)
    octets.end()
    put(values, "switch_port_link_aggregation_support", bool(status & 0x01))
    put(values, "switch_port_link_aggregation_enabled", bool(status & 0x02))
    put(values, "switch_port_link_aggregation_id", port)


TLVS = {
    1: port_vlan, 2: protocol_vlan, 3: vlan_name, 4: protocol_identity, 6: management_vlan, 7: link_aggregation,
}
