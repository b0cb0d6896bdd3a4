"""TLVs of IEEE 802.3 (clause 79): the port's capabilities and settings, its power, its frame size."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection.lldp.dot1 import link_aggregation
from ironic_rules.inspection.lldp.mau_types import mau_type
from ironic_rules.inspection.lldp.octets import Octets, Values, bits, put

OUI = bytes.fromhex("00120f")

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
    power: dict[str, Any] = {
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
TLVS = {1: mac_phy, 2: power_via_mdi, 3: link_aggregation, 4: mtu}
