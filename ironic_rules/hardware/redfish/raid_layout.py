"""Selection of the drives of each volume. No side effects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.raid_steps import MAX_SIZE
from ironic_rules.models.documents import JSONObject
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


def _volume(disk: JSONObject, drives: Sequence[Drive], what: str) -> Volume:
    level = _LEVELS.get(disk["raid_level"])
    if level is None:
        raise InvalidParameterValue(f"{what}: Redfish has no RAID level {disk['raid_level']}")
    if disk.get("share_physical_disks"):
        raise InvalidParameterValue(f"{what}: volumes that share drives are not supported (share_physical_disks)")
    wanted, named = disk.get("controller"), disk.get("physical_disks")
    for controller in dict.fromkeys(drive.controller for drive in drives):
        if wanted in (None, controller):
            chosen = _choose(disk, level, [drive for drive in drives if drive.controller == controller
                                           and (not named or drive.name in named) and _is_kind(drive, disk)])
            if chosen:
                room = level.data_drives(len(chosen)) * min(drive.capacity_bytes for drive in chosen)
                size = room if disk["size_gb"] == MAX_SIZE else disk["size_gb"] * GIB
                return Volume(controller, disk["raid_level"], size, tuple(chosen), disk.get("volume_name"))
    where = "" if wanted is None else f" at the controller {printable(wanted)}"
    raise InvalidParameterValue(f"{what}: there are not enough drives for {disk['size_gb']} GB in RAID level "
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
