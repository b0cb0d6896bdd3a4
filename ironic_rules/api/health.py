"""``/healthcheck`` and ``/metrics``: the health of this process, its database and its message broker, and its metrics.

A health check never waits for a database or broker that does not reply. It also reports whether a conductor is alive.
Metrics are for Prometheus, and served if ``[api]serve_metrics`` is set.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import orjson
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.api.expose import expose
from ironic_rules.api.request import Request
from ironic_rules.api.routes import Resource
from ironic_rules.exceptions import IronicRulesError, NotFound
from ironic_rules.models.documents import JSONObject
from ironic_rules.policies import base

LOG = logging.getLogger(__name__)

#: Seconds between two checks.
PERIOD_S = 5.0
#: Seconds after which a result no longer counts: the check itself hangs.
STALE_S = 15.0
#: Seconds that the first caller waits for the first result; a health check waits for the database too.
FIRST_S = 0.03


class BrokerState(NamedTuple):
    """The result of the last check; both are None before the first, ``age_s`` is the number of seconds since."""

    is_ok: bool | None
    age_s: float | None


class BrokerCheck:
    """Checks in a thread of its own, from the first question on: servers like gunicorn fork before that."""

    def __init__(self, ping: Callable[[], None]) -> None:
        """Create the check.

        :param ping: raises ``Unavailable`` if the broker cannot be reached; it may hang
        """
        self._ping = ping
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._known = threading.Event()
        self._result = (True, 0.0)
        self._begun = 0.0

    def state(self) -> BrokerState:
        """Return the result of the last check; at most the first caller waits, for less than 0.1 s."""
        with self._lock:
            if self._thread is None:
                self._begun = time.monotonic()
                self._thread = threading.Thread(target=self._run, name="broker-check", daemon=True)
                self._thread.start()
        if not self._known.wait(FIRST_S):
            return BrokerState(None if time.monotonic() - self._begun <= STALE_S else False, None)
        is_ok, at = self._result
        age = time.monotonic() - at
        return BrokerState(is_ok and age <= STALE_S, age)

    def _run(self) -> None:
        while True:
            was_ok, is_ok = self._result[0], True
            try:
                self._ping()
            except IronicRulesError:
                is_ok = False
            except Exception:  # of a library; the next check may succeed
                LOG.exception("The message broker cannot be checked")
                is_ok = False
            if was_ok and not is_ok:
                LOG.error("The message broker cannot be reached")
            self._result = is_ok, time.monotonic()
            self._known.set()
            time.sleep(PERIOD_S)


#: Seconds from the beginning of a reading for which requests wait for it while nothing is known: after an outage the
#: service connects again first. A database that does not reply delays only those that come in its first moment.
PATIENCE_S = 0.5
#: Seconds that it waits if it can have an earlier result, which is late by one request at most: under full load, other
#: threads take most of the 0.1 s that a health check may need.
SHORT_PATIENCE_S = 0.01
#: Seconds for which a result is taken without reading again: several load balancers may ask.
FRESH_S = 0.5


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
            counts: DatabaseCounts | None = None
            try:
                counts = self._read()
            except db_exc.DBError as exc:
                LOG.error("The database cannot be read for a health check: %s", str(exc).partition("\n")[0])
            except Exception:  # the thread must tell that it has ended
                LOG.exception("The database cannot be read for a health check")
            with self._changed:
                self._found, self._at = counts, time.monotonic()
                self._begun = self._at if self._is_wanted else None
                self._count += 1
                self._changed.notify_all()

    def _is_wanted_soon(self) -> bool:
        """Wait for the next request; return False, and let the thread end, if there is none."""
        with self._changed:
            self._has_thread = self._changed.wait_for(lambda: self._is_wanted, STALE_S)
            self._is_wanted = False
            return self._has_thread


class LiveController(Resource):
    """``/healthcheck/live``, for liveness probes: to restart this process would not help against what is not here."""

    @expose(public=True)
    def get_all(self, request: Request) -> JSONObject:
        """Return ``{"status": "OK"}``: the process answers. Nothing else is checked."""
        _require_enabled(request)
        return {"status": "OK"}


class HealthcheckController(Resource):
    """Without authentication, for load balancers and readiness probes. Answers soon, whatever hangs."""

    below: ClassVar = {"live": LiveController()}

    @expose(public=True)
    def get_all(self, request: Request) -> bytes:
        """Return ``{"status", "database", "broker", "conductors", "invalid_rules", "checks"}``.

        503 if the database or the message broker is unavailable or no conductor alive. ``checks`` has the state of each
        of these, and the age of this information in seconds; ``broker`` is null until its first check has ended. The
        database is read for each request; if that takes longer than a moment, the reply shows the result before, of the
        last 15 seconds. Of rules that are no longer valid, and of legacy rules that are disabled, only the number is
        told.
        """
        _require_enabled(request)
        database, broker = request.database.state(), request.broker.state()
        counts = database.found
        alive, invalid = (None, None) if counts is None else counts
        checks = {"database": _check(database.is_ok, database.age_s),
                  "conductors": _check(bool(alive) if counts else None, database.age_s), "broker": _check(*broker)}
        healthy = bool(alive) and broker.is_ok is not False
        reply: JSONObject = {
            "status": "OK" if healthy else "UNAVAILABLE", "database": bool(database.is_ok), "broker": broker.is_ok,
            "conductors": alive or 0, "invalid_rules": invalid, "checks": checks}
        if not healthy:
            request.reply.status = 503
        return orjson.dumps(reply)


def _check(is_ok: bool | None, age_s: float | None) -> JSONObject:
    state = "UNKNOWN" if is_ok is None else "OK" if is_ok else "UNAVAILABLE"
    return {"state": state, "age": age_s if age_s is None else round(age_s, 1)}


def _require_enabled(request: Request) -> None:
    if not request.conf.api.enable_healthcheck:
        raise NotFound()


class MetricsController(Resource):
    """With the credentials and the policy that any other request needs."""

    @expose(policy=base.METRICS_GET)
    def get_all(self, request: Request) -> bytes:
        """Return the metrics in the format that the header ``Accept`` selects: Prometheus' text format, or OpenMetrics.

        :raises NotFound: 404, ``[api]serve_metrics`` is not set
        """
        if request.metrics_page is None:
            raise NotFound()
        request.reply.media_type, text = request.metrics_page(request.environ.get("HTTP_ACCEPT", ""))
        return text
