"""Waiting for a machine to reach a power state."""

from __future__ import annotations

import time
from collections.abc import Callable

from ironic_rules.exceptions import BMCError
from ironic_rules.models.task import Task

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 3.0


def wait_for(task: Task, read: Callable[[], str], target: str, timeout_s: float,
             sleep: Callable[[float], object] = time.sleep) -> None:
    """Return when ``read()`` gives ``target``. It is asked soon at first, then every three seconds.

    :raises BMCError: it did not within ``timeout_s`` seconds
    """
    deadline = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    while (state := read()) != target:
        left = deadline - time.monotonic()
        if left <= 0:
            raise BMCError(node=task.node.uuid, reason=f"it was told to bring the machine to '{target}', and after "
                                                       f"{timeout_s} seconds the machine is still at '{state}'.")
        sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
