"""``no-rescue``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, RescueInterface
from ironic_rules.models.task import Task


class NoRescue(Absent, RescueInterface):
    """There is no rescue system."""

    def rescue(self, task: Task) -> None:
        raise self.refuse(task)

    def unrescue(self, task: Task) -> None:
        raise self.refuse(task)
