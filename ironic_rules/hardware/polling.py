"""Wait until a BMC has switched its machine, by polling. Steps do not wait in this way: see ``Interface.wait_for``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from ironic_rules.exceptions import BMCError
from ironic_rules.models.task import Task

_FIRST_PAUSE_S = 0.25
#: A change of the power state takes seconds, not minutes.
_LONGEST_POWER_PAUSE_S = 3.0

Sleep = Callable[[float], object]


def wait_for_power(task: Task, read: Callable[[], str], target: str, timeout_s: float,
                   sleep: Sleep = time.sleep) -> None:
    """Return when ``read()`` returns the power state ``target``. It is called often at first, then every three seconds.

    :raises BMCError: it did not within ``timeout_s`` seconds
    """
    state = ""
    for _ in _tries(timeout_s, sleep):
        state = read()
        if state == target:
            return
    raise BMCError(node=task.node.uuid, reason=f"it was requested to switch the machine to '{target}', and after "
                                               f"{timeout_s} seconds the machine is still at '{state}'.")


def _tries(timeout_s: float, sleep: Sleep) -> Iterator[None]:
    """Yield once for each attempt, and pause in between; end at the timeout."""
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_PAUSE_S
    while True:
        yield
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return
        sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 1.5, _LONGEST_POWER_PAUSE_S)
