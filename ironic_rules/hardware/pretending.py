"""What the ``fake`` interfaces can be asked for, to try deploy templates out without machines."""

from __future__ import annotations

import time
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.base import Interface
from ironic_rules.hardware.steps import deploy_step
from ironic_rules.models import states
from ironic_rules.models.task import Task
from ironic_rules.rules.base import printable

MAX_SECONDS = 3600


class Pretends(Interface):
    """Mix-in: a step that takes a while, fails, or ends only when the machine says so."""

    @deploy_step(priority=0, argsinfo={
        "seconds": {"description": f"How long it takes, 0 to {MAX_SECONDS}. Default: 0."},
        "error": {"description": "Fail with this text, after that time."},
        "asynchronous": {"description": "End when the ramdisk calls back, and not by itself. Default: false."},
    }, rerunnable=True)
    def pretend(self, task: Task, seconds: Any = 0, error: Any = None, asynchronous: Any = False) -> str | None:
        """Do nothing, as long and with the end that the arguments say."""
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds <= MAX_SECONDS:
            raise InvalidParameterValue(f"/args/seconds: must be a number from 0 to {MAX_SECONDS}")
        if not isinstance(asynchronous, bool):
            raise InvalidParameterValue("/args/asynchronous: must be true or false")
        time.sleep(seconds)
        if error is not None:
            raise IronicRulesError(f"{self.kind}.pretend fails as it was told to: {printable(str(error))}")
        return states.DEPLOYWAIT if asynchronous else None
