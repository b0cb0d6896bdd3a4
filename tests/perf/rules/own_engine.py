"""Measures our rule engine as the conductor uses it: stored rules, the cache in front of them, drafts, one save."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import sqlalchemy as sa

from ironic_rules.conductor import task_store
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, inspection_rules, nodes, tables
from ironic_rules.db.session import Database
from ironic_rules.inspection.rule_cache import RuleCache
from ironic_rules.models.task import Task
from ironic_rules.rules import Facts, RuleSet
from ironic_rules.rules.mask import View, Views
from tests.functional import databases
from tests.perf.rules import scenarios

_HOST = "bench"

#: Best of the repetitions, in seconds for all rules together, by clock: cpu, elapsed.
Timing = dict[str, float]


class Bench:
    """A database with rules, and the conductor's cache of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache = RuleCache()
        self._inventory = scenarios.inventory()

    def measure(self, kind: str, count: int, repeat: int) -> dict[str, Timing]:
        """Return the timings ``total`` (reading the rules, running them, saving) and ``engine`` (running only)."""
        self._store(scenarios.rules(kind, count))
        rule_set = self._read()
        totals, runs = [], []
        # The first one is a warm-up.
        for _ in range(repeat + 1):
            task, facts = self._task()
            runs.append(_timed(rule_set.run, "main", facts))
            assert len(task.node.extra) == scenarios.hits(kind, count)
            task, facts = self._task()
            totals.append(_timed(self._inspect, facts, kind == "match_set_db"))
            assert len(task.node.extra) == scenarios.hits(kind, count)
        return {"total": _best(totals[1:]), "engine": _best(runs[1:])}

    def _store(self, rules: list[dict[str, Any]]) -> None:
        with self._database.writer() as conn:
            # Deleting makes a new revision of the set; to create 10,000 rules one by one would take a minute.
            inspection_rules.destroy_all(conn)
            row = {"position": 0, "revision": 0, "created_at": clock.now()}
            conn.execute(sa.insert(tables.inspection_rules), [
                {**row, **rule, "position": position} for position, rule in enumerate(rules)])

    def _read(self) -> RuleSet:
        with self._database.reader() as conn:
            return self._cache.current(conn)

    def _task(self) -> tuple[Task, Facts]:
        with self._database.writer() as conn:
            row = nodes.create(conn, {"driver": "fake-hardware"})
            row = nodes.reserve(conn, row.id, _HOST, "bench")
            task = task_store.read(conn, row).task(RequestContext())
        return task, Facts(task, orjson.loads(orjson.dumps(self._inventory)), {})

    def _inspect(self, facts: Facts, save: bool) -> None:
        self._read().run("main", facts)
        task = facts.task
        if save and task is not None:
            self._database.write(lambda conn: task_store.save(conn, task, _HOST, {}, release=True))


def view(inventory: dict[str, Any]) -> View:
    """Return an inventory as conditions see it."""
    return Views({"inventory": lambda: inventory}, "always").of(sensitive=False)


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Yield a bench with an empty SQLite database."""
    with databases.migrated_database("sqlite") as url:
        database = databases.open_database(url)
        # As the service does at startup: existing objects need not be examined at every collection.
        gc.collect()
        gc.freeze()
        try:
            yield Bench(database)
        finally:
            gc.unfreeze()
            database.dispose()


def _timed(work: Callable[..., object], *arguments: Any) -> Timing:
    gc.collect()
    cpu, elapsed = time.process_time(), time.perf_counter()
    work(*arguments)
    return {"cpu": time.process_time() - cpu, "elapsed": time.perf_counter() - elapsed}


def _best(timings: list[Timing]) -> Timing:
    return {clock: min(timing[clock] for timing in timings) for clock in ("cpu", "elapsed")}
