"""MAC addresses, and IP addresses of BMCs, in the one form in which they are stored and compared. No side effects.

A MAC address is ``xx:xx:xx:xx:xx:xx`` in lower case. It becomes a lookup key, log lines, and (in the PXE filter) file
contents, so only the exact form is accepted: no trailing newline, no separators other than ``:`` and ``-``, no
multicast, broadcast or all-zero address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ironic_rules.models.documents import JSON

#: Keys of addresses on the IPMI bus, such as 0x20.
_NOT_NETWORK = frozenset({"ipmi_local_address", "ipmi_target_address", "ipmi_transit_address"})
_MAX_URL = 2048


def normalize(text: object) -> str | None:
    """Return the IP address in ``text`` in its shortest form, IPv4 for an IPv4-mapped one.

    :returns: None for a value that identifies no BMC: an unspecified (``0.0.0.0``, ``::``, ``::/0``), loopback,
        link-local or multicast address, or no address. A prefix length (``/64``) and a zone (``%eth0``) are removed.
    """
    address = parse(text)
    if address is None or address.is_unspecified or address.is_loopback:
        return None
    return None if address.is_link_local or address.is_multicast else str(address)


def parse(text: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address in ``text`` without prefix length and zone; None if it is not one."""
    if not isinstance(text, str) or len(text) > 128:
        return None
    try:
        address = ipaddress.ip_address(text.split("/")[0].split("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def host(value: object) -> str | None:
    """Return the host in ``value``: an address or a name, with or without a port, or a URL; None if it has none."""
    if not isinstance(value, str) or not (value := value.strip()) or len(value) > _MAX_URL:
        return None
    if parse(value) is not None:
        return value
    try:
        return urlsplit(value if "://" in value else f"//{value}").hostname
    except ValueError:
        return None


def hosts(driver_info: Mapping[str, JSON]) -> list[str]:
    """Return the host of every ``driver_info`` key that ends in ``_address``, without duplicates."""
    names = (host(value) for key, value in driver_info.items() if key.endswith("_address") and key not in _NOT_NETWORK)
    return list(dict.fromkeys(name for name in names if name))


def literals(driver_info: Mapping[str, JSON]) -> list[str]:
    """Return the BMC addresses that ``driver_info`` has as IP addresses, not as names: normalized, no duplicates."""
    candidates = (normalize(name) for name in hosts(driver_info))
    return list(dict.fromkeys(address for address in candidates if address is not None))


_FORM = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_INFINIBAND = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){19}")
_GUID = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){7}")


def normalize_mac(text: object) -> str:
    """Return ``text`` as a unicast MAC address in lower case with colons.

    :raises ValueError: it is not a 6-octet unicast address; the message says why and is safe to show
    """
    mac = check_mac(text)
    if int(mac[:2], 16) & 1:
        raise ValueError("a multicast or broadcast address cannot belong to a port")
    if mac == "00:00:00:00:00:00":
        raise ValueError("the all-zero address cannot belong to a port")
    return mac


def check_mac(text: object) -> str:
    """Return ``text`` in lower case with colons if it is a MAC address, even one that no machine boots with.

    :raises ValueError: it is not; the message says why and is safe to show
    """
    if not isinstance(text, str):
        raise ValueError("a MAC address must be a string")
    mac = text.lower().replace("-", ":")
    if len(text) != 17 or _FORM.fullmatch(mac) is None:
        raise ValueError("expected a MAC address of the form xx:xx:xx:xx:xx:xx")
    return mac


def is_mac(text: object) -> bool:
    """Return whether ``text`` is a unicast MAC address in any accepted notation."""
    try:
        normalize_mac(text)
    except ValueError:
        return False
    return True


def is_ignored(mac: str, ignored: Collection[str]) -> bool:
    """Return whether a normalized MAC address is in a list of addresses and beginnings of them, such as ``02:42``."""
    # Octets are whole in both, so that a beginning of the text is one of the address.
    return mac.startswith(tuple(ignored))


def without_ignored(macs: Iterable[str], ignored: Collection[str]) -> list[str]:
    """Return the normalized MAC addresses that are not ignored, in their order."""
    beginnings = tuple(ignored)
    return [mac for mac in macs if not mac.startswith(beginnings)]


def mac_from_pxelinux(text: object) -> str | None:
    """Return the MAC address in ``text``: a plain one, or pxelinux' form; None if it is neither.

    That form begins with the type of the hardware: ``01-aa-bb-…`` of Ethernet, ``20-aa-bb-…`` of InfiniBand.
    """
    if isinstance(text, str) and len(text) == 20 and text.startswith(("01-", "20-")):
        text = text[3:]
    try:
        return normalize_mac(text)
    except ValueError:
        return None


def is_infiniband(address: object) -> bool:
    """Return whether ``address`` is an InfiniBand address: 20 octets, separated by colons or hyphens.

    Agents report them among the MAC addresses. A port has them as :func:`of_infiniband` returns them.
    """
    return isinstance(address, str) and _INFINIBAND.fullmatch(address) is not None


def mac_of_infiniband(text: object) -> str | None:
    """Return the MAC address that stands for an InfiniBand port; None if ``text`` is no address of one.

    It is the GUID without its two middle octets, as the agent's hardware manager for such cards has it. The octets
    before the GUID are not in it: the number of the queue pair may be another one after each boot.

    :param text: an address of 20 octets, which ends with the GUID, or the GUID of 8 octets; colons or hyphens
    """
    if not isinstance(text, str) or not (is_infiniband(text) or _GUID.fullmatch(text)):
        return None
    guid = text.lower().replace("-", ":").split(":")[-8:]
    return ":".join(guid[:3] + guid[5:])


def mac_of_port(text: object) -> str | None:
    """Return the MAC address of the port that ``text`` names; None if it names none.

    :param text: a MAC address, pxelinux' form of one, or an InfiniBand address or GUID: what reports have
    """
    return mac_from_pxelinux(mac_of_infiniband(text) or text)


def of_inventory(inventory: Mapping[str, Any]) -> list[str]:
    """Return the MAC addresses by which the interfaces of an inventory, as it came, are known."""
    listed = inventory.get("interfaces")
    reported = (interface.get("mac_address") for interface in (listed if isinstance(listed, list) else ())
                if isinstance(interface, dict))
    return [mac for address in reported if (mac := mac_of_interface(address, infiniband=True))]


def mac_of_interface(address: object, *, infiniband: bool) -> str | None:
    """Return the MAC address by which an interface with ``address`` is known; None if no port can have it.

    :param infiniband: whether addresses of InfiniBand are known
    """
    ethernet = mac_of_infiniband(address) if infiniband and is_infiniband(address) else address
    try:
        return normalize_mac(ethernet)
    except ValueError:
        return None
