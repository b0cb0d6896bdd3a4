"""An in-memory broker for the one-process service that sleeps while nothing happens.

kombu's own memory transport polls; oslo.messaging sets its polling interval to zero, so that every waiting consumer
takes a whole core. This one is the same transport, but a consumer without messages waits for the next ``put``.
"""

from __future__ import annotations

import threading
import time
from queue import Empty
from typing import Any

import kombu.transport
from kombu.transport import memory

_arrival = threading.Condition()
_arrived = 0


def _announce() -> None:
    global _arrived
    with _arrival:
        _arrived += 1
        _arrival.notify_all()


class Channel(memory.Channel):  # type: ignore[misc]
    """kombu's memory channel that tells waiting consumers about each message."""

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        super()._put(queue, message, **kwargs)
        _announce()

    def _put_fanout(self, exchange: str, message: Any, routing_key: str | None = None, **kwargs: Any) -> None:
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        _announce()


class Transport(memory.Transport):  # type: ignore[misc]
    """kombu's memory transport without polling."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **kwargs: Any) -> None:
        """Deliver one message, waiting for it.

        :param timeout: seconds; None waits for ever
        :raises TimeoutError: no message came in time (``socket.timeout``, which kombu's callers expect)
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            seen = _arrived
            try:
                self.cycle.get(self._deliver, timeout=timeout)  # type: ignore[union-attr]
                return
            except Empty:
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    raise TimeoutError from None
                with _arrival:
                    if _arrived == seen:
                        _arrival.wait(remaining)


def install() -> None:
    """Make ``kombu+memory://`` mean this transport in this process."""
    kombu.transport.TRANSPORT_ALIASES["memory"] = f"{__name__}:Transport"
