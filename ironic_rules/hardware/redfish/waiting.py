"""Waiting until a BMC has done what it was told."""

from __future__ import annotations

import time
from collections.abc import Callable

from ironic_rules.exceptions import BMCError
from ironic_rules.models.task import Task

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 10.0


def wait_until(task: Task, is_done: Callable[[], bool], what: str, timeout_s: float,
               sleep: Callable[[float], object] = time.sleep) -> None:
    """Return when ``is_done()``. It is asked soon at first, then every ten seconds.

    A BMC that does not answer for a while is busy: many are when their machine boots.

    :param what: is waited for, as the error has it
    :raises BMCError: it did not come within ``timeout_s`` seconds; with the BMC's last error, if it had one
    """
    deadline = time.monotonic() + timeout_s
    pause = _FIRST_PAUSE_S
    while True:
        failure: BMCError | None = None
        try:
            if is_done():
                return
        except BMCError as exc:
            failure = exc
        left = deadline - time.monotonic()
        if left <= 0:
            raise failure or BMCError(node=task.node.uuid, reason=f"{what} did not come within {timeout_s} seconds "
                                                                  "([redfish]configuration_timeout).")
        sleep(min(pause, left))
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
