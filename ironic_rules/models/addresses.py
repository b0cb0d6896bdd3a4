"""IP addresses of BMCs in the normalised form in which they are stored and compared. No side effects."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from ironic_rules.models.json_values import JSON

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
    found = (host(value) for key, value in driver_info.items() if key.endswith("_address") and key not in _NOT_NETWORK)
    return list(dict.fromkeys(name for name in found if name))


def literals(driver_info: Mapping[str, JSON]) -> list[str]:
    """Return the BMC addresses that ``driver_info`` has as IP addresses, not as names: normalised, no duplicates."""
    found = (normalize(name) for name in hosts(driver_info))
    return list(dict.fromkeys(address for address in found if address is not None))
