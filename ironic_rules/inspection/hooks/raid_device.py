"""``raid-device``: set a RAID volume that is new since the last inspection as the root device."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import disk_hints
from ironic_rules.models.task import Task
from ironic_rules.text import enumeration

#: Attributes that identify disks, the best first. ``wwn`` may be the controller's, and the same for all its volumes.
_IDENTITIES = ("serial", "wwn_with_extension", "wwn")

Identity = tuple[str, str]


class RAIDDeviceHook(InspectionHook):
    """Sets ``properties/root_device`` to the one disk in ``inventory.disks`` that the last inspection did not find.

    Inspect a node, create the RAID volume, inspect it again. The hint is ``{serial: ...}``; for a disk without a serial
    number it is ``wwn_with_extension`` or ``wwn``. The disks are compared with the inventory of the last successful
    inspection; without one, or if no disk is new, nothing is changed. Several new disks change nothing and cause a
    warning.

    An existing ``root_device`` is never changed, whether it was set by an operator or by this hook: remove it before
    the inspections if the volume was created again. Name this hook before ``root-device``, which then uses the hint in
    the same inspection.
    """

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if task.node.properties.get("root_device"):
            return
        disks = inventory.get("disks")
        if not isinstance(disks, list):
            warn(task, "root_device is not set: /disks is missing or not a list")
            return
        previous = (task.previous_inventory() or {}).get("disks")
        if not isinstance(previous, list):
            return
        known = {identity for disk in previous for identity in _identities(disk)}
        # A dict: several paths to one disk are one disk.
        new = dict.fromkeys(found[0] for disk in disks if (found := _identities(disk)) and found[0] not in known)
        if len(new) > 1:
            warn(task, f"root_device is not set: {len(new)} disks are new: {enumeration([text for _, text in new])}")
        for name, text in new if len(new) == 1 else ():
            task.node.properties["root_device"] = {name: text}


def _identities(disk: Any) -> list[Identity]:
    """Return the attributes that identify a disk, the best first; empty if it is not a disk or has none of them."""
    if not isinstance(disk, dict):
        return []
    return [(name, text) for name in _IDENTITIES if (text := _text(disk.get(name)))]


def _text(value: Any) -> str | None:
    value = value[0] if isinstance(value, list) and value else value
    # As a hint, the text must not be interpreted as an operator.
    is_usable = isinstance(value, str) and len(value) <= 255 and value.isprintable() and disk_hints.is_plain(value)
    return value.strip() if is_usable else None
