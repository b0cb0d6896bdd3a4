"""``fake`` firmware: always valid."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import FirmwareInterface
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.hardware.steps import deploy_step
from ironic_rules.models.task import Task


class FakeFirmware(Pretends, FirmwareInterface):
    """Firmware that is always as it was told to be."""

    @deploy_step(priority=0, argsinfo={
        "settings": {"description": "What to update, a list of objects with component and url.", "required": True},
    }, rerunnable=True)
    def update(self, task: Task, settings: Any) -> None:
        """Update firmware components."""
        if not isinstance(settings, list) or not settings:
            raise InvalidParameterValue("/args/settings: must be a list of one or more objects")
        for index, setting in enumerate(settings):
            if not isinstance(setting, dict) or not {"component", "url"} <= set(setting):
                raise InvalidParameterValue(f"/args/settings/{index}: must be an object with component and url")
