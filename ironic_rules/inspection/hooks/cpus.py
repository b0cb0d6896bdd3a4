"""``cpus``: store the number of logical processors in a property of the node."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidInventory
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.task import Task


class CPUsHook(InspectionHook):
    """Sets ``properties/cpus``, an integer, from ``inventory.cpu.count``.

    For rules and scripts that come from ironic-inspector; not enabled by default, because Nova no longer reads the
    property. 0, null and a missing number leave the property unchanged and cause a warning. A value that is not a
    number fails the inspection.
    """

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        cpu = inventory.get("cpu")
        count = cpu.get("count") if isinstance(cpu, dict) else None
        if count is None or (count == 0 and count is not False):
            warn(task, "cpus is not set: the number of processors is unknown")
        elif isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidInventory(node=task.node.uuid, where="/cpu/count is not a whole number")
        else:
            task.node.properties["cpus"] = count
