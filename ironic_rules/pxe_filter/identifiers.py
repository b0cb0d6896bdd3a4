"""Identifiers of clients that a DHCP server does not know by a MAC address, as keys beside the addresses.

A key is ``id:`` and the octets in hexadecimal, which is also how dnsmasq writes it. DHCPv4 clients on InfiniBand have
no hardware address in their requests (RFC 4390), only a client identifier (option 61); DHCPv6 clients have a DUID.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: Regular expression of a key.
FORM = r"id:[0-9a-f]{2}(?::[0-9a-f]{2}){1,254}"
_KEY = re.compile(FORM).fullmatch
#: What consists of an Ethernet address: a DUID-LL (RFC 8415, 11.4), and a client identifier (RFC 2132, 9.14).
_OF_ADDRESS = re.compile(r"id:(?:00:03:00:01|01)(?::[0-9a-f]{2}){6}").fullmatch


def is_one(key: str) -> bool:
    """Return whether the text is a key of an identifier, not an address."""
    return key[:3] == "id:" and _KEY(key) is not None


def key_of(identifier: object) -> str | None:
    """Return the key of an identifier, from 2 to 255 octets in hexadecimal; None if it is not one.

    Colons or hyphens may separate the octets. One that consists of a MAC address is refused: a port with that address
    tells such a client. Otherwise, a machine that reports the address of another one would decide about that one.
    """
    if not isinstance(identifier, str) or len(identifier) > 3 * 255:
        return None
    digits = identifier.lower().replace("-", ":")
    if ":" not in digits:
        digits = ":".join(digits[start:start + 2] for start in range(0, len(digits), 2))
    key = f"id:{digits}"
    return key if is_one(key) and _OF_ADDRESS(key) is None else None


def octets(key: str) -> bytes:
    """Return the identifier of a key."""
    return bytes.fromhex(key[3:].replace(":", ""))


def keys(pairs: Iterable[tuple[object, int]], refused: set[str]) -> Iterator[tuple[str, int]]:
    """Yield (key, node id) of every valid identifier; the others are added to ``refused``, after ``id:``."""
    for identifier, node_id in pairs:
        key = key_of(identifier)
        if key is None:
            refused.add(f"id:{identifier}")
        else:
            yield key, node_id
