"""``fake`` firmware: always valid."""

from __future__ import annotations

from typing import Any

from ironic_rules.hardware.base import FirmwareInterface
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.models.task import Task
from ironic_rules.steps import arguments
from ironic_rules.steps.declaration import deploy_step

_SETTINGS = {
    "description": "a list of one or more objects", "type": "array", "minItems": 1,
    "items": {"description": "an object with component and url", "type": "object", "required": ["component", "url"],
              "properties": {"component": arguments.TEXT, "url": arguments.TEXT}},
}


class FakeFirmware(Pretends, FirmwareInterface):
    """Firmware that is always as it was told to be."""

    @deploy_step(priority=0, argsinfo={
        "settings": {"description": "What to update, a list of objects with component and url.", "required": True,
                     "schema": _SETTINGS},
    }, rerunnable=True)
    def update(self, task: Task, settings: list[dict[str, Any]]) -> None:
        """Update firmware components."""
