"""Counts in memory how often rules match, and adds that to the database from time to time, in a thread of its own.

An inspection adds little: how often each part of a run came, which rules the index found, and which matched. The rules
that a part has reached are the same for all inspections of a scope, and is looked up only when it is written.
"""

from __future__ import annotations

import atexit
import datetime
import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.db import clock, rule_records
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.session import Database
from ironic_rules.metrics.numbers import Numbers
from ironic_rules.models.rules import Counts, Rule
from ironic_rules.rules.phase import Phase, RuleRuns, considered

LOG = logging.getLogger(__name__)

#: Maximum number of different parts that are kept in memory; after that they are written.
_MOST_PARTS = 1000
#: Maximum number of rules in all lists of rules that are counted as a whole; after that each rule is counted.
_MOST_LISTED = 20_000
#: Maximum number of rules whose counts are kept while they cannot be written.
_MOST_RULES = 100_000
#: Maximum number of attempts of a transaction that met another one.
_ATTEMPTS = 5
_METRICS: Final = ("considered", "evaluated", "matched", "failed")


@dataclass(slots=True)
class _Matches:
    """The counts of rules that have matched in the same inspections.

    :ivar last: as in ``Counts``
    :ivar changed: the ids of nodes that all of them have changed
    """

    times: int = 0
    last: tuple[datetime.datetime, str | None] | None = None
    changed: set[int] = field(default_factory=set)


#: Rules that were evaluated, by their numbers in a phase, and those that have matched, by their UUIDs.
_Found: TypeAlias = Counter[tuple[Phase, tuple[int, ...]]]
_Matched: TypeAlias = defaultdict[tuple[str, ...], _Matches]


class RuleStatistics:
    """One per process; thread-safe.

    :param interval_s: seconds between two additions to the database; 0: nothing is counted
    :param built_in: the built-in rules
    """

    def __init__(self, db: Database, interval_s: float, numbers: Numbers | None = None,
                 built_in: Collection[Rule] = ()) -> None:
        self._db = db
        self._interval_s = interval_s
        self._numbers = numbers or Numbers()
        self._built_in = {rule.uuid: rule.sensitive for rule in built_in}
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._stopped = False
        self._parts: Counter[tuple[Phase, str | None, int | None, int | None]] = Counter()
        # The same rules match on many nodes: to count all of them once is faster than to count each.
        self._found: _Found = Counter()
        self._matched: _Matched = defaultdict(_Matches)
        #: number of rules in these two
        self._listed = 0
        self._counts: defaultdict[str, Counts] = defaultdict(Counts)

    def start(self) -> None:
        """Forget the built-in rules of earlier that do not exist any more."""
        self._db.write(lambda conn: rule_records.forget_built_in(conn, self._built_in))

    def begin(self) -> RuleRuns | None:
        """Return what the runs of an inspection are noted in; None: they are not counted."""
        return RuleRuns() if self._interval_s else None

    def add(self, runs: RuleRuns, node_id: int | None = None, node: str | None = None,
            changed: Collection[str] = ()) -> None:
        """Count the runs of an inspection that has ended.

        :param node: its UUID; None: no node is known
        :param changed: the UUIDs of rules whose changes of the node were saved
        """
        if not self._interval_s:
            return
        matched = tuple(runs.matched)
        with self._lock:
            for part in runs.parts:
                # Without rules of its own, a scope is as none: there may be as many scopes as nodes.
                scope = part.scope if part.phase.has_scope(part.scope) else None
                self._parts[part.phase, scope, part.after, part.until] += 1
                evaluation = part.phase, tuple(part.evaluated())
                if evaluation not in self._found:
                    self._listed += len(evaluation[1])
                self._found[evaluation] += 1
            if runs.failure is not None:
                self._counts[runs.failure].failed += 1
            if matched:
                if matched not in self._matched:
                    self._listed += len(matched)
                of_all = self._matched[matched]
                of_all.times += 1
                of_all.last = clock.now(), node
            if node_id is not None and changed:
                # All that are here have matched.
                if len(changed) == len(matched):
                    of_all.changed.add(node_id)
                else:
                    for uuid in changed:
                        self._counts[uuid].changed.add(node_id)
            if self._listed > _MOST_LISTED:
                _count_each(self._counts, *self._lists())
            if len(self._parts) > _MOST_PARTS:
                self._wake.set()
        if self._thread is None:
            self._start()

    def flush(self) -> None:
        """Add to the database what was counted since the last time; what cannot be written is kept for the next."""
        with self._flushing:
            counts = self._taken()
            if not counts:
                return
            try:
                written = self._write(counts)
            except Exception as exc:  # what was counted must not be lost, whatever it is
                if isinstance(exc, DATABASE_AWAY):
                    LOG.warning("Statistics of rules cannot be written now: the database is unavailable")
                else:
                    LOG.exception("Statistics of rules cannot be written now")
                self._put_back(counts)
                return
        for uuid, sensitive in written.items():
            for name, number in zip(_METRICS, counts[uuid].numbers, strict=True):
                # The number of times that the index has found a sensitive rule would reveal its conditions in part.
                if number and not (sensitive and name == "evaluated"):
                    self._numbers.count(f"inspection_rule_{name}", uuid, by=number)

    def stop(self) -> None:
        """Write what was counted; nothing is written later."""
        atexit.unregister(self.stop)
        self._stopped = True
        self._wake.set()
        self.flush()

    def _taken(self) -> dict[str, Counts]:
        """Return what was counted, by the UUIDs of rules, and begin again."""
        with self._lock:
            parts, self._parts = self._parts, Counter()
            lists = self._lists()
            counts, self._counts = self._counts, defaultdict(Counts)
        for (phase, scope, after, until), times in parts.items():
            for number in considered(phase, scope, after, until):
                counts[phase.entries[number].rule.uuid].considered += times
        _count_each(counts, *lists)
        return counts

    def _lists(self) -> tuple[_Found, _Matched]:
        """Return what was counted of lists of rules, and begin again."""
        evaluations, self._found = self._found, Counter()
        matched, self._matched = self._matched, defaultdict(_Matches)
        self._listed = 0
        return evaluations, matched

    def _write(self, counts: dict[str, Counts]) -> dict[str, bool]:
        for attempt in itertools.count(1):
            try:
                return self._db.write(lambda conn: rule_records.add_statistics(conn, counts, self._built_in))
            except (db_exc.DBDuplicateEntry, db_exc.DBReferenceError):
                # Another process did the same, or a rule or node was deleted: the next attempt sees it.
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError

    def _put_back(self, counts: dict[str, Counts]) -> None:
        with self._lock:
            for uuid, old in counts.items():
                if uuid not in self._counts and len(self._counts) >= _MOST_RULES:
                    continue
                self._counts[uuid].add(old)

    def _start(self) -> None:
        # Not before there is something: servers like gunicorn fork before that.
        with self._lock:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="rule-statistics", daemon=True)
                self._thread.start()
                # An API in a WSGI server is told nothing else of its end.
                atexit.register(self.stop)

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait(self._interval_s)
            self._wake.clear()
            self.flush()


def _count_each(counts: defaultdict[str, Counts], evaluations: _Found, matched: _Matched) -> None:
    """Add what was counted of lists of rules to what is counted of each of them."""
    for (phase, evaluated), times in evaluations.items():
        for number in evaluated:
            counts[phase.entries[number].rule.uuid].evaluated += times
    for uuids, of_all in sorted(matched.items(), key=_time_of):
        for uuid in uuids:
            count = counts[uuid]
            count.matched += of_all.times
            count.last = of_all.last
            count.changed |= of_all.changed


def _time_of(matched: tuple[tuple[str, ...], _Matches]) -> datetime.datetime:
    """Return when rules have matched last."""
    last = matched[1].last
    assert last is not None
    return last[0]
