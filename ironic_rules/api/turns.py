"""Complete requests that wait for a thread: source addresses take turns, and so do the connections of each."""

from __future__ import annotations

import collections
import queue
from typing import Any

from ironic_rules.models.json_values import JSON


class Turns(queue.Queue[Any]):
    """A queue of connections, of which each has one request that is complete.

    However many requests an address sends, a request of another address waits for one of them only. Anything else that
    is put into the queue, as what tells a thread to end, comes out when no connection waits.
    """

    def _init(self, maxsize: int) -> None:
        # The address whose turn is next is the first one.
        self._sources: collections.OrderedDict[str, collections.deque[Any]] = collections.OrderedDict()
        self._ends: collections.deque[Any] = collections.deque()
        self._connections = 0

    def _qsize(self) -> int:
        return self._connections + len(self._ends)

    def _put(self, item: JSON) -> None:
        source = getattr(item, "remote_addr", None)
        if source is None:
            self._ends.append(item)
            return
        self._sources.setdefault(source, collections.deque()).append(item)
        self._connections += 1

    def _get(self) -> Any:
        if not self._sources:
            return self._ends.popleft()
        source, waiting = next(iter(self._sources.items()))
        connection = waiting.popleft()
        self._connections -= 1
        if waiting:
            self._sources.move_to_end(source)
        else:
            del self._sources[source]
        return connection

    def withdraw(self, connection: Any) -> bool:
        """Take a connection out of its turn; return whether it was waiting."""
        with self.mutex:
            waiting = self._sources.get(connection.remote_addr)
            if waiting is None or connection not in waiting:
                return False
            waiting.remove(connection)
            self._connections -= 1
            if not waiting:
                del self._sources[connection.remote_addr]
            return True
