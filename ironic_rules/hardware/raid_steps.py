"""The deploy steps of RAID interfaces: requests are checked here, an interface creates and deletes volumes."""

from __future__ import annotations

import abc
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import RAIDInterface
from ironic_rules.models import pointer
from ironic_rules.models.task import Task
from ironic_rules.steps import arguments
from ironic_rules.steps.declaration import deploy_step

LEVELS = ("JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0")
MAX_SIZE = "MAX"
_DISK = {
    "description": "an object with size_gb and raid_level", "type": "object",
    "required": ["size_gb", "raid_level"], "additionalProperties": False,
    "properties": {
        "size_gb": {"description": "a number above 0, or MAX",
                    "anyOf": [{"const": MAX_SIZE}, {"type": "integer", "minimum": 1}]},
        "raid_level": arguments.one_of(LEVELS),
        "is_root_volume": arguments.BOOLEAN,
        "volume_name": arguments.TEXT,
        "controller": arguments.TEXT,
        "physical_disks": {"description": "a list of names of drives", "type": "array", "minItems": 1,
                           "uniqueItems": True, "items": arguments.TEXT},
        "disk_type": arguments.one_of(("hdd", "ssd")),
        "interface_type": arguments.one_of(("nvme", "sas", "sata", "scsi")),
        "number_of_physical_disks": {"description": "a number above 0", "type": "integer", "minimum": 1},
        "share_physical_disks": arguments.BOOLEAN,
    },
}
_LOGICAL_DISKS = {
    "description": "a list of one or more objects, of which only one volume can be the root volume", "type": "array",
    "minItems": 1, "items": _DISK, "minContains": 0, "maxContains": 1,
    "contains": {"type": "object", "required": ["is_root_volume"], "properties": {"is_root_volume": {"const": True}}},
}
_DISKS = {"description": "The volumes to create, each an object with size_gb (a number, or MAX), raid_level and "
                         "optionally is_root_volume, volume_name, controller and physical_disks. Default: those of "
                         "target_raid_config of the node.", "schema": {**_LOGICAL_DISKS, "type": ["array", "null"]}}
_ROOT = {"description": "Whether to create the volume that has is_root_volume. Default: true.",
         "schema": arguments.BOOLEAN}
_NONROOT = {"description": "Whether to create the other volumes. Default: true.", "schema": arguments.BOOLEAN}
_DELETE = {"description": "Delete the existing volumes first. Default: false.", "schema": arguments.BOOLEAN}


class RAIDSteps(RAIDInterface, abc.ABC):
    """Mix-in of the interfaces that can create volumes."""

    @abc.abstractmethod
    def create_volumes(self, task: Task, disks: list[dict[str, Any]]) -> None:
        """Create the volumes, valid logical disks; existing volumes are kept."""

    @abc.abstractmethod
    def delete_volumes(self, task: Task) -> None:
        """Delete every volume. It is not an error if there is none."""

    @deploy_step(priority=0, argsinfo={
        "logical_disks": _DISKS, "delete_configuration": _DELETE,
        "delete_existing": {"description": "The same as delete_configuration.", "schema": arguments.BOOLEAN},
        "create_root_volume": _ROOT, "create_nonroot_volumes": _NONROOT,
    })
    def create_configuration(self, task: Task, logical_disks: Any = None, delete_configuration: bool = False,
                             delete_existing: bool = False, create_root_volume: bool = True,
                             create_nonroot_volumes: bool = True) -> None:
        """Create volumes on the node's disks."""
        if logical_disks is None:
            logical_disks = checked(task.node.target_raid_config.get("logical_disks"), "/args/logical_disks")
        self._configure(task, logical_disks, "/args/logical_disks", delete_configuration or delete_existing,
                        create_root_volume, create_nonroot_volumes)

    @deploy_step(priority=0, argsinfo={
        "raid_config": {"description": "An object with logical_disks, as in create_configuration.", "required": True,
                        "schema": {"description": "an object", "type": "object", "required": ["logical_disks"],
                                   "properties": {"logical_disks": _LOGICAL_DISKS}}},
        "delete_existing": _DELETE, "create_root_volume": _ROOT, "create_nonroot_volumes": _NONROOT,
    })
    def apply_configuration(self, task: Task, raid_config: Any, delete_existing: bool = False,
                            create_root_volume: bool = True, create_nonroot_volumes: bool = True) -> None:
        """Create the volumes of a RAID configuration."""
        self._configure(task, raid_config["logical_disks"], "/args/raid_config/logical_disks", delete_existing,
                        create_root_volume, create_nonroot_volumes)

    @deploy_step(priority=0, rerunnable=True)
    def delete_configuration(self, task: Task) -> None:
        """Delete every volume of the node."""
        self.delete_volumes(task)
        task.node.raid_config = {}

    def _configure(self, task: Task, disks: Any, where: str, delete: bool, root: bool, others: bool) -> None:
        wanted = [disk for disk in disks if (root if disk.get("is_root_volume") else others)]
        if not wanted:
            raise InvalidParameterValue(f"{where}: no volume is left to create")
        present: list[Any] = []
        if delete:
            self.delete_volumes(task)
            task.node.raid_config = {}
        else:
            present = task.node.raid_config.get("logical_disks") or []
        self.create_volumes(task, wanted)
        task.node.raid_config = {"logical_disks": [*present, *wanted]}


def checked(disks: Any, where: str) -> list[dict[str, Any]]:
    """Return ``disks`` if they are valid logical disks.

    :raises InvalidParameterValue: they are not; the text has the location below ``where``
    """
    if wrong := arguments.problems(_LOGICAL_DISKS, disks):
        raise InvalidParameterValue("; ".join(f"{where}{pointer.format(place)}: {text}" for place, text in wrong))
    found: list[dict[str, Any]] = disks
    return found
