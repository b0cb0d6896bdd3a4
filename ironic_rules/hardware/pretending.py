"""What the ``fake`` interfaces can be asked for, to try deploy templates out without machines."""

from __future__ import annotations

import time
from typing import Any

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.hardware.base import Interface
from ironic_rules.models import states
from ironic_rules.models.task import Task
from ironic_rules.steps import arguments
from ironic_rules.steps.declaration import deploy_step
from ironic_rules.text import printable

MAX_SECONDS = 3600
_SECONDS = {"description": f"a number from 0 to {MAX_SECONDS}", "type": "number", "minimum": 0, "maximum": MAX_SECONDS}


class Pretends(Interface):
    """Mix-in: a step that takes a while, fails, or ends only when the machine says so."""

    @deploy_step(priority=0, argsinfo={
        "seconds": {"description": f"How long it takes, 0 to {MAX_SECONDS}. Default: 0.", "schema": _SECONDS},
        "error": {"description": "Fail with this text, after that time."},
        "asynchronous": {"description": "End when the ramdisk calls back, and not by itself. Default: false.",
                         "schema": arguments.BOOLEAN},
    }, rerunnable=True)
    def pretend(self, task: Task, seconds: float = 0, error: Any = None,
                asynchronous: bool = False) -> str | None:
        """Do nothing, as long and with the end that the arguments say."""
        time.sleep(seconds)
        if error is not None:
            raise IronicRulesError(f"{self.kind}.pretend fails as it was told to: {printable(error)}")
        return states.DEPLOYWAIT if asynchronous else None
