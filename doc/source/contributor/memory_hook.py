"""``memory``: how much memory the machine has."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.models.task import Task


class MemoryHook(InspectionHook):
    """Sets ``properties/memory_mb`` from ``inventory.memory.physical_mb`` (MiB)."""

    dependencies = ["ramdisk-error"]

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        memory = inventory.get("memory") or {}
        if not isinstance(memory.get("physical_mb"), int):
            raise InvalidInventory(node=task.node.uuid, where="/memory/physical_mb is missing")
        task.node.properties["memory_mb"] = memory["physical_mb"]
