"""The deploy steps of RAID interfaces: what is asked for is checked here, an interface makes and deletes volumes."""

from __future__ import annotations

import abc
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import RAIDInterface
from ironic_rules.hardware.steps import deploy_step
from ironic_rules.models.task import Task

LEVELS = ("JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0")
MAX_SIZE = "MAX"
_KEYS = frozenset({
    "size_gb", "raid_level", "is_root_volume", "volume_name", "controller", "physical_disks", "disk_type",
    "interface_type", "number_of_physical_disks", "share_physical_disks",
})
_DISKS = {"description": "The volumes to make, each an object with size_gb (a number, or MAX), raid_level and, if "
                         "wanted, is_root_volume, volume_name, controller and physical_disks. Default: those of "
                         "target_raid_config of the node."}
_ROOT = {"description": "Whether to make the volume that has is_root_volume. Default: true."}
_NONROOT = {"description": "Whether to make the other volumes. Default: true."}
_DELETE = {"description": "Delete the volumes that are there before. Default: false."}


class RAIDSteps(RAIDInterface, abc.ABC):
    """Mix-in of the interfaces that can make volumes."""

    @abc.abstractmethod
    def create_volumes(self, task: Task, disks: list[dict[str, Any]]) -> None:
        """Make the volumes, valid logical disks; what is there already stays."""

    @abc.abstractmethod
    def delete_volumes(self, task: Task) -> None:
        """Delete every volume. Nothing to delete is no error."""

    @deploy_step(priority=0, argsinfo={
        "logical_disks": _DISKS, "delete_configuration": _DELETE,
        "delete_existing": {"description": "The same as delete_configuration."},
        "create_root_volume": _ROOT, "create_nonroot_volumes": _NONROOT,
    })
    def create_configuration(self, task: Task, logical_disks: Any = None, delete_configuration: bool = False,
                             delete_existing: bool = False, create_root_volume: bool = True,
                             create_nonroot_volumes: bool = True) -> None:
        """Make volumes out of the node's disks."""
        if logical_disks is None:
            logical_disks = task.node.target_raid_config.get("logical_disks")
        self._configure(task, logical_disks, "/args/logical_disks", delete_configuration or delete_existing,
                        create_root_volume, create_nonroot_volumes)

    @deploy_step(priority=0, argsinfo={
        "raid_config": {"description": "An object with logical_disks, as in create_configuration.", "required": True},
        "delete_existing": _DELETE, "create_root_volume": _ROOT, "create_nonroot_volumes": _NONROOT,
    })
    def apply_configuration(self, task: Task, raid_config: Any, delete_existing: bool = False,
                            create_root_volume: bool = True, create_nonroot_volumes: bool = True) -> None:
        """Make the volumes of a RAID configuration."""
        if not isinstance(raid_config, dict):
            raise InvalidParameterValue("/args/raid_config: must be an object")
        self._configure(task, raid_config.get("logical_disks"), "/args/raid_config/logical_disks", delete_existing,
                        create_root_volume, create_nonroot_volumes)

    @deploy_step(priority=0, rerunnable=True)
    def delete_configuration(self, task: Task) -> None:
        """Delete every volume of the node."""
        self.delete_volumes(task)
        task.node.raid_config = {}

    def _configure(self, task: Task, disks: Any, where: str, delete: bool, root: bool, others: bool) -> None:
        wanted = [disk for disk in checked(disks, where) if (root if disk.get("is_root_volume") else others)]
        if not wanted:
            raise InvalidParameterValue(f"{where}: no volume is left to make")
        present: list[Any] = []
        if delete:
            self.delete_volumes(task)
            task.node.raid_config = {}
        else:
            present = task.node.raid_config.get("logical_disks") or []
        self.create_volumes(task, wanted)
        task.node.raid_config = {"logical_disks": [*present, *wanted]}


def checked(disks: Any, where: str) -> list[dict[str, Any]]:
    """Return logical disks that are right.

    :raises InvalidParameterValue: they are not; the text has the place below ``where``
    """
    if not isinstance(disks, list) or not disks:
        raise InvalidParameterValue(f"{where}: must be a list of one or more objects")
    for index, disk in enumerate(disks):
        if problem := _problem(disk):
            raise InvalidParameterValue(f"{where}/{index}{problem}")
    if sum(disk.get("is_root_volume") is True for disk in disks) > 1:
        raise InvalidParameterValue(f"{where}: only one volume can be the root volume")
    return disks


def _problem(disk: Any) -> str | None:
    if not isinstance(disk, dict):
        return ": must be an object"
    size = disk.get("size_gb")
    if size != MAX_SIZE and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        return "/size_gb: must be a number above 0, or MAX"
    if disk.get("raid_level") not in LEVELS:
        return f"/raid_level: must be one of {', '.join(LEVELS)}"
    if not isinstance(disk.get("is_root_volume", False), bool):
        return "/is_root_volume: must be true or false"
    if not set(disk) <= _KEYS:
        return f": has a key that is none of {', '.join(sorted(_KEYS))}"
    return None
