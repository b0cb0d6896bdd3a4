"""The steps of RAID and BIOS interfaces: requests are checked here; interfaces create volumes and write settings."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import BIOSInterface, RAIDInterface
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import RAID_DELETES
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration
from ironic_rules.steps.declaration import requested_step

LEVELS = ("JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0")
MAX_SIZE = "MAX"
_STEPS = frozenset({"create_configuration", "apply_configuration", "delete_configuration"})
_DISK = {
    "description": "an object with size_gb and raid_level", "type": "object",
    "required": ["size_gb", "raid_level"], "additionalProperties": False,
    "properties": {
        "size_gb": {"description": "a number above 0, or MAX",
                    "anyOf": [{"const": MAX_SIZE}, {"type": "integer", "minimum": 1}]},
        "raid_level": declaration.one_of(LEVELS),
        "is_root_volume": declaration.BOOLEAN_ARGUMENT,
        "volume_name": declaration.TEXT_ARGUMENT,
        "controller": declaration.TEXT_ARGUMENT,
        "physical_disks": {"description": "a list of names of drives", "type": "array", "minItems": 1,
                           "uniqueItems": True, "items": declaration.TEXT_ARGUMENT},
        "disk_type": declaration.one_of(("hdd", "ssd")),
        "interface_type": declaration.one_of(("nvme", "sas", "sata", "scsi")),
        "number_of_physical_disks": {"description": "a number above 0", "type": "integer", "minimum": 1},
        "share_physical_disks": {
            "description": "false, because volumes that share drives are not supported", "const": False},
    },
}
_LOGICAL_DISKS = {
    "description": "a list of one or more objects, of which only one volume can be the root volume", "type": "array",
    "minItems": 1, "items": _DISK, "minContains": 0, "maxContains": 1,
    "contains": {"type": "object", "required": ["is_root_volume"], "properties": {"is_root_volume": {"const": True}}},
}
#: The properties of ``_DISK`` for clients.
_DESCRIPTIONS = {
    "size_gb": "Size of the volume in GiB, a whole number above 0, or MAX: all that is left. Required.",
    "raid_level": f"RAID level, one of {', '.join(LEVELS)}. Required.",
    "is_root_volume": "Whether it is the volume of the instance's system; at most one volume is. Default: false.",
    "volume_name": "Name of the volume. Default: the controller chooses one.",
    "controller": "Name of the controller. Default: any one with enough drives.",
    "physical_disks": "Names of the drives. Default: any that fit.",
    "disk_type": "Type of the drives, hdd or ssd. Default: any.",
    "interface_type": "Interface of the drives: nvme, sas, sata or scsi. Default: any.",
    "number_of_physical_disks": "Number of drives. Default: as few as the RAID level needs.",
    "share_physical_disks": "Only false, the default: volumes that share drives are not supported.",
}
_DISKS = {"description": "The volumes to create, each an object with size_gb (a number, or MAX), raid_level and "
                         "optionally is_root_volume, volume_name, controller and physical_disks. Default: those of "
                         "target_raid_config of the node.", "schema": {**_LOGICAL_DISKS, "type": ["array", "null"]}}
_ROOT = {"description": "Whether to create the volume that has is_root_volume. Default: true.",
         "schema": declaration.BOOLEAN_ARGUMENT}
_NONROOT = {"description": "Whether to create the other volumes. Default: true.",
            "schema": declaration.BOOLEAN_ARGUMENT}
_DELETE = {"description": "Delete the existing volumes first. Default: false.", "schema": declaration.BOOLEAN_ARGUMENT}


class RAIDSteps(RAIDInterface, abc.ABC):
    """Mix-in of the interfaces that can create volumes.

    A step deletes volumes, creates volumes, or does one after the other; each of them may have to be waited for.
    """

    @abc.abstractmethod
    def create_volumes(self, task: Task, disks: list[JSONObject]) -> str | None:
        """Create the volumes, valid logical disks, or begin to; existing volumes are kept. Returns as a step does."""

    @abc.abstractmethod
    def delete_volumes(self, task: Task) -> str | None:
        """Delete every volume, or begin to. Returns as a step does. It is not an error if there is none."""

    def set_target_raid_config(self, task: Task, config: JSONObject) -> None:
        if config:
            if unknown := sorted(config.keys() - {"logical_disks"}):
                raise InvalidParameterValue("; ".join(
                    f"{documents.format_pointer((name,))}: unknown; a RAID configuration has logical_disks"
                    for name in unknown))
            checked_disks(config.get("logical_disks"), "/logical_disks")
        task.node.target_raid_config = config

    def logical_disk_properties(self) -> dict[str, str]:
        return dict(_DESCRIPTIONS)

    @requested_step({
        "logical_disks": _DISKS, "delete_configuration": _DELETE,
        "delete_existing": {"description": "The same as delete_configuration.", "schema": declaration.BOOLEAN_ARGUMENT},
        "create_root_volume": _ROOT, "create_nonroot_volumes": _NONROOT,
    }, abortable=True)
    def create_configuration(self, task: Task, logical_disks: object = None, delete_configuration: bool = False,
                             delete_existing: bool = False, create_root_volume: bool = True,
                             create_nonroot_volumes: bool = True) -> str | None:
        """Create volumes on the node's disks."""
        requested = _wanted(task, {"logical_disks": logical_disks, "create_root_volume": create_root_volume,
                                   "create_nonroot_volumes": create_nonroot_volumes})
        return self._configure(task, requested, delete_configuration or delete_existing)

    @requested_step({
        "raid_config": {"description": "An object with logical_disks, as in create_configuration.", "required": True,
                        "schema": {"description": "an object", "type": "object", "required": ["logical_disks"],
                                   "properties": {"logical_disks": _LOGICAL_DISKS}}},
        "delete_existing": _DELETE, "create_root_volume": _ROOT, "create_nonroot_volumes": _NONROOT,
    }, abortable=True)
    def apply_configuration(self, task: Task, raid_config: object, delete_existing: bool = False,
                            create_root_volume: bool = True, create_nonroot_volumes: bool = True) -> str | None:
        """Create the volumes of a RAID configuration."""
        requested = _wanted(task, {"raid_config": raid_config, "create_root_volume": create_root_volume,
                                   "create_nonroot_volumes": create_nonroot_volumes})
        return self._configure(task, requested, delete_existing)

    @requested_step(rerunnable=True, abortable=True)
    def delete_configuration(self, task: Task) -> str | None:
        """Delete every volume of the node."""
        return self._delete(task)

    def continue_step(self, task: Task, step: str, args: Mapping[str, Any]) -> str | None:
        deletes = task.node.driver_internal_info.get(RAID_DELETES)
        waits = super().continue_step(task, step, args)
        if waits is not None or step not in _STEPS:
            return waits
        if deletes:
            self._note_deletion(task)
            return None if step == "delete_configuration" else self._create(task, _wanted(task, args))
        self._note_creation(task, _wanted(task, args))
        return None

    def _configure(self, task: Task, requested: list[JSONObject], delete: bool) -> str | None:
        if delete and (waits := self._delete(task)) is not None:
            return waits
        return self._create(task, requested)

    def _delete(self, task: Task) -> str | None:
        waits = self.delete_volumes(task)
        if waits is None:
            self._note_deletion(task)
        else:
            task.node.driver_internal_info[RAID_DELETES] = True
        return waits

    def _create(self, task: Task, requested: list[JSONObject]) -> str | None:
        # A step that was aborted may have left it.
        task.node.driver_internal_info.pop(RAID_DELETES, None)
        waits = self.create_volumes(task, requested)
        if waits is None:
            self._note_creation(task, requested)
        return waits

    def _note_deletion(self, task: Task) -> None:
        task.node.driver_internal_info.pop(RAID_DELETES, None)
        task.node.raid_config = {}

    def _note_creation(self, task: Task, created: list[JSONObject]) -> None:
        present = task.node.raid_config.get("logical_disks") or []
        task.node.raid_config = {"logical_disks": [*present, *created]}


def _wanted(task: Task, args: Mapping[str, Any]) -> list[JSONObject]:
    """Return the logical disks that a step with these arguments creates.

    :raises InvalidParameterValue: there are none
    """
    where = "/args/logical_disks"
    if "raid_config" in args:
        where, disks = "/args/raid_config/logical_disks", args["raid_config"]["logical_disks"]
    elif (disks := args.get("logical_disks")) is None:
        disks = checked_disks(task.node.target_raid_config.get("logical_disks"), where)
    root, others = args.get("create_root_volume", True), args.get("create_nonroot_volumes", True)
    requested = [disk for disk in disks if (root if disk.get("is_root_volume") else others)]
    if not requested:
        raise InvalidParameterValue(f"{where}: no volume is left to create")
    return requested


def checked_disks(disks: Any, where: str) -> list[JSONObject]:
    """Return ``disks`` if they are valid logical disks.

    :raises InvalidParameterValue: they are not; the text has the location below ``where``
    """
    if wrong := declaration.argument_problems(_LOGICAL_DISKS, disks):
        raise InvalidParameterValue("; ".join(f"{where}{documents.format_pointer(place)}: {text}" for place,
                                              text in wrong))
    valid: list[JSONObject] = disks
    return valid


_SETTINGS = {
    "description": "a list of one or more objects", "type": "array", "minItems": 1,
    "items": {
        "description": "an object with name and value", "type": "object",
        "required": ["name", "value"], "additionalProperties": False,
        "properties": {
            "name": {"description": "a text that no other setting has", "type": "string", "minLength": 1},
            "value": {"description": "a text, a number, true, false or null",
                      "type": ["string", "number", "boolean", "null"]},
        },
    },
}


class BIOSSteps(BIOSInterface, abc.ABC):
    """Mix-in of the interfaces that can write BIOS settings."""

    @abc.abstractmethod
    def write_settings(self, task: Task, settings: JSONObject) -> str | None:
        """Set the settings to these values, or begin to; return as a step does. Safe to repeat."""

    @abc.abstractmethod
    def reset_settings(self, task: Task) -> str | None:
        """Reset all settings to factory defaults, or begin to; return as a step does. Safe to repeat."""

    @requested_step({
        "settings": {"description": "The settings, a list of objects with name and value.", "required": True,
                     "schema": _SETTINGS},
    }, rerunnable=True, abortable=True)
    def apply_configuration(self, task: Task, settings: Any) -> str | None:
        """Write BIOS settings."""
        return self.write_settings(task, checked_settings(settings))

    @requested_step(rerunnable=True, abortable=True)
    def factory_reset(self, task: Task) -> str | None:
        """Reset all BIOS settings to factory defaults."""
        return self.reset_settings(task)


def checked_settings(settings: list[JSONObject]) -> JSONObject:
    """Return settings that are valid against the step's schema as names and values.

    :raises InvalidParameterValue: one occurs twice; the text has its location
    """
    values: JSONObject = {}
    for index, setting in enumerate(settings):
        if setting["name"] in values:
            raise InvalidParameterValue(f"/args/settings/{index}/name: must be a text that no other setting has")
        values[setting["name"]] = setting["value"]
    return values
