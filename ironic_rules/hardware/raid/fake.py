"""``fake`` RAID: ``raid_config`` of the node is the controller."""

from __future__ import annotations

from typing import Any

from ironic_rules.hardware.pretending import Pretends
from ironic_rules.hardware.raid.steps import RAIDSteps
from ironic_rules.models.task import Task


class FakeRAID(Pretends, RAIDSteps):
    """A controller with as many disks as anybody wants."""

    def create_volumes(self, task: Task, disks: list[dict[str, Any]]) -> None:
        pass

    def delete_volumes(self, task: Task) -> None:
        pass
