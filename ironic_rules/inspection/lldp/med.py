"""TLVs for media endpoints (LLDP-MED, ANSI/TIA-1057): policies, location, power, inventory of the neighbour."""

from __future__ import annotations

from collections.abc import Callable

from ironic_rules.inspection.lldp.octets import MalformedTLV, Octets, Values, add, bits, put, text
from ironic_rules.models.documents import JSONObject

OUI = bytes.fromhex("0012bb")

CAPABILITIES = {
    0x01: "capabilities", 0x02: "network policy", 0x04: "location", 0x08: "power PSE", 0x10: "power PD",
    0x20: "inventory",
}
_DEVICES = {1: "endpoint class 1", 2: "endpoint class 2", 3: "endpoint class 3", 4: "network connectivity"}
_APPLICATIONS = {
    1: "voice", 2: "voice signaling", 3: "guest voice", 4: "guest voice signaling", 5: "softphone voice",
    6: "video conferencing", 7: "streaming video", 8: "video signaling",
}
_POWER_TYPES = {0: "PSE", 1: "PD"}
_POWER_SOURCES = {("PSE", 1): "primary", ("PSE", 2): "backup", ("PD", 1): "PSE", ("PD", 2): "local",
                  ("PD", 3): "PSE and local"}
_PRIORITIES = {1: "critical", 2: "high", 3: "low"}
_ALTITUDES = {1: "m", 2: "floors"}
_DATUMS = {1: "WGS84", 2: "NAD83/NAVD88", 3: "NAD83/MLLW"}


def capabilities(octets: Octets, values: Values) -> None:
    """``switch_med_capabilities`` (list of names), ``switch_med_device_type``"""
    supported, device = octets.number(2), octets.number(1)
    octets.end()
    put(values, "switch_med_capabilities", bits(supported, CAPABILITIES))
    put(values, "switch_med_device_type", _DEVICES.get(device, "unknown"))


def network_policy(octets: Octets, values: Values) -> None:
    """``switch_med_network_policies``: list of ``{application, defined, tagged, vlan_id, priority, dscp}``"""
    application, policy = octets.number(1), octets.number(3)
    octets.end()
    add(values, "switch_med_network_policies", {
        "application": _APPLICATIONS.get(application, f"application {application}"),
        "defined": not policy & 0x800000, "tagged": bool(policy & 0x400000),
        "vlan_id": policy >> 9 & 0xfff, "priority": policy >> 6 & 0x7, "dscp": policy & 0x3f,
    })


def location(octets: Octets, values: Values) -> None:
    """``switch_med_locations``: list of ``{format: coordinates, civic or elin, …}``"""
    read = {1: _coordinates, 2: _civic, 3: _elin}.get(octets.number(1))
    if read is not None:
        add(values, "switch_med_locations", read(octets))


def _coordinates(octets: Octets) -> JSONObject:
    """Read the configuration information of RFC 6225: degrees, and an altitude in metres or floors."""
    number = octets.number(16)
    octets.end()

    def field(last_bit: int, width: int, fraction: int) -> float:
        raw = number >> last_bit & (1 << width) - 1
        signed = raw - (1 << width) if raw >> width - 1 else raw
        return round(signed / (1 << fraction), 7)

    return {
        "format": "coordinates", "latitude": field(88, 34, 25), "longitude": field(48, 34, 25),
        "altitude": field(8, 30, 8), "altitude_unit": _ALTITUDES.get(number >> 44 & 0xf, "unknown"),
        "datum": _DATUMS.get(number & 0x7, "unknown"),
    }


def _civic(octets: Octets) -> JSONObject:
    """Read the address of RFC 4776: a country, and texts by element number (3: city, 6: street, 28: room, …)."""
    address = octets.part(octets.number(1))
    address.number(1)  # whose location this is
    country = text(address.take(2))
    elements: dict[str, str] = {}
    while address:
        kind = str(address.number(1))
        elements.setdefault(kind, text(address.take(address.number(1))))
    return {"format": "civic", "country": country, "elements": elements}


def _elin(octets: Octets) -> JSONObject:
    """Read an emergency location identification number."""
    number = octets.rest()
    if not number.isdigit():
        raise MalformedTLV("an ELIN that is not a number")
    return {"format": "elin", "number": number.decode("ascii")}


def extended_power(octets: Octets, values: Values) -> None:
    """``switch_med_power``: ``{type, source, priority, power_mw}`` (milliwatts)"""
    flags, value = octets.number(1), octets.number(2)
    octets.end()
    kind = _POWER_TYPES.get(flags >> 6, "unknown")
    put(values, "switch_med_power", {
        "type": kind, "source": _POWER_SOURCES.get((kind, flags >> 4 & 0x3), "unknown"),
        "priority": _PRIORITIES.get(flags & 0xf, "unknown"), "power_mw": value * 100,
    })


def _inventory(name: str) -> Callable[[Octets, Values], None]:
    def read(octets: Octets, values: Values) -> None:
        put(values, name, text(octets.rest()))

    return read


TLVS: dict[int, Callable[[Octets, Values], None]] = {
    1: capabilities, 2: network_policy, 3: location, 4: extended_power,
    5: _inventory("switch_hardware_revision"), 6: _inventory("switch_firmware_revision"),
    7: _inventory("switch_software_revision"), 8: _inventory("switch_serial_number"),
    9: _inventory("switch_manufacturer"), 10: _inventory("switch_model"), 11: _inventory("switch_asset_id"),
}
