"""``redfish`` RAID: the ``Volumes`` of the system's ``Storage`` resources."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.polling import wait_until
from ironic_rules.hardware.raid_steps import RAIDSteps
from ironic_rules.hardware.redfish import raid_layout
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.hardware.redfish.raid_layout import Drive, Volume
from ironic_rules.models import states
from ironic_rules.models.task import Task

_TYPES = {"0": "RAID0", "1": "RAID1", "5": "RAID5", "6": "RAID6", "1+0": "RAID10", "5+0": "RAID50", "6+0": "RAID60"}
#: Type of the volume that a controller without RAID shows for a single drive; it cannot be deleted.
_RAW = "RawDevice"
#: ``TaskState`` of a failed task.
_FAILED = frozenset({"Exception", "Killed", "Cancelled", "Interrupted"})


class RedfishRAID(RedfishInterface, RAIDSteps):
    """Creates and deletes volumes, immediately if the controller supports that, else with a reboot."""

    def create_volumes(self, task: Task, disks: list[dict[str, Any]]) -> None:
        later = False
        before = 0
        volumes: list[Volume] = []
        with self.system(task) as system:
            storages = {storage.identity: storage for storage in _storages(system)}
            before = sum(len(_volumes(storage)) for storage in storages.values())
            volumes = raid_layout.lay_out(disks, [drive for storage in storages.values() for drive in _drives(storage)])
            for volume in volumes:
                collection = storages[volume.controller].volumes
                when, waits = self._when(collection)
                later |= waits
                self._finish(task, collection.create(
                    _payload(volume), apply_time=when, timeout=self.conf.redfish.configuration_timeout), waits)
        if later:
            self._reboot_until(task, before + len(volumes), "the creation of the volumes")

    def delete_volumes(self, task: Task) -> None:
        later = False
        with self.system(task) as system:
            for storage in _storages(system):
                when, waits = self._when(storage.volumes)
                for volume in _volumes(storage):
                    later |= waits
                    self._finish(task, volume.delete(
                        apply_time=when, timeout=self.conf.redfish.configuration_timeout), waits)
        if later:
            self._reboot_until(task, 0, "the deletion of the volumes")

    def _when(self, collection: Any) -> tuple[Any, bool]:
        """Return the apply time to request, and whether it requires a reboot."""
        support = collection.operation_apply_time_support
        offered = {getattr(value, "value", value) for value in (support.supported_values or ()) if value} \
            if support else set()
        if "Immediate" in offered:
            return self.sushy.ApplyTime.IMMEDIATE, False
        return (self.sushy.ApplyTime.ON_RESET, True) if "OnReset" in offered else (None, False)

    def _finish(self, task: Task, answer: Any, waits: bool) -> None:
        """Wait for the BMC's task, if it has created one that does not require a reboot."""
        if waits or not isinstance(answer, self.sushy.taskmonitor.TaskMonitor):
            return
        wait_until(task, lambda: not answer.check_is_processing, "the BMC's task",
                   self.conf.redfish.configuration_timeout)
        # A failed task is either deleted, with an HTTP error that sushy raises, or kept, with its state.
        ended = answer.response.json() if answer.response.content else {}
        if ended.get("TaskState") in _FAILED:
            raise BMCError(node=task.node.uuid, reason=f"its task on the volume ended as {ended['TaskState']}.")

    def _reboot_until(self, task: Task, count: int, what: str) -> None:
        self.interface_of(task.node, "power").set_power_state(task, states.REBOOT)

        def is_done() -> bool:
            with self.system(task) as system:
                return sum(len(_volumes(storage)) for storage in _storages(system)) == count

        wait_until(task, is_done, what, self.conf.redfish.configuration_timeout)


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
