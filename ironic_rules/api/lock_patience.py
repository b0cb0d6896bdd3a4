"""Requests wait a moment for a node that is locked, as in Ironic: most locks are held for less than a second.

Clients see the new power state of a node, for example, and send the next request while the lock is being released. A
request that ended with the error :class:`~ironic_rules.exceptions.NodeLocked` has done nothing, so it is begun again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ironic_rules.exceptions import NodeLocked

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_GROWTH = 1.5
_LONGEST_PAUSE_S = 0.5


class LockPatience:
    """Repeats requests until the node is free, for at most ``patience_s`` seconds; 0: they fail at once.

    At most ``at_once`` of them wait at the same time: a node whose BMC does not answer stays locked, and must not take
    the threads of other requests. Those beyond it fail at once.
    """

    def __init__(self, patience_s: float, at_once: int, sleep: Callable[[float], None] = time.sleep,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._room = threading.Semaphore(at_once)
        self._sleep = sleep
        self._clock = clock

    def call(self, method: Callable[[], T]) -> T:
        """Return what ``method`` returns, which is called again while it raises ``NodeLocked``.

        :raises NodeLocked: the node is still locked
        """
        try:
            return method()
        except NodeLocked:
            if not self._patience_s or not self._room.acquire(blocking=False):
                raise
        try:
            return self._repeat(method)
        finally:
            self._room.release()

    def _repeat(self, method: Callable[[], T]) -> T:
        until, pause_s = self._clock() + self._patience_s, _FIRST_PAUSE_S
        while True:
            self._sleep(pause_s)
            try:
                return method()
            except NodeLocked:
                if self._clock() >= until:
                    raise
            pause_s = min(pause_s * _GROWTH, _LONGEST_PAUSE_S)
