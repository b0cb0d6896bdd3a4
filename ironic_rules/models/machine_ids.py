"""The serial number and the UUID of a machine, in the form in which they are stored and compared. No side effects.

Unlike MAC addresses they survive the replacement of network adapters, but some vendors write the same text to every
machine: such values identify none.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Collection, Mapping

from ironic_rules.models.documents import JSON

MAX_LENGTH = 64
_SERIAL = "serial:"
_UUID = "uuid:"
#: Texts that boards have instead of a serial number.
_NO_SERIAL = re.compile(
    r"to be filled.*|.*o\.?e\.?m\.?.*|default string|system serial number|not (specified|available|applicable)|none|"
    r"n/?a|null|unknown|invalid|chassis serial number|(.)\2*|0?123456789.*|\W*", re.IGNORECASE)
_NO_UUID = uuids.UUID("03000200-0400-0500-0006-000700080009")
_LONGEST = MAX_LENGTH - len(_SERIAL)


def of(serial: object, uuid: object) -> set[str]:
    """Return the identifiers of a machine with this serial number and this system UUID; none for unusable values.

    Firmware writes the first fields of a UUID in either byte order, and BMC and operating system may differ: both are
    returned.
    """
    ids = set()
    if isinstance(serial, str) and 4 <= len(text := serial.strip().lower()) <= _LONGEST and text.isprintable() \
            and not _NO_SERIAL.fullmatch(text):
        ids.add(_SERIAL + text)
    try:
        number = uuids.UUID(uuid) if isinstance(uuid, str) else uuids.UUID(int=0)
    except ValueError:
        return ids
    # The UUIDs of boards without one have the same octet throughout, are mostly zeros, or are this one.
    orders = {number, uuids.UUID(bytes=number.bytes_le)}
    if len(set(number.bytes)) > 4 and _NO_UUID not in orders:
        ids |= {f"{_UUID}{order}" for order in orders}
    return ids


def differ(some: Collection[str], others: Collection[str]) -> bool:
    """Return whether both have a serial number, or both a UUID, and have nothing in common: two machines."""
    return not set(some) & set(others) and bool(_kinds(some) & _kinds(others))


def _kinds(ids: Collection[str]) -> set[str]:
    return {value.partition(":")[0] for value in ids}


def of_report(inventory: Mapping[str, JSON], plugin_data: Mapping[str, JSON]) -> set[str]:
    """Return the identifiers of the machine of a report.

    ironic-python-agent sends the serial number; the collector of hardware-detect sends the UUID, too.
    """
    vendor = inventory.get("system_vendor")
    vendor = vendor if isinstance(vendor, Mapping) else {}
    return of(vendor.get("serial_number"), vendor.get("uuid") or _detected(plugin_data.get("data")))


def _detected(facts: object) -> object:
    """Return the UUID in the facts of hardware-detect: lists such as ``["system", "product", "uuid", "…"]``."""
    for fact in facts if isinstance(facts, list) else ():
        if isinstance(fact, list) and len(fact) == 4 and fact[:3] == ["system", "product", "uuid"]:
            return fact[3]
    return None
