"""Gauges of the whole fleet: its nodes by state, maintenance, fault and conductor group, and conductors that are alive.

A scrape gets the last reading, and lets a thread read again if that reading is old. So a scrape waits for no query, and
a process without scrapes reads nothing. The time between two readings grows with the time that one takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.db import clock, conductors, inspection_rules, node_queries, outbox
from ironic_rules.db.session import Database
from ironic_rules.metrics.numbers import Labels, Numbers
from ironic_rules.models.rules import Rule

LOG = logging.getLogger(__name__)

#: Seconds after which the numbers are read again.
_FRESH_S = 10.0
#: The same as a multiple of the time that the last reading took: a process spends a hundredth of its time on it.
_SHARE = 100
#: Seconds that the first scrape waits for the first reading.
_FIRST_S = 5.0
#: The label of nodes and conductors without a group: for Prometheus, an empty one is none.
NO_GROUP = "(none)"
#: Maximum number of rules whose names are shown.
_MOST_RULES = 2000

_Gauges = dict[str, dict[Labels, float]]


class _Read(NamedTuple):
    gauges: _Gauges
    at: float
    #: the monotonic time from which it is old
    until: float


class FleetGauges:
    """The gauges of a process; thread-safe.

    :param built_in: the rules of the operator's files
    """

    def __init__(self, db: Database, heartbeat_timeout_s: float, built_in: Collection[Rule],
                 monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._db, self._timeout_s = db, heartbeat_timeout_s
        self._built_in = {(rule.uuid, _shown(rule.name, rule.description, rule.uuid)): 1.0 for rule in built_in}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._read: _Read | None = None
        self._rules: tuple[int, Mapping[Labels, float]] = (-1, {})

    def offer(self, numbers: Numbers) -> None:
        """Let the metrics have the gauges."""
        for name in ("nodes", "nodes_in_maintenance", "nodes_with_fault", "nodes_in_group",
                     "nodes_waiting_longest_seconds", "conductors_alive", "oldest_lock_seconds", "fleet_age_seconds",
                     "inspection_rule_info", "outbox_oldest_seconds", "outbox_dead_letters"):
            numbers.gauge(name, self._of(name))

    def _of(self, name: str) -> Callable[[], Mapping[Labels, float]]:
        return lambda: self._current().get(name, {})

    def _current(self) -> _Gauges:
        with self._guard:
            reading = self._read
            if (reading is None or self._monotonic() >= reading.until) and self._thread is None:
                self._thread = threading.Thread(target=self._refresh, name="fleet-gauges", daemon=True)
                self._thread.start()
            thread = self._thread
        if reading is None and thread is not None:
            thread.join(_FIRST_S)
            reading = self._read
        if reading is None:
            return {}
        return reading.gauges | {"fleet_age_seconds": {(): self._monotonic() - reading.at}}

    def _refresh(self) -> None:
        began = self._monotonic()
        gauges = None
        try:
            with self._db.reader() as conn:
                gauges = self._gauges(conn)
        except db_exc.DBError as error:
            LOG.warning("The gauges of the fleet cannot be read: %s", error)
        except Exception:  # the next reading may succeed
            LOG.exception("The gauges of the fleet cannot be read")
        with self._guard:
            now = self._monotonic()
            if gauges is not None:
                self._read = _Read(gauges, began, now + max(_FRESH_S, _SHARE * (now - began)))
            self._thread = None

    def _gauges(self, conn: sa.Connection) -> _Gauges:
        clock.follow(conn)
        fleet = node_queries.fleet_counts(conn, clock.now())
        alive = dict.fromkeys((row.conductor_group for row in conductors.list_conductors(conn)), 0.0)
        alive |= dict.fromkeys(fleet.groups, 0.0)
        for row in conductors.living_hosts(conn, self._timeout_s):
            alive[row.conductor_group] += 1
        revision = inspection_rules.revision(conn)
        if revision != self._rules[0]:
            self._rules = revision, self._built_in | {
                (row.uuid, _shown(row.name, row.description, row.uuid)): 1.0
                for row in inspection_rules.names(conn, _MOST_RULES)}
        waiting = outbox.read(conn, clock.now())
        return {
            "outbox_oldest_seconds": {(): waiting.oldest_s}, "outbox_dead_letters": {(): waiting.dead},
            "nodes": _by(fleet.states), "nodes_in_maintenance": {(): fleet.maintenance},
            "nodes_with_fault": _by(fleet.faults), "nodes_in_group": _by(fleet.groups),
            "nodes_waiting_longest_seconds": _by(fleet.waiting_s), "conductors_alive": _by(alive),
            "oldest_lock_seconds": {(): fleet.lock_s}, "inspection_rule_info": dict(self._rules[1])}


def _by(numbers: Mapping[str, float]) -> dict[Labels, float]:
    return {(name or NO_GROUP,): number for name, number in numbers.items()}


def _shown(name: str | None, description: str | None, uuid: str) -> str:
    """Return what an operator calls a rule."""
    return name or description or uuid
