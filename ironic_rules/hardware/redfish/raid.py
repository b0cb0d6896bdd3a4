"""``redfish`` RAID: the ``Volumes`` of the system's ``Storage`` resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ironic_rules.exceptions import HardwareFailed
from ironic_rules.hardware.raid_steps import RAIDSteps
from ironic_rules.hardware.redfish import bmc_tasks, raid_layout
from ironic_rules.hardware.redfish.client import GONE, RedfishInterface
from ironic_rules.hardware.redfish.raid_layout import Drive, Volume
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.text import printable

_TYPES = {"0": "RAID0", "1": "RAID1", "5": "RAID5", "6": "RAID6", "1+0": "RAID10", "5+0": "RAID50", "6+0": "RAID60"}
#: Type of the volume that a controller without RAID shows for a single drive; it cannot be deleted.
_RAW = "RawDevice"
_APPLY = "@Redfish.OperationApplyTime"


class RedfishRAID(RedfishInterface, RAIDSteps):
    """Creates and deletes volumes, immediately if the controller supports that, else with a reboot."""

    def create_volumes(self, task: Task, disks: list[JSONObject]) -> str | None:
        begun = _Begun()
        with self.system(task) as system:
            storages = {storage.identity: storage for storage in _storages(system)}
            begun.note(storages.values())
            volumes = raid_layout.lay_out(disks, [drive for storage in storages.values() for drive in _drives(storage)])
            begun.expected += len(volumes)
            for volume in volumes:
                collection = storages[volume.controller].volumes
                when, waits = self._when(collection)
                begun.take(collection._conn.post(collection.path, data={**_payload(volume), **when}), waits)
        return self._wait(task, begun, "the creation of the volumes")

    def delete_volumes(self, task: Task) -> str | None:
        begun = _Begun()
        with self.system(task) as system:
            storages = _storages(system)
            begun.note(storages)
            begun.expected = 0
            for storage in storages:
                when, waits = self._when(storage.volumes)
                for volume in _volumes(storage):
                    begun.take(self._delete_one(volume, when), waits)
        return self._wait(task, begun, "the deletion of the volumes")

    def poll(self, task: Task, what: Mapping[str, Any]) -> str | None:
        running, lost = [], []
        for path in what["tasks"]:
            status, found = self.read(task, path)
            if status in GONE:
                lost.append(path)
            elif bmc_tasks.is_running(task.node.uuid, what["name"], status, found):
                running.append(printable(f"{path} ({found.get('TaskState') or 'running'})", 200))
        if running:
            return f"{what['name']}: these tasks of the BMC have not ended: {', '.join(running)}."
        if what["tasks"] and not lost:
            return None
        number = self._number(task, what)
        if number == what["expected"]:
            return None
        if lost:
            raise HardwareFailed(node=task.node.uuid, reason=(
                f"{what['name']} failed: it no longer knows its task {printable(lost[0], 200)}, and has {number} "
                f"volumes instead of {what['expected']}. It may have been restarted."))
        return f"{what['name']}: there are {number} volumes instead of {what['expected']}."

    def _number(self, task: Task, what: Mapping[str, Any]) -> int:
        """Return the number of volumes that there are now, by as few requests as possible."""
        number = 0
        for path, before in what["volumes"].items():
            members = self.read(task, path)[1]["Members"]
            paths = [str(member["@odata.id"]) for member in members]
            if paths == before["members"]:
                number += before["number"]
            else:
                number += sum(self.read(task, member)[1].get("VolumeType") != _RAW for member in paths)
        return number

    def _when(self, collection: Any) -> tuple[dict[str, str], bool]:
        """Return what requests the apply time, and whether it requires a reboot."""
        support = collection.operation_apply_time_support
        offered = {getattr(value, "value", value) for value in (support.supported_values or ()) if value} \
            if support else set()
        # sushy's own methods would wait here for the end of an immediate operation.
        if "Immediate" in offered:
            return {_APPLY: "Immediate"}, False
        return ({_APPLY: "OnReset"}, True) if "OnReset" in offered else ({}, False)

    def _delete_one(self, volume: Any, when: dict[str, str]) -> Any:
        try:
            return volume._conn.delete(volume.path, data=when or None)
        except self.sushy.exceptions.ServerSideError as exc:
            # Some BMCs offer apply times for deletions and then refuse them.
            if not when or _APPLY not in str(exc.message):
                raise
            return volume._conn.delete(volume.path)

    def _wait(self, task: Task, begun: _Begun, name: str) -> str | None:
        if not begun.reboots and not begun.tasks:
            return None
        what = {"name": name, "tasks": [] if begun.reboots else begun.tasks, "expected": begun.expected,
                "volumes": begun.volumes}
        wait = self.reboot_and_wait if begun.reboots else self.wait_for
        return wait(task, what, self.conf.redfish.configuration_timeout, "[redfish]configuration_timeout")


class _Begun:
    """What was begun: paths of the BMC's tasks, and the volumes before, as ``{collection: {members, number}}``."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.reboots = False
        self.volumes: dict[str, JSONObject] = {}
        self.expected = 0

    def note(self, storages: Iterable[Any]) -> None:
        """Note the volumes that there are."""
        for storage in storages:
            members, number = list(storage.volumes.members_identities), len(_volumes(storage))
            self.volumes[storage.volumes.path] = {"members": members, "number": number}
            self.expected += number

    def take(self, reply: Any, waits: bool) -> None:
        """Note the reply to the creation or deletion of a volume.

        :param waits: it requires a reboot
        """
        self.reboots |= waits
        if not waits and (location := bmc_tasks.location(reply)) is not None:
            self.tasks.append(location)


def _storages(system: Any) -> list[Any]:
    """Return the controllers that can create volumes: others, such as those of single NVMe drives, have no list."""
    return [storage for storage in system.storage.get_members() if "Volumes" in storage.json]


def _volumes(storage: Any) -> list[Any]:
    return [volume for volume in storage.volumes.get_members()
            if getattr(volume.volume_type, "value", volume.volume_type) != _RAW]


def _drives(storage: Any) -> list[Drive]:
    used = {link.get("@odata.id") for volume in _volumes(storage)
            for link in volume.json.get("Links", {}).get("Drives", ())}
    return [Drive(storage.identity, drive.identity, drive.path, drive.capacity_bytes or 0, drive.path in used,
                  _lower(drive.media_type), _lower(drive.protocol))
            for drive in storage.drives]


def _lower(value: Any) -> str | None:
    """Return the name of a type of drives as in logical disks."""
    return None if value is None else str(getattr(value, "value", value)).lower()


def _payload(volume: Volume) -> dict[str, Any]:
    name = {} if volume.name is None else {"Name": volume.name}
    return {"RAIDType": _TYPES[volume.level], "CapacityBytes": volume.capacity_bytes,
            "Links": {"Drives": [{"@odata.id": drive.path} for drive in volume.drives]}, **name}
