"""Interfaces that share a MAC address: a bond, a VLAN or a bridge has that of its parent, and is reported beside it.

A port is one address. Its fields come from all interfaces of the address, and does not depend on their order in the
report: agents list interfaces in the order of a directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.models.documents import JSONObject

#: ``(name, interface)``
Named = tuple[str, dict[str, Any]]

_NUMBER = re.compile(r"([0-9]+)")
_VLAN = re.compile(r".+\.[0-9]+")
#: Maximum length of a name whose numbers are compared as such. In Linux they have 15 characters; a ramdisk may send
#: thousands, of as many numbers, and of a thousand interfaces.
_LONGEST = 64
#: Fields of an interface with a device of its own, which others lack. Older agents report the last two only.
_OF_DEVICES = ("pci_address", "driver", "vendor", "product")


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key by which ``eth2`` comes before ``eth10``."""
    if len(name) > _LONGEST:
        return [(0, name)], name
    parts = (part.lstrip("0") if index % 2 else part for index, part in enumerate(_NUMBER.split(name)))
    # A number with more digits is larger; numbers can be too long to be parsed if a ramdisk wants that.
    return [(len(part) if index % 2 else 0, part) for index, part in enumerate(parts)], name


def by_address(interfaces: Mapping[str, JSONObject]) -> dict[str, list[Named]]:
    """Return the interfaces of each MAC address; the addresses in the order of ``interfaces``.

    Interfaces that say most about the cable come first: network cards, then bonds and bridges, then VLANs; among them
    by name. Where one value is needed, it is that of the first interface that has one.

    :param interfaces: by name, with a normalized ``mac_address``
    """
    by_mac: dict[str, list[Named]] = {}
    for name, interface in interfaces.items():
        by_mac.setdefault(interface["mac_address"], []).append((name, interface))
    for sharing in by_mac.values():
        if len(sharing) > 1:
            sharing.sort(key=_rank)
    return by_mac


def values(interfaces: list[Named], key: str) -> Iterator[Any]:
    """Yield the values of a field that are not empty, the best first."""
    return (interface[key] for _, interface in interfaces if interface.get(key))


def has_ip(interface: Mapping[str, object]) -> bool:
    """Return whether the interface is active in the sense of ``[inspector]add_ports``."""
    return bool(interface.get("ipv4_address") or interface.get("ipv6_address"))


def _rank(named: Named) -> tuple[bool, bool, tuple[list[tuple[int, str]], str]]:
    name, interface = named
    has_device = any(interface.get(key) for key in _OF_DEVICES)
    return not has_device, _VLAN.fullmatch(name) is not None, natural(name)
