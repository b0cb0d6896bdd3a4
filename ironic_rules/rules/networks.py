"""IP addresses and networks, as numbers for fast comparison."""

from __future__ import annotations

import functools
from typing import NamedTuple

import netaddr

from ironic_rules.rules.errors import OperandError


class Network(NamedTuple):
    """A network as integers, so that a lookup takes two comparisons."""

    version: int
    first: int
    last: int


# netaddr takes 5 us per address; the rules of one inspection parse the same few addresses repeatedly.
@functools.lru_cache(maxsize=1024)
def parse_address(text: str) -> tuple[int, int] | None:
    """Return version and number of an IP address, which may have a zone; None if it is not an address."""
    try:
        address = netaddr.IPAddress(text.strip().partition("%")[0])
    except (netaddr.AddrFormatError, ValueError, TypeError):
        return None
    return address.version, int(address)


@functools.lru_cache(maxsize=512)
def parse_network(text: str) -> Network:
    """Return a network in CIDR form; host bits may be set.

    :raises OperandError: not a network
    """
    try:
        network = netaddr.IPNetwork(text.strip())
    except (netaddr.AddrFormatError, ValueError, TypeError):
        raise OperandError("must be a network in CIDR form, such as 192.0.2.0/24 or 2001:db8::/32") from None
    return Network(network.version, network.first, network.last)
