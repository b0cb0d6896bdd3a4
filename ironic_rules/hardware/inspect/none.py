"""``no-inspect``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, InspectInterface
from ironic_rules.models.task import Task


class NoInspect(Absent, InspectInterface):
    """The node cannot be inspected."""

    def inspect_hardware(self, task: Task) -> str:
        raise self.refuse(task)
