"""IP addresses and networks, as numbers for fast comparison."""

from __future__ import annotations

import functools
import ipaddress
from typing import NamedTuple

import netaddr

from ironic_rules.rules.errors import OperandError


class Network(NamedTuple):
    """A network as integers, so that a lookup takes two comparisons."""

    version: int
    first: int
    last: int


#: Maximum number of characters of a text that is remembered: a report may have texts of megabytes in their place.
_LONGEST = 128


def parse_address(text: str) -> tuple[int, int] | None:
    """Return version and number of an IP address, which may have a zone; None if it is not an address."""
    return (_parsed_address if len(text) <= _LONGEST else _parsed_address.__wrapped__)(text)


def parse_network(text: str) -> Network:
    """Return a network in CIDR form; host bits may be set.

    :raises OperandError: not a network
    """
    return (_parsed_network if len(text) <= _LONGEST else _parsed_network.__wrapped__)(text)


# netaddr takes 5 us per address; the rules of one inspection parse the same few addresses repeatedly.
@functools.lru_cache(maxsize=1024)
def _parsed_address(text: str) -> tuple[int, int] | None:
    text = text.strip().partition("%")[0]
    version = _version(text)
    return None if version is None else (version, int(netaddr.IPAddress(text, version)))


@functools.lru_cache(maxsize=512)
def _parsed_network(text: str) -> Network:
    text = text.strip()
    address, _, mask = text.partition("/")
    version = _version(address)
    if version is not None and (not mask or _is_number(mask) or _version(mask) == version):
        try:
            network = netaddr.IPNetwork(text)
        except (netaddr.AddrFormatError, ValueError, TypeError):
            pass
        else:
            return Network(network.version, network.first, network.last)
    raise OperandError("must be a network in CIDR form, such as 192.0.2.0/24 or 2001:db8::/32")


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _version(text: str) -> int | None:
    """Return the IP version of an address; None if it is none.

    Asked first, because netaddr keeps errors in variables of the functions that raise them: a cycle, which keeps each
    frame below in memory until the garbage collector runs, and with them the report of a ramdisk.
    """
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return None
