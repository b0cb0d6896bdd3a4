"""``fake`` rescue: succeeds at once."""

from __future__ import annotations

from ironic_rules.hardware.base import RescueInterface
from ironic_rules.models.task import Task


class FakeRescue(RescueInterface):
    """A rescue system that is always there."""

    def rescue(self, task: Task) -> None:
        pass

    def unrescue(self, task: Task) -> None:
        pass
