"""Time limits of work on a machine: one for all requests to its BMC together, and the wait for its power state.

A limit holds in the thread that has set it. Interfaces read it: each request has its own time-out as well. httpx limits
the time of each read, but not of all of them together: a server that sends one byte per second would hold the thread
for hours. Steps do not wait in this way: see ``Interface.wait_for``.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from ironic_rules.exceptions import BMCError, IronicRulesError
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit what is in the block. In a block with another limit, the earlier one holds."""
    token = _UNTIL.set(min(_UNTIL.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def left_s() -> float:
    """Return the seconds that are left, not more than 0 if none are; infinity without a limit."""
    return _UNTIL.get() - time.monotonic()


class RequestDeadline:
    """Ends the requests in a ``with`` block after a time, by shutting down their connection.

    The interrupted request raises an ``httpx.HTTPError``; :attr:`is_over` tells why.

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
        """True if the time is over, even if a time-out of the request itself was faster than the timer."""
        return self._has_ended or time.monotonic() >= self._until

    @property
    def extensions(self) -> JSONObject:
        """The extensions that each request is sent with."""
        return {"trace": self._trace}

    def _trace(self, event: str, info: JSONObject) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._guard:
                self._socket = info["return_value"].get_extra_info("socket")
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


_FIRST_PAUSE_S = 0.25
#: A change of the power state takes seconds, not minutes.
_LONGEST_POWER_PAUSE_S = 3.0
#: Seconds after which a change that was accepted without effect is requested once more.
_AGAIN_S = 20.0

Sleep = Callable[[float], object]


def wait_for_power(task: Task, read: Callable[[], str], target: str, timeout_s: float,
                   sleep: Sleep = time.sleep, again: Callable[[], object] | None = None) -> None:
    """Return when ``read()`` returns the power state ``target``. It is called often at first, then every three seconds.

    :param again: requests the change once more, after ``_AGAIN_S`` seconds
    :raises BMCError: it did not within ``timeout_s`` seconds
    """
    state, began = "", time.monotonic()
    for _ in _tries(timeout_s, sleep):
        state = read()
        if state == target:
            return
        if again is not None and time.monotonic() - began >= _AGAIN_S:
            again()
            again = None
    raise BMCError(node=task.node.uuid, reason=f"it was requested to switch the machine to '{target}', and after "
                                               f"{timeout_s} seconds the machine is still at '{state}'.")


def _tries(timeout_s: float, sleep: Sleep) -> Iterator[None]:
    """Yield once for each attempt, and pause in between; end at the timeout."""
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_PAUSE_S
    while True:
        yield
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return
        sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 1.5, _LONGEST_POWER_PAUSE_S)


@contextlib.contextmanager
def noting_failures(operation: str, failures: list[str]) -> Iterator[None]:
    """Add an error to ``failures`` instead of raising it, so that the next operations are still done."""
    try:
        yield
    except IronicRulesError as exc:
        failures.append(f"{operation}: {exc}")
