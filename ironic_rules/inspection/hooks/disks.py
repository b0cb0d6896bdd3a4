"""Hooks about disks: ``root-device`` selects the one to install on, ``raid-device`` a RAID volume that is new."""

from __future__ import annotations

from typing import Any

from oslo_utils import units

from ironic_rules.exceptions import HookFailed, InvalidInventory
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models import disk_hints
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.task import Task
from ironic_rules.text import enumeration, printable

#: bytes; ironic-python-agent installs on a smaller disk only if a hint selects it
MIN_SIZE = 4 * units.Gi

Disk = dict[str, Any]


class RootDeviceHook(InspectionHook):
    """Stores the root disk in ``plugin_data.root_disk``, and sets ``properties/local_gb`` (GiB) from its size.

    The root disk is the first one in ``inventory.disks`` that matches the hints in ``properties/root_device``; if none
    does, or a hint is malformed, the inspection fails. Without hints it is ``root_disk`` as sent by the ramdisk, else
    the smallest disk of at least 4 GiB. Disks that match a hint in ``properties/skip_block_devices`` are never used.

    ``local_gb``, also in ``plugin_data``, is the size of the disk in whole GiB minus
    ``[inspector]disk_partitioning_spacing``, and 0 if there is no disk. A report without disks leaves it unchanged and
    causes a warning.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        try:
            skips = _skips(task.node.properties.get("skip_block_devices"))
            hints = task.node.properties.get("root_device")
            fits = disk_hints.parse(hints, "/properties/root_device") if hints not in (None, {}) else None
        except disk_hints.BadHint as exc:
            raise HookFailed(hook="root-device", reason=printable(exc)) from exc
        disks = _disks(task, inventory)
        usable = None if disks is None else [disk for disk in disks if not any(skip(disk) for skip in skips)]
        if fits is not None:
            if usable is None:
                raise InvalidInventory(node=task.node.uuid, where="/disks is missing")
            root = next((disk for disk in usable if fits(disk)), None)
            if root is None:
                raise HookFailed(hook="root-device", reason=f"none of {len(usable)} disks fits the root device hints "
                                                            f"{printable(hints)}")
        else:
            sent = plugin_data.get("root_disk")
            is_usable = isinstance(sent, dict) and _has_size(sent) and not any(skip(sent) for skip in skips)
            root = sent if is_usable else _default(usable or [])
            if root is None and usable is None:
                warn(task, "local_gb is not set: /disks is missing")
                return
        self._set(task, plugin_data, root, disks or [])

    def _set(self, task: Task, plugin_data: JSONObject, root: Disk | None, disks: list[Disk]) -> None:
        local_gb = 0
        if root is not None:
            plugin_data["root_disk"] = clone(root)
            local_gb = max(0, root["size"] // units.Gi - self.settings.disk_partitioning_spacing)
            if not local_gb:
                warn(task, f"local_gb is 0: the root disk {printable(root.get('name'), 64)} is too small")
        else:
            plugin_data.pop("root_disk", None)
            if disks:
                warn(task, f"local_gb is 0: none of {len(disks)} disks can be the root disk")
        plugin_data["local_gb"] = task.node.properties["local_gb"] = local_gb


def _skips(listed: object) -> list[disk_hints.Hint]:
    """Return the hints of disks to skip, except those for volumes of a software RAID, which do not name a disk."""
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise disk_hints.BadHint("/properties/skip_block_devices is not a list")
    return [disk_hints.parse(hint, f"/properties/skip_block_devices/{index}") for index, hint in enumerate(listed)
            if not (isinstance(hint, dict) and "volume_name" in hint)]


def _disks(task: Task, inventory: JSONObject) -> list[Disk] | None:
    listed = inventory.get("disks")
    if listed is None:
        return None
    if not isinstance(listed, list):
        warn(task, "disks are not evaluated: /disks is not a list")
        return None
    malformed = [f"/disks/{index}" for index, disk in enumerate(listed) if not _has_size(disk)]
    if malformed:
        warn(task, f"disks without a size are ignored: {enumeration(malformed)}")
    return [disk for disk in listed if _has_size(disk)]


def _has_size(disk: object) -> bool:
    return isinstance(disk, dict) and disk_hints.is_size(disk.get("size"))


def _default(disks: list[Disk]) -> Disk | None:
    """Return the disk that ironic-python-agent uses without hints. Of several of the same size, the first by name."""
    large = [disk for disk in disks if disk["size"] >= MIN_SIZE]
    return min(large, key=lambda disk: (disk["size"], str(disk.get("name"))), default=None)


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

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        if task.node.properties.get("root_device"):
            return
        disks = inventory.get("disks")
        if not isinstance(disks, list):
            warn(task, "root_device is not set: /disks is missing or not a list")
            return
        previous = (task.previous_inventory() or {}).get("disks")
        if not isinstance(previous, list):
            return
        identities = {identity for disk in previous for identity in _identities(disk)}
        # A dict: several paths to one disk are one disk.
        new = dict.fromkeys(names[0] for disk in disks if (names := _identities(disk)) and names[0] not in identities)
        if len(new) > 1:
            warn(task, f"root_device is not set: {len(new)} disks are new: {enumeration([text for _, text in new])}")
        for name, text in new if len(new) == 1 else ():
            task.node.properties["root_device"] = {name: text}


def _identities(disk: object) -> list[Identity]:
    """Return the attributes that identify a disk, the best first; empty if it is not a disk or has none of them."""
    if not isinstance(disk, dict):
        return []
    return [(name, text) for name in _IDENTITIES if (text := _text(disk.get(name)))]


def _text(value: Any) -> str | None:
    value = value[0] if isinstance(value, list) and value else value
    # As a hint, the text must not be interpreted as an operator.
    is_usable = isinstance(value, str) and len(value) <= 255 and value.isprintable() and disk_hints.is_plain(value)
    return value.strip() if is_usable else None
