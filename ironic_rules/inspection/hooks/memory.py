"""``memory``: store the amount of memory in a property of the node."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.task import Task


class MemoryHook(InspectionHook):
    """Sets ``properties/memory_mb``, an integer, from ``inventory.memory.physical_mb`` (MiB).

    0 and null, which a ramdisk sends if it could not determine the amount, leave the property unchanged and cause a
    warning. An inventory without the field, or with a value that is not a number, fails the inspection.
    """

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        memory = inventory.get("memory")
        if not isinstance(memory, dict):
            raise InvalidInventory(node=task.node.uuid, where="/memory is missing")
        if "physical_mb" not in memory:
            raise InvalidInventory(node=task.node.uuid, where="/memory/physical_mb is missing")
        size_mb = memory["physical_mb"]
        if size_mb is None or (size_mb == 0 and size_mb is not False):
            warn(task, "memory_mb is not set: the ramdisk could not determine the amount of memory")
        elif isinstance(size_mb, bool) or not isinstance(size_mb, int) or size_mb < 0:
            raise InvalidInventory(node=task.node.uuid, where="/memory/physical_mb is not a whole number of MiB")
        else:
            task.node.properties["memory_mb"] = size_mb
