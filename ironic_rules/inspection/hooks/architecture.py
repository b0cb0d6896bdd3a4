"""``architecture``: store the processor architecture in a property of the node."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.task import Task


class ArchitectureHook(InspectionHook):
    """Sets ``properties/cpu_arch`` from ``inventory.cpu.architecture``, e.g. ``x86_64``.

    Null, which an out-of-band inspection writes if the BMC does not report the architecture, leaves the property
    unchanged and causes a warning. A report without the field fails the inspection.
    """

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        cpu = inventory.get("cpu")
        if not isinstance(cpu, dict):
            raise InvalidInventory(node=task.node.uuid, where="/cpu is missing")
        if "architecture" in cpu and cpu["architecture"] is None:
            warn(task, "cpu_arch is not set: /cpu/architecture is unknown")
            return
        architecture = cpu.get("architecture")
        if not isinstance(architecture, str) or not architecture:
            raise InvalidInventory(node=task.node.uuid, where="/cpu/architecture is missing")
        task.node.properties["cpu_arch"] = architecture
