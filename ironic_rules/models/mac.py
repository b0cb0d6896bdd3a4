"""MAC addresses: one strict form, ``xx:xx:xx:xx:xx:xx`` in lower case.

They become lookup keys, log lines, and (in the PXE filter) file contents, so only the exact form is accepted:
no trailing newline, no separators other than ``:`` and ``-``, no multicast, broadcast or all-zero address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FORM = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_INFINIBAND = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){19}")
_GUID = re.compile(r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){7}")


def normalize(text: object) -> str:
    """Return ``text`` as a unicast MAC address in lower case with colons.

    :raises ValueError: it is not a 6-octet unicast address; the message says why and is safe to show
    """
    mac = check_form(text)
    if int(mac[:2], 16) & 1:
        raise ValueError("a multicast or broadcast address cannot belong to a port")
    if mac == "00:00:00:00:00:00":
        raise ValueError("the all-zero address cannot belong to a port")
    return mac


def check_form(text: object) -> str:
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
        normalize(text)
    except ValueError:
        return False
    return True


def from_pxelinux(text: object) -> str | None:
    """Return the MAC address in ``text``: a plain one, or pxelinux' form; None if it is neither.

    That form begins with the type of the hardware: ``01-aa-bb-…`` of Ethernet, ``20-aa-bb-…`` of InfiniBand.
    """
    if isinstance(text, str) and len(text) == 20 and text.startswith(("01-", "20-")):
        text = text[3:]
    try:
        return normalize(text)
    except ValueError:
        return None


def is_infiniband(address: object) -> bool:
    """Return whether ``address`` is an InfiniBand address: 20 octets, separated by colons or hyphens.

    Agents report them among the MAC addresses. A port has them as :func:`of_infiniband` returns them.
    """
    return isinstance(address, str) and _INFINIBAND.fullmatch(address) is not None


def of_infiniband(text: object) -> str | None:
    """Return the MAC address that stands for an InfiniBand port; None if ``text`` is no address of one.

    It is the GUID without its two middle octets, as the agent's hardware manager for such cards has it. The octets
    before the GUID are not in it: the number of the queue pair may be another one after each boot.

    :param text: an address of 20 octets, which ends with the GUID, or the GUID of 8 octets; colons or hyphens
    """
    if not isinstance(text, str) or not (is_infiniband(text) or _GUID.fullmatch(text)):
        return None
    guid = text.lower().replace("-", ":").split(":")[-8:]
    return ":".join(guid[:3] + guid[5:])


def of_port(text: object) -> str | None:
    """Return the MAC address of the port that ``text`` names; None if it names none.

    :param text: a MAC address, pxelinux' form of one, or an InfiniBand address or GUID: what reports have
    """
    return from_pxelinux(of_infiniband(text) or text)


def of_inventory(inventory: Mapping[str, Any]) -> list[str]:
    """Return the MAC addresses by which the interfaces of an inventory are known."""
    found = (interface.get("mac_address") for interface in inventory.get("interfaces") or ())
    return [known for address in found if (known := of_interface(address, infiniband=True))]


def of_interface(address: object, *, infiniband: bool) -> str | None:
    """Return the MAC address by which an interface with ``address`` is known; None if no port can have it.

    :param infiniband: whether addresses of InfiniBand are known
    """
    found = of_infiniband(address) if infiniband and is_infiniband(address) else address
    try:
        return normalize(found)
    except ValueError:
        return None
