"""The basic set of TLVs, types 1 to 8 (IEEE 802.1AB, clause 8.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ironic_rules.inspection.lldp.octets import Octets, Values, add, bits, mac, network_address, put, text

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


TLVS = {
    1: chassis_id, 2: port_id, 3: ttl, 4: port_description, 5: system_name, 6: system_description, 7: capabilities,
    8: management_address,
}
