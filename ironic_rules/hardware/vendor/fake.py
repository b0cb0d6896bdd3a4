"""``fake`` vendor: always valid."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import VendorInterface
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.hardware.steps import deploy_step
from ironic_rules.models.task import Task


class FakeVendor(Pretends, VendorInterface):
    """A vendor whose BMC takes every command."""

    @deploy_step(priority=0, argsinfo={
        "raw_bytes": {"description": "The bytes of the command, such as '0x00 0x08'.", "required": True},
    })
    def send_raw(self, task: Task, raw_bytes: Any) -> None:
        """Send the BMC a raw command."""
        if not isinstance(raw_bytes, str):
            raise InvalidParameterValue("/args/raw_bytes: must be a text")
