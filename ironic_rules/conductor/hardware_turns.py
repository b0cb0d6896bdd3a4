"""Turns to wait for BMCs in threads of RPC calls: a part of these threads, and for one node a part of the turns.

So calls that need no BMC find a thread, and those about other nodes a turn.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from ironic_rules.exceptions import TooManyCalls
from ironic_rules.models.nodes import Node


class HardwareTurns:
    """``most`` turns, half of them for each node."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._taken: Counter[int] = Counter()

    @contextlib.contextmanager
    def turn(self, node: Node) -> Iterator[None]:
        """Occupy a turn.

        :raises TooManyCalls: 503, none is free
        """
        with self._guard:
            if self._taken.total() >= self._most or self._taken[node.id] >= max(1, self._most // 2):
                raise TooManyCalls(node=node.uuid)
            self._taken[node.id] += 1
        try:
            yield
        finally:
            with self._guard:
                self._taken[node.id] -= 1
                if not self._taken[node.id]:
                    del self._taken[node.id]
