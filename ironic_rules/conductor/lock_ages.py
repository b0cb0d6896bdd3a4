"""How old the locks of nodes are, for the metrics: a lock that grows old is one that no conductor releases.

The database does not store when a lock was taken. What looks at all locks regularly, recovery, tells which there are,
so that ages are exact to ``[conductor]recovery_interval``, and count from the start of this process at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ironic_rules.db.nodes import Lock

#: Seconds.
BOUNDS = (0, 60, 600, 3600)


class LockAges:
    """Since when each lock is known."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Lock, float] = {}

    def note(self, locks: Iterable[Lock]) -> None:
        """Note all locks that there are now."""
        now, before = self._clock(), self._since
        self._since = {lock: before.get(lock, now) for lock in locks}

    def older_than(self) -> dict[tuple[str, ...], float]:
        """Return how many locks are at least as old as each of the bounds."""
        now = self._clock()
        ages = [now - since for since in self._since.values()]
        return {(str(bound),): sum(age >= bound for age in ages) for bound in BOUNDS}
