"""A deadline for a whole HTTP request of httpx, which limits the time of each read, but not of all of them together.

So a server that sends one byte per second, of its headers as well, would hold the thread for hours.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from ironic_rules.models.documents import JSONObject


class RequestDeadline:
    """Ends the requests in a ``with`` block after a time, by shutting down their connection.

    What the request then raises is an ``httpx.HTTPError``; :attr:`is_over` tells why.

    :param seconds: for everything in the block
    """

    def __init__(self, seconds: float) -> None:
        self._guard = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(max(seconds, 0.0), self._end)
        self._timer.daemon = True
        self._until = time.monotonic() + seconds
        self._has_ended = False

    def __enter__(self) -> RequestDeadline:
        self._timer.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._timer.cancel()

    @property
    def is_over(self) -> bool:
        """Whether the time is over, even if a time-out of the request itself was faster than the timer."""
        return self._has_ended or time.monotonic() >= self._until

    @property
    def extensions(self) -> JSONObject:
        """What each request is sent with."""
        return {"trace": self._trace}

    def _trace(self, event: str, found: JSONObject) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._guard:
                self._socket = found["return_value"].get_extra_info("socket")
                if self._has_ended:
                    self._shut()

    def _end(self) -> None:
        with self._guard:
            self._has_ended = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            # Not the method of an SSLSocket, which would change what the reading thread uses.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
