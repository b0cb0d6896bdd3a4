"""Connections to BMCs that are kept, and the end of their sessions: many BMCs allow few of them at the same time."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

from oslo_log import log

from ironic_rules.hardware import time_limit
from ironic_rules.hardware.redfish.driver_info import RedfishDriverInfo

LOG = log.getLogger(__name__)

#: Seconds after which a connection that is not used is closed: its node may have been deleted.
_IDLE_S = 600.0
#: Seconds in which no login succeeds.
_MOMENT_S = 0.05
#: Maximum number of sessions that are closed at the same time, and of those that wait for it.
_LOGOUTS_AT_ONCE, _MAX_LOGOUTS = 16, 2000


class _Kept:
    """A connection, from the beginning of its login.

    :ivar made: the connection, or why there is none
    :ivar ran_out: whether there is none because the time of the thread that has tried was over
    :ivar users: the number of threads that use it or wait for it
    """

    __slots__ = ("made", "ran_out", "used_at", "users")

    def __init__(self) -> None:
        self.made: futures.Future[Any] = futures.Future()
        self.ran_out = False
        self.users = 0
        self.used_at = time.monotonic()


class Connections:
    """Bounded cache of connections (of sushy); the least recently used ones are closed. Thread-safe.

    One thread logs in to a BMC, and others that need the same connection wait for it. A connection is closed when the
    last thread that uses it has left.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[RedfishDriverInfo, _Kept] = OrderedDict()
        self._logouts = _Logouts()

    @contextlib.contextmanager
    def use(self, wanted: RedfishDriverInfo, log_in: Callable[[], Any], limit: int,
            ends: tuple[type[Exception], ...]) -> Iterator[Any]:
        """Provide the connection, cached as one of at most ``limit``.

        :param log_in: makes it; what it raises is raised here, also for those that have waited for it
        :param ends: what the block raises if the connection must not be used again
        """
        while True:
            kept, is_new = self._take(wanted)
            try:
                if is_new:
                    self._make(wanted, kept, log_in)
                left_s = time_limit.left_s()
                made = kept.made.result(None if math.isinf(left_s) else max(0.0, left_s))
            except BaseException as exc:  # whatever ends the login
                # A thread that waits no longer for a login does not end it.
                self._leave(wanted, kept, limit, kept.made.done() and kept.made.exception() is not None)
                if not is_new and kept.ran_out and isinstance(exc, Exception) and time_limit.left_s() > 0:
                    continue  # the thread that has tried had less time
                raise
            break
        is_over = False
        try:
            yield made
        except ends:
            is_over = True
            raise
        finally:
            self._leave(wanted, kept, limit, is_over)

    def _take(self, wanted: RedfishDriverInfo) -> tuple[_Kept, bool]:
        """Return the connection, and whether the caller has to log in; :meth:`_leave` follows."""
        with self._guard:
            kept = self._kept.get(wanted)
            is_new = kept is None
            if kept is None:
                kept = self._kept[wanted] = _Kept()
            self._kept.move_to_end(wanted)
            kept.users += 1
            return kept, is_new

    def _make(self, wanted: RedfishDriverInfo, kept: _Kept, log_in: Callable[[], Any]) -> None:
        try:
            kept.made.set_result(log_in())
        except BaseException as exc:  # otherwise those who wait for the login would not end
            kept.ran_out = time_limit.left_s() < _MOMENT_S
            kept.made.set_exception(exc)
            raise
        with self._guard:
            # A user has one password.
            former = [one for one in self._kept if (one.address, one.username) == (wanted.address, wanted.username)
                      and one.password != wanted.password]
            closed = [found for found in map(self._kept.pop, former) if not found.users]
        self._close(closed)

    def _leave(self, wanted: RedfishDriverInfo, kept: _Kept, limit: int, is_over: bool) -> None:
        now = time.monotonic()
        closed = []
        with self._guard:
            kept.users -= 1
            kept.used_at = now
            if is_over and self._kept.get(wanted) is kept:
                del self._kept[wanted]
            if self._kept.get(wanted) is not kept and not kept.users:
                closed.append(kept)
            for one, found in list(self._kept.items()) if len(self._kept) > limit else self._oldest():
                if not found.users and (len(self._kept) > limit or found.used_at < now - _IDLE_S):
                    closed.append(self._kept.pop(one))
        self._close(closed)

    def _oldest(self) -> list[tuple[RedfishDriverInfo, _Kept]]:
        found = next(iter(self._kept.items()), None)
        return [] if found is None else [found]

    def _close(self, closed: list[_Kept]) -> None:
        for kept in closed:
            if kept.made.exception() is None:
                self._logouts.add(kept.made.result())

    def close(self, seconds: float) -> None:
        """Close all connections, within a time; those in use when they are left."""
        with self._guard:
            closed = [kept for kept in self._kept.values() if not kept.users]
            self._kept.clear()
        self._close(closed)
        if left := self._logouts.wait(seconds):
            LOG.warning("%d sessions at BMCs were not closed within %s seconds; they end by themselves", left, seconds)

    def __len__(self) -> int:
        with self._guard:
            return len(self._kept)


class _Logouts:
    """Closes sessions in threads of its own, each with one attempt."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._waiting: deque[Any] = deque()
        self._threads = 0

    def add(self, connection: Any) -> None:
        """Close a connection soon, unless too many wait for that: its BMC ends the session some time."""
        with self._state:
            if len(self._waiting) >= _MAX_LOGOUTS:
                return
            self._waiting.append(connection)
            if self._threads >= _LOGOUTS_AT_ONCE:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="redfish-logout", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._state:
                if not self._waiting:
                    self._threads -= 1
                    self._state.notify_all()
                    return
                connection = self._waiting.popleft()
            try:
                connector = connection._conn
                # Not in use any more: what still is (a reader whose time is over) must not log in again.
                auth, connector._auth = connector._auth, None
                connector._session.log_out(auth)
                connector.close()
            except Exception:  # the next ones are closed, too
                LOG.exception("A session at a BMC was not closed; it ends by itself")

    def wait(self, seconds: float) -> int:
        """Wait until all are closed; return the number of those that are not, after some seconds."""
        with self._state:
            self._state.wait_for(lambda: not self._threads, seconds)
            return self._threads + len(self._waiting)
