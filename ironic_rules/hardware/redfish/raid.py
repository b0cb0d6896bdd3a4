"""``redfish`` RAID: the ``Volumes`` of the system's ``Storage`` resources, and the drives of each volume.

The storage of a machine is reported in the form of Ironic's out-of-band inspection, so that rules for one read the
other: an entry for each storage resource, which has its controllers and its drives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import HardwareFailed, InvalidParameterValue
from ironic_rules.hardware.declared_steps import MAX_SIZE, RAIDSteps
from ironic_rules.hardware.redfish import quirks, reading
from ironic_rules.hardware.redfish.client import GONE, RedfishInterface
from ironic_rules.hardware.redfish.reading import MAX_ITEMS, FoundResources, RedfishResource
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.text import printable

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive: its controller (storage resource), its name there, and its capacity."""

    controller: str
    name: str
    path: str
    capacity_bytes: int
    is_used: bool = False
    #: ``hdd`` or ``ssd``, and ``nvme``, ``sas``, ``sata``, ...; None means unknown
    disk_type: str | None = None
    interface_type: str | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume to create on ``drives``, which all belong to one controller."""

    controller: str
    level: str
    capacity_bytes: int
    drives: tuple[Drive, ...]
    name: str | None = None
    #: whether it has all of their capacity
    is_max: bool = False


@dataclass(frozen=True, slots=True)
class _Level:
    """``fewest`` is the minimum number of drives, ``redundant`` the number without data, ``step`` the increment.

    With mirrors half of the drives hold no data, and with copies all but one.
    """

    fewest: int
    redundant: int = 0
    mirrored: bool = False
    copied: bool = False
    step: int = 1

    def data_drives(self, count: int) -> int:
        if self.copied:
            return 1
        return count // 2 if self.mirrored else count - self.redundant


_LEVELS = {
    "0": _Level(1), "1": _Level(2, copied=True), "5": _Level(3, redundant=1), "6": _Level(4, redundant=2),
    "1+0": _Level(4, mirrored=True, step=2), "5+0": _Level(6, redundant=2, step=2),
    "6+0": _Level(8, redundant=4, step=2),
}


def lay_out(disks: Iterable[JSONObject], drives: Sequence[Drive]) -> list[Volume]:
    """Return the volumes for ``disks``, valid logical disks, in the same order.

    A disk gets the drives that it names, or the first unused ones of one controller: with ``MAX`` all of them (a
    mirror: two), else the minimum number that can hold it. Disks that name drives are served first, ``MAX`` last.

    :raises InvalidParameterValue: there are not enough drives
    """
    free = [drive for drive in drives if not drive.is_used]
    volumes: dict[int, Volume] = {}
    for index, disk in sorted(enumerate(disks), key=lambda item: _turn(item[1])):
        volume = _volume(disk, drives if disk.get("physical_disks") else free, f"logical disk {index}")
        if any(drive in other.drives for other in volumes.values() for drive in volume.drives):
            raise InvalidParameterValue(f"logical disk {index}: another logical disk names one of its drives")
        volumes[index] = volume
        free = [drive for drive in free if drive not in volumes[index].drives]
    return [volumes[index] for index in sorted(volumes)]


def _turn(disk: JSONObject) -> tuple[bool, bool]:
    return not disk.get("physical_disks"), disk["size_gb"] == MAX_SIZE


def _volume(disk: JSONObject, drives: Sequence[Drive], subject: str) -> Volume:
    level = _LEVELS.get(disk["raid_level"])
    if level is None:
        raise InvalidParameterValue(f"{subject}: Redfish has no RAID level {disk['raid_level']}")
    if disk.get("share_physical_disks"):
        raise InvalidParameterValue(f"{subject}: volumes that share drives are not supported (share_physical_disks)")
    requested, named = disk.get("controller"), disk.get("physical_disks")
    for controller in dict.fromkeys(drive.controller for drive in drives):
        if requested in (None, controller):
            chosen = _choose(disk, level, [drive for drive in drives if drive.controller == controller
                                           and (not named or drive.name in named) and _is_kind(drive, disk)])
            if chosen:
                room = level.data_drives(len(chosen)) * min(drive.capacity_bytes for drive in chosen)
                size = room if disk["size_gb"] == MAX_SIZE else disk["size_gb"] * GIB
                return Volume(controller, disk["raid_level"], size, tuple(chosen), disk.get("volume_name"),
                              disk["size_gb"] == MAX_SIZE)
    where = "" if requested is None else f" at the controller {printable(requested)}"
    raise InvalidParameterValue(f"{subject}: there are not enough drives for {disk['size_gb']} GB in RAID level "
                                f"{disk['raid_level']}{where}")


def _is_kind(drive: Drive, disk: JSONObject) -> bool:
    return (disk.get("disk_type") in (None, drive.disk_type)
            and disk.get("interface_type") in (None, drive.interface_type))


def _choose(disk: JSONObject, level: _Level, drives: Sequence[Drive]) -> Sequence[Drive] | None:
    """Return the drives of one controller that ``disk`` gets; None if they are not sufficient."""
    named = disk.get("physical_disks")
    if named and len(drives) < len(named):
        return None
    number = len(drives) if named else disk.get("number_of_physical_disks")
    counts: Iterable[int]
    if number is not None:
        counts = [number] if isinstance(number, int) else []
    elif disk["size_gb"] == MAX_SIZE:
        counts = [2] if disk["raid_level"] == "1" else range(len(drives), 0, -1)
    else:
        counts = range(level.fewest, len(drives) + 1)
    for count in counts:
        if not level.fewest <= count <= len(drives) or count % level.step:
            continue
        chosen = drives[:count]
        room = level.data_drives(count) * min(drive.capacity_bytes for drive in chosen)
        if disk["size_gb"] == MAX_SIZE or room >= disk["size_gb"] * GIB:
            return chosen
    return None


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
            volumes = lay_out(disks, [drive for storage in storages.values() for drive in _drives(storage)])
            begun.expected += len(volumes)
            for volume in volumes:
                collection = storages[volume.controller].volumes
                when, waits = self._when(collection)
                begun.take(self._request(when, *(functools.partial(_post, collection, payload)
                                                 for payload in _payloads(volume))), waits)
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
                    begun.take(self._request(when, functools.partial(_delete, volume)), waits)
        return self._wait(task, begun, "the deletion of the volumes")

    def poll(self, task: Task, awaited: Mapping[str, Any]) -> str | None:
        running, lost = [], []
        for path in awaited["tasks"]:
            status, body = self.read(task, path)
            if status in GONE:
                lost.append(path)
            elif reading.task_is_running(task.node.uuid, awaited["name"], status, body):
                running.append(printable(f"{path} ({body.get('TaskState') or 'running'})", 200))
        if running:
            return f"{awaited['name']}: these tasks of the BMC have not ended: {', '.join(running)}."
        if awaited["tasks"] and not lost:
            return None
        number = self._number(task, awaited)
        if number == awaited["expected"]:
            return None
        if lost:
            raise HardwareFailed(node=task.node.uuid, reason=(
                f"{awaited['name']} failed: it no longer knows its task {printable(lost[0], 200)}, and has {number} "
                f"volumes instead of {awaited['expected']}. It may have been restarted."))
        return f"{awaited['name']}: there are {number} volumes instead of {awaited['expected']}."

    def _number(self, task: Task, awaited: Mapping[str, Any]) -> int:
        """Return the number of volumes that there are now, by as few requests as possible."""
        number = 0
        for path, before in awaited["volumes"].items():
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

    def _request(self, when: dict[str, str], *sends: Callable[[dict[str, str]], Any]) -> Any:
        """Return the reply to a request with an apply time, or without where the BMC offers it and then refuses it.

        :param sends: of each form of the request
        """
        times = [when, {}] if when else [{}]
        return self.change(quirks.RAID, [
            quirks.Form("apply time" if time else "no apply time", functools.partial(send, time))
            for send in sends for time in times]).reply

    def _wait(self, task: Task, begun: _Begun, name: str) -> str | None:
        if not begun.reboots and not begun.tasks:
            return None
        awaited = {"name": name, "tasks": [] if begun.reboots else begun.tasks, "expected": begun.expected,
                   "volumes": begun.volumes}
        wait = self.reboot_and_wait if begun.reboots else self.wait_for
        return wait(task, awaited, self.conf.redfish.configuration_timeout, "[redfish]configuration_timeout")


def _post(collection: Any, payload: JSONObject, when: dict[str, str]) -> Any:
    return collection._conn.post(collection.path, data={**payload, **when})


def _delete(volume: Any, when: dict[str, str]) -> Any:
    return volume._conn.delete(volume.path, data=when or None)


class _Begun:
    """Work that was begun: paths of the BMC's tasks, and the volumes before, as ``{collection: {members, number}}``."""

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

    def take(self, reply: object, waits: bool) -> None:
        """Note the reply to the creation or deletion of a volume.

        :param waits: it requires a reboot
        """
        self.reboots |= waits
        if not waits and (location := reading.task_location(reply)) is not None:
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


def _lower(value: object) -> str | None:
    """Return the name of a type of drives as in logical disks."""
    return None if value is None else str(getattr(value, "value", value)).lower()


def _payloads(volume: Volume) -> list[JSONObject]:
    """Return what requests a volume; if it has all of the capacity, last without it: metadata need a part of that."""
    name = {} if volume.name is None else {"Name": volume.name}
    drives = [{"@odata.id": drive.path} for drive in volume.drives]
    filling = {"RAIDType": _TYPES[volume.level], "Links": {"Drives": drives}, **name}
    sized = {**filling, "CapacityBytes": volume.capacity_bytes}
    return [sized, filling] if volume.is_max else [sized]


_STATUS = {"health": "Health", "state": "State", "health_rollup": "HealthRollup"}


def controllers_of(resources: FoundResources, storage: RedfishResource) -> list[RedfishResource]:
    """Return the controllers of a storage resource: resources of their own, or in old BMCs objects in it."""
    return resources.of("controller", storage) or [
        RedfishResource("controller", storage.path, entry) for entry in storage.objects("StorageControllers")]


def storage_resources(resources: FoundResources) -> list[JSONObject]:
    """Return the storage resources, for ``inventory.storage_controllers``. Sizes are in bytes."""
    return [{
        "id": storage.text("Id") or "", "name": storage.text("Name"),
        "storage_controllers": [_controller(resource) for resource in controllers_of(resources, storage)],
        "drives": [_drive(resource) for resource in resources.of("drive", storage) if resource.is_present],
    } for storage in resources.of("storage")]


def _controller(controller: RedfishResource) -> JSONObject:
    return {
        "member_id": controller.text("MemberId") or controller.text("Id"), "name": controller.text("Name"),
        "model": controller.text("Model"), "manufacturer": controller.text("Manufacturer"),
        "firmware_version": controller.text("FirmwareVersion"),
        "raid_types": _texts(controller, "SupportedRAIDTypes"), "speed_gbps": controller.number("SpeedGbps"),
        "controller_protocols": _texts(controller, "SupportedControllerProtocols"),
        "device_protocols": _texts(controller, "SupportedDeviceProtocols"), **_status(controller),
    }


def _drive(drive: RedfishResource) -> JSONObject:
    protocol, size = drive.text("Protocol"), drive.number("CapacityBytes")
    return {
        "name": drive.text("Name"), "size": None if size is None else int(size), "id": drive.text("Id"),
        "media_type": drive.text("MediaType"), "serial_number": drive.text("SerialNumber"),
        "manufacturer": drive.text("Manufacturer"), "model": drive.text("Model"), "revision": drive.text("Revision"),
        **({} if protocol is None else {"protocol": protocol}), **_status(drive),
    }


def _status(resource: RedfishResource) -> JSONObject:
    status = {name: text for name, key in _STATUS.items() if (text := resource.text("Status", key)) is not None}
    return {"status": status} if status else {}


def _texts(resource: RedfishResource, key: str) -> list[str]:
    value = resource.get(key)
    return [entry for entry in value[:MAX_ITEMS] if isinstance(entry, str)] if isinstance(value, list) else []
