"""``fake`` BIOS: remembers settings."""

from __future__ import annotations

from typing import Any

from ironic_rules.hardware.bios.steps import BIOSSteps
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.models.task import Task

_KEY = "fake_bios_settings"


class FakeBIOS(Pretends, BIOSSteps):
    """Keeps settings in ``driver_internal_info``; those of the factory are none."""

    def write_settings(self, task: Task, settings: dict[str, Any]) -> None:
        kept = task.node.driver_internal_info.get(_KEY) or {}
        task.node.driver_internal_info[_KEY] = {**kept, **settings}

    def reset_settings(self, task: Task) -> None:
        task.node.driver_internal_info.pop(_KEY, None)
