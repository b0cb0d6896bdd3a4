"""What ``/healthcheck`` tells of the database, without waiting for one that does not reply."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from oslo_db import exception as db_exc
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Seconds from the beginning of a reading for which requests wait for it while nothing is known: after an outage the
#: service connects again first. A database that does not reply delays only those that come in its first moment.
PATIENCE_S = 0.5
#: Seconds that it waits if it can have an earlier result, which is late by one request at most: under full load, other
#: threads take most of the 0.1 s that a health check may need.
SHORT_PATIENCE_S = 0.01
#: Seconds for which a result is taken without reading again: several load balancers may ask.
FRESH_S = 0.5
#: Seconds after which an earlier result no longer counts.
STALE_S = 15.0


class DatabaseCounts(NamedTuple):
    """The numbers of live conductors and of invalid rules."""

    conductors: int
    invalid_rules: int


class DatabaseState(NamedTuple):
    """``is_ok`` is None if nothing is known, ``found`` None if the database cannot be reached, or is not known to.

    ``age_s`` is that of the last result, even if it no longer counts.
    """

    is_ok: bool | None
    found: DatabaseCounts | None
    age_s: float | None


class DatabaseCheck:
    """Reads in a thread of its own when the state is requested: a silent database holds that thread and no other.

    The thread waits for the next request, and ends when there is none for a while: to start one takes two turns among
    all threads that want to run, and a health check has not many of them.

    :param read: reads the database; it may hang
    """

    def __init__(self, read: Callable[[], DatabaseCounts]) -> None:
        self._read = read
        self._changed = threading.Condition()
        self._has_thread = False
        self._is_wanted = False
        self._count = 0
        #: since when the result of a reading is waited for
        self._begun: float | None = None
        self._found: DatabaseCounts | None = None
        self._at: float | None = None

    def state(self) -> DatabaseState:
        """Return the state as it is now or, if that takes too long, as it was last."""
        with self._changed:
            age = self._age()
            if age is None or age > FRESH_S:
                self._read_again(is_known=age is not None and age <= STALE_S)
                age = self._age()
            if age is None or age > STALE_S:
                is_silent = self._begun is not None and time.monotonic() - self._begun > STALE_S
                return DatabaseState(False if is_silent else None, None, age)
            return DatabaseState(self._found is not None, self._found, age)

    def _age(self) -> float | None:
        return None if self._at is None else time.monotonic() - self._at

    def _read_again(self, *, is_known: bool) -> None:
        """Let the thread read, and wait for the result; while an earlier reading hangs, that one is waited for."""
        count, now = self._count, time.monotonic()
        self._is_wanted = True
        if self._begun is None:
            self._begun = now
        patience_s = SHORT_PATIENCE_S if is_known else max(0.0, self._begun + PATIENCE_S - now)
        if self._has_thread:
            self._changed.notify_all()
        else:
            self._has_thread = True
            # Servers like gunicorn fork before the first request.
            threading.Thread(target=self._run, name="database-check", daemon=True).start()
        self._changed.wait_for(lambda: self._count > count, patience_s)

    def _run(self) -> None:
        while self._is_wanted_soon():
            found: DatabaseCounts | None = None
            try:
                found = self._read()
            except db_exc.DBError as exc:
                LOG.error("The database cannot be read for a health check: %s", str(exc).partition("\n")[0])
            except Exception:  # the thread must tell that it has ended
                LOG.exception("The database cannot be read for a health check")
            with self._changed:
                self._found, self._at = found, time.monotonic()
                self._begun = self._at if self._is_wanted else None
                self._count += 1
                self._changed.notify_all()

    def _is_wanted_soon(self) -> bool:
        """Wait for the next request; return False, and let the thread end, if there is none."""
        with self._changed:
            self._has_thread = self._changed.wait_for(lambda: self._is_wanted, STALE_S)
            self._is_wanted = False
            return self._has_thread
