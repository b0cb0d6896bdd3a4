"""Why nodes failed, for a page that asks every few seconds in many windows."""

from __future__ import annotations

import threading
import time

import sqlalchemy as sa

from ironic_rules.db import node_queries
from ironic_rules.models.nodes import Failure

#: What took less seconds is not remembered.
_CHEAP_S = 0.05
#: A result is used for this many times as long as it took, so that a process spends a tenth of its time at most.
_SHARE = 9


class NodeFailures:
    """The groups of failed nodes; those of a large fleet are remembered for a while. One per process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: list[Failure] = []
        self._good_until = 0.0

    def groups(self, conn: sa.Connection) -> list[Failure]:
        """Return the groups, the largest first."""
        with self._lock:
            began = time.monotonic()
            if began >= self._good_until:
                self._found = node_queries.failure_groups(conn)
                took = time.monotonic() - began
                self._good_until = began + took + (_SHARE * took if took > _CHEAP_S else 0)
            return self._found

    def find(self, conn: sa.Connection, ident: str) -> Failure | None:
        """Return a group; None: there is none, or it has no node any more."""
        return next((group for group in self.groups(conn) if group.ident == ident), None)
