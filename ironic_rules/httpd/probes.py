"""The order of complete requests that wait for a thread: sources and their connections take turns; probes go first.

Probes are health checks and version documents. They have threads of their own, so that they are answered even if all
others wait.
"""

from __future__ import annotations

import collections
import logging
import queue
import re
import threading
from typing import Any

from ironic_rules.httpd.request import Head

LOG = logging.getLogger(__name__)


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

    def _put(self, item: Any) -> None:
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


#: Threads for probes. Others check the database and the broker; a health check waits for these only while nothing
#: is known.
_THREADS = 2
_PROBE = re.compile(rb"(?:GET|HEAD) /(?:v1/?|healthcheck/?|healthcheck/live/?)?(?:\?[^ ]*)? ")


def is_probe(head: Head) -> bool:
    """Return whether these threads serve the request."""
    return head.length == 0 and _PROBE.match(head.line) is not None


class Probes:
    """The threads, which serve connections as cheroot's do. They start with the first request.

    :param server: cheroot's server
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self.turns = Turns()
        self._started = False

    def put(self, connection: Any) -> None:
        """Serve the request of a connection. Called by one thread only."""
        if not self._started:
            self._started = True
            for _ in range(_THREADS):
                threading.Thread(target=self._serve, name="probe", daemon=True).start()
        self.turns.put(connection)

    @property
    def is_waiting(self) -> bool:
        """True if a connection waits for one of the threads."""
        return not self.turns.empty()

    def stop(self) -> None:
        """End the threads when they have served what waits."""
        for _ in range(_THREADS if self._started else 0):
            self.turns.put(None)

    def _serve(self) -> None:
        while (connection := self.turns.get()) is not None:
            is_kept = False
            try:
                is_kept = connection.communicate()
            except Exception:  # of one connection; cheroot replies to errors of the application itself
                LOG.exception("A connection of %s is closed for an unexpected error.", connection.remote_addr)
            finally:
                if is_kept:
                    self._server.put_conn(connection)
                else:
                    connection.close()
