"""``fake`` vendor: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import VendorInterface
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.models.task import Task
from ironic_rules.steps import arguments
from ironic_rules.steps.declaration import deploy_step


class FakeVendor(Pretends, VendorInterface):
    """A vendor whose BMC takes every command."""

    @deploy_step(priority=0, argsinfo={
        "raw_bytes": {"description": "The bytes of the command, such as '0x00 0x08'.", "required": True,
                      "schema": arguments.TEXT},
    })
    def send_raw(self, task: Task, raw_bytes: str) -> None:
        """Send the BMC a raw command."""
