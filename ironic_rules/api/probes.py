"""Threads for requests that must be answered even if all others wait: health checks and version documents."""

from __future__ import annotations

import logging
import re
import threading
from typing import Any

from ironic_rules.api.request_head import Head
from ironic_rules.api.turns import Turns

LOG = logging.getLogger(__name__)

#: What a health check says of the database and the broker, other threads find out. It waits for them only while nothing
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
        """Whether a connection waits for one of the threads."""
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
