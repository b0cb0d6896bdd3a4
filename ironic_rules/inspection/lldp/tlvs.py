"""The TLVs of IEEE 802: the basic set (802.1AB, clause 8.5), 802.1 (802.1Q, annex D) and 802.3 (clause 79).

Names of media (operational MAU types) are Ironic's, by their numbers in the registry IANA-MAU-MIB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ironic_rules.inspection.lldp.octets import Octets, Values, add, bits, mac, network_address, put, text
from ironic_rules.models.documents import JSONObject

#: Bit 1, "other", has no meaning and is left out, as in Ironic.
CAPABILITIES = {
    0x0002: "Repeater", 0x0004: "Bridge", 0x0008: "WLAN", 0x0010: "Router", 0x0020: "Telephone",
    0x0040: "DOCSIS cable device", 0x0080: "Station only", 0x0100: "C-Vlan", 0x0200: "S-Vlan", 0x0400: "TPMR",
}


def _text(octets: Octets) -> str:
    return text(octets.rest())


def _mac(octets: Octets) -> str:
    return mac(octets.rest())


#: The format of the identifier, by its subtype. Other subtypes are reserved and ignored.
_CHASSIS_ID: Mapping[int, Callable[[Octets], str | None]] = {
    1: _text, 2: _text, 3: _text, 4: _mac, 5: network_address, 6: _text, 7: _text}
_PORT_ID: Mapping[int, Callable[[Octets], str | None]] = {
    1: _text, 2: _text, 3: _mac, 4: network_address, 5: _text, 6: _text, 7: _text}


def chassis_id(octets: Octets, values: Values) -> None:
    """``switch_chassis_id``: component or interface name, MAC address, network address, or local text."""
    _identifier("switch_chassis_id", _CHASSIS_ID, octets, values)


def port_id(octets: Octets, values: Values) -> None:
    """``switch_port_id``: interface or component name, MAC address, network address, circuit ID, or local text."""
    _identifier("switch_port_id", _PORT_ID, octets, values)


def _identifier(name: str, subtypes: Mapping[int, Callable[[Octets], str | None]], octets: Octets,
                values: Values) -> None:
    read = subtypes.get(octets.number(1))
    if read is not None:
        put(values, name, read(octets))


def ttl(octets: Octets, values: Values) -> None:
    """``switch_ttl``: seconds for which the frame is valid."""
    seconds = octets.number(2)
    octets.end()
    put(values, "switch_ttl", seconds)


def port_description(octets: Octets, values: Values) -> None:
    """``switch_port_description``"""
    put(values, "switch_port_description", _text(octets))


def system_name(octets: Octets, values: Values) -> None:
    """``switch_system_name``"""
    put(values, "switch_system_name", _text(octets))


def system_description(octets: Octets, values: Values) -> None:
    """``switch_system_description``"""
    put(values, "switch_system_description", _text(octets))


def capabilities(octets: Octets, values: Values) -> None:
    """``switch_capabilities_support``, ``switch_capabilities_enabled``: lists of names"""
    supported, enabled = octets.number(2), octets.number(2)
    octets.end()
    put(values, "switch_capabilities_support", bits(supported, CAPABILITIES))
    put(values, "switch_capabilities_enabled", bits(enabled, CAPABILITIES))


def management_address(octets: Octets, values: Values) -> None:
    """``switch_mgmt_addresses``: list of addresses. The following interface number and OID are ignored."""
    address = network_address(octets.part(octets.number(1)))
    if address is not None:
        add(values, "switch_mgmt_addresses", address)


BASIC_TLVS = {
    1: chassis_id, 2: port_id, 3: ttl, 4: port_description, 5: system_name, 6: system_description, 7: capabilities,
    8: management_address,
}


DOT1_OUI = bytes.fromhex("0080c2")


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


DOT1_TLVS = {
    1: port_vlan, 2: protocol_vlan, 3: vlan_name, 4: protocol_identity, 6: management_vlan, 7: link_aggregation,
}


MAU_TYPES = (
    "Unknown", "AUI", "10BASE-5", "FOIRL", "10BASE-2", "10BASE-T duplex mode unknown", "10BASE-FP", "10BASE-FB",
    "10BASE-FL duplex mode unknown", "10BROAD36", "10BASE-T half duplex", "10BASE-T full duplex",
    "10BASE-FL half duplex", "10BASE-FL full duplex", "100 BASE-T4", "100BASE-TX half duplex",
    "100BASE-TX full duplex", "100BASE-FX half duplex", "100BASE-FX full duplex", "100BASE-T2 half duplex",
    "100BASE-T2 full duplex", "1000BASE-X half duplex", "1000BASE-X full duplex", "1000BASE-LX half duplex",
    "1000BASE-LX full duplex", "1000BASE-SX half duplex", "1000BASE-SX full duplex", "1000BASE-CX half duplex",
    "1000BASE-CX full duplex", "1000BASE-T half duplex", "1000BASE-T full duplex", "10GBASE-X", "10GBASE-LX4",
    "10GBASE-R", "10GBASE-ER", "10GBASE-LR", "10GBASE-SR", "10GBASE-W", "10GBASE-EW", "10GBASE-LW", "10GBASE-SW",
    "10GBASE-CX4", "2BASE-TL", "10PASS-TS", "100BASE-BX10D", "100BASE-BX10U", "100BASE-LX10", "1000BASE-BX10D",
    "1000BASE-BX10U", "1000BASE-LX10", "1000BASE-PX10D", "1000BASE-PX10U", "1000BASE-PX20D", "1000BASE-PX20U",
    "10GBASE-T", "10GBASE-LRM", "1000BASE-KX", "10GBASE-KX4", "10GBASE-KR", "10/1GBASE-PRX-D1", "10/1GBASE-PRX-D2",
    "10/1GBASE-PRX-D3", "10/1GBASE-PRX-U1", "10/1GBASE-PRX-U2", "10/1GBASE-PRX-U3", "10GBASE-PR-D1",
    "10GBASE-PR-D2", "10GBASE-PR-D3", "10GBASE-PR-U1", "10GBASE-PR-U3", "40GBASE-KR4", "40GBASE-CR4", "40GBASE-SR4",
    "40GBASE-FR", "40GBASE-LR4", "100GBASE-CR10", "100GBASE-SR10", "100GBASE-LR4", "100GBASE-ER4",
)


def mau_type(number: int) -> str:
    """Return the name of a medium; ``MAU type 144`` for one that is not in the table."""
    return MAU_TYPES[number] if number < len(MAU_TYPES) else f"MAU type {number}"


DOT3_OUI = bytes.fromhex("00120f")

#: ifMauAutoNegCapAdvertisedBits of RFC 4836
AUTONEGOTIATION = {
    0x4000: "10BASE-T hdx", 0x2000: "10BASE-T fdx", 0x1000: "10BASE-T4", 0x0800: "100BASE-TX hdx",
    0x0400: "100BASE-TX fdx", 0x0200: "100BASE-T2 hdx", 0x0100: "100BASE-T2 fdx", 0x0080: "PAUSE fdx",
    0x0040: "Asym PAUSE fdx", 0x0020: "Sym PAUSE fdx", 0x0010: "Asym and Sym PAUSE fdx", 0x0008: "1000BASE-X hdx",
    0x0004: "1000BASE-X fdx", 0x0002: "1000BASE-T hdx", 0x0001: "1000BASE-T fdx",
}
_PAIRS = {1: "signal", 2: "spare"}
_PRIORITIES = {1: "critical", 2: "high", 3: "low"}


def mac_phy(octets: Octets, values: Values) -> None:
    """``switch_port_autonegotiation_support``, ``…_enabled``, ``switch_port_physical_capabilities``, ``…_mau_type``"""
    status, advertised, kind = octets.number(1), octets.number(2), octets.number(2)
    octets.end()
    put(values, "switch_port_autonegotiation_support", bool(status & 0x01))
    put(values, "switch_port_autonegotiation_enabled", bool(status & 0x02))
    put(values, "switch_port_physical_capabilities", sorted(bits(advertised, AUTONEGOTIATION)))
    put(values, "switch_port_mau_type", mau_type(kind))


def power_via_mdi(octets: Octets, values: Values) -> None:
    """``switch_port_power``: ``{port_class: PSE or PD, supported, enabled, pair_control, pairs, power_class}``.

    The longer form (802.3at) adds ``type``, ``priority``, and ``requested_mw`` and ``allocated_mw`` (milliwatts).
    """
    status, pairs, power_class = octets.number(1), octets.number(1), octets.number(1)
    power: JSONObject = {
        "port_class": "PSE" if status & 0x01 else "PD", "supported": bool(status & 0x02),
        "enabled": bool(status & 0x04), "pair_control": bool(status & 0x08), "pairs": _PAIRS.get(pairs, "unknown"),
        # Power classes are counted from 1 here, and from 0 everywhere else.
        "power_class": power_class - 1 if power_class else None,
    }
    if octets:
        flags = octets.number(1)
        power["type"] = 1 if flags & 0x80 else 2
        power["priority"] = _PRIORITIES.get(flags & 0x03, "unknown")
        power["requested_mw"] = octets.number(2) * 100
        power["allocated_mw"] = octets.number(2) * 100
    # 802.3bt appends further fields, which are ignored.
    put(values, "switch_port_power", power)


def mtu(octets: Octets, values: Values) -> None:
    """``switch_port_mtu``: maximum frame size in octets"""
    size = octets.number(2)
    octets.end()
    put(values, "switch_port_mtu", size)


#: Link aggregation has moved to 802.1; many switches still send it here.
DOT3_TLVS = {1: mac_phy, 2: power_via_mdi, 3: link_aggregation, 4: mtu}
