"""Whether a conductor reaches its database, as far as its heartbeats know.

A conductor that has lost its database still takes its share of the messages of its group. It refuses them at once, so
that the API can send them to another conductor, instead of letting each wait until a statement times out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

#: Seconds that a heartbeat may take before the database counts as lost.
_SLOW_S = 2.0


class DatabaseContact:
    """What the last heartbeat, or the one in progress, says about the database."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._begun: float | None = None
        self._failed = False

    @contextlib.contextmanager
    def attempt(self) -> Iterator[None]:
        """Note that a heartbeat is written in the block, and whether that succeeds."""
        with self._guard:
            self._begun = self._clock()
        failed = True
        try:
            yield
            failed = False
        finally:
            with self._guard:
                self._begun, self._failed = None, failed

    @property
    def is_lost(self) -> bool:
        """Whether the last heartbeat has failed, or the present one takes too long."""
        with self._guard:
            return self._failed or (self._begun is not None and self._clock() - self._begun > _SLOW_S)
