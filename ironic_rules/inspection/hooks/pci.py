"""PCI devices as ramdisks report them: the collector ``pci-devices`` sends the list ``pci_devices``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ironic_rules.inspection.hooks.base import warn
from ironic_rules.models.task import Task
from ironic_rules.text import enumeration

_ID = re.compile(r"(?:0x)?([0-9a-f]{4})")
_ADDRESS = re.compile(r"[0-9A-Za-z:._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Device:
    """A PCI device.

    :ivar ids: those of vendor and product, four hexadecimal digits each, in lower case
    :ivar address: such as ``0000:17:00.0``; None if the report has none
    """

    ids: tuple[str, str]
    address: str | None


def parse_id(value: Any) -> str | None:
    """Return a vendor's or product's id in its canonical form, ``10de``; None if ``value`` is not an id.

    ``10DE`` and ``0x10de`` are other notations of it.
    """
    match = _ID.fullmatch(value.lower()) if isinstance(value, str) else None
    return match[1] if match else None


def devices(task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> list[Device] | None:
    """Return the devices of a report; None, and a warning, if it has no list of them.

    They are in the plugin data of a ramdisk, or in the inventory of a BMC. Malformed entries are left out; one warning
    lists them.
    """
    listed = plugin_data.get("pci_devices")
    if listed is None:
        listed = inventory.get("pci_devices")
    if not isinstance(listed, list):
        reason = "are missing; the ramdisk's collector pci-devices sends them" if listed is None else "are not a list"
        warn(task, f"PCI devices are not evaluated: pci_devices {reason}")
        return None
    found: list[Device] = []
    malformed: list[str] = []
    for index, entry in enumerate(listed):
        device = _device(entry)
        if device is None:
            malformed.append(f"/pci_devices/{index}")
        else:
            found.append(device)
    if malformed:
        warn(task, f"malformed PCI devices are ignored: {enumeration(malformed)}")
    return found


def _device(entry: Any) -> Device | None:
    if not isinstance(entry, dict):
        return None
    vendor, product, address = parse_id(entry.get("vendor_id")), parse_id(entry.get("product_id")), entry.get("bus")
    if vendor is None or product is None:
        return None
    is_address = isinstance(address, str) and _ADDRESS.fullmatch(address) is not None
    return Device((vendor, product), address if is_address else None)
