"""The octets of one TLV, read sequentially, and the types of values that they represent."""

from __future__ import annotations

import ipaddress
from typing import Any

from ironic_rules.text import printable

#: Values that a neighbour announces, by Ironic's names.
Values = dict[str, Any]

_IPV4, _IPV6, _MAC = 1, 2, 6  # IANA address family numbers
_FAMILIES = {_IPV4: 4, _IPV6: 16, _MAC: 6}


class MalformedTLV(ValueError):
    """A TLV is not in the format of its type. The text describes the problem and does not quote the TLV."""


class Octets:
    """The value of a TLV, or a part of it.

    :raises MalformedTLV: from every method: it requests more octets than are left
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __len__(self) -> int:
        """Return how many octets are left."""
        return len(self._data) - self._position

    def take(self, length: int) -> bytes:
        """Return the next ``length`` octets."""
        if length > len(self):
            raise MalformedTLV(f"octets missing: {length - len(self)}")
        self._position += length
        return self._data[self._position - length:self._position]

    def number(self, length: int) -> int:
        """Return the next ``length`` octets as a number, in big-endian order."""
        return int.from_bytes(self.take(length), "big")

    def part(self, length: int) -> Octets:
        """Return the next ``length`` octets, to be read separately."""
        return Octets(self.take(length))

    def rest(self) -> bytes:
        """Return all remaining octets."""
        return self.take(len(self))

    def end(self) -> None:
        """:raises MalformedTLV: octets are left"""
        if len(self):
            raise MalformedTLV(f"octets too many: {len(self)}")


def text(data: bytes) -> str:
    """Return UTF-8 text; invalid or unprintable characters become backslash escapes. Trailing NULs are removed."""
    return printable(data.rstrip(b"\0").decode("utf-8", "backslashreplace"))


def mac(data: bytes) -> str:
    """Return a MAC address in lower case with colons.

    :raises MalformedTLV: there are not 6 octets
    """
    if len(data) != 6:
        raise MalformedTLV(f"a MAC address of {len(data)} octets")
    return data.hex(":")


def network_address(octets: Octets) -> str | None:
    """Return the address in the remaining octets: its family, then itself. None if the family is neither IP nor MAC.

    :raises MalformedTLV: there is no family, or the address does not have the length of its family
    """
    family = octets.number(1)
    data = octets.rest()
    if family not in _FAMILIES:
        return None
    if len(data) != _FAMILIES[family]:
        raise MalformedTLV(f"an address of family {family} with {len(data)} octets")
    return mac(data) if family == _MAC else str(ipaddress.ip_address(data))


def bits(number: int, names: dict[int, str]) -> list[str]:
    """Return the names of the bits that are set, in the order of ``names``."""
    return [name for bit, name in names.items() if number & bit]


def put(values: Values, name: str, value: object) -> None:
    """Set a value that a frame has once: the first one is used, an empty text is ignored."""
    if value is not None and value != "":
        values.setdefault(name, value)


def add(values: Values, name: str, value: object) -> None:
    """Append to a list of values, unless the list already has the value."""
    stored = values.setdefault(name, [])
    if value not in stored:
        stored.append(value)
