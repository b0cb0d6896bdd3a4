"""Measures our rule engine as the conductor uses it: stored rules, the cache in front of them, drafts, one save."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from ironic_rules.conductor import task_store
from ironic_rules.context import RequestContext
from ironic_rules.db import inspection_rules, nodes
from ironic_rules.db.session import Database
from ironic_rules.inspection.rule_sets import RuleCache
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from ironic_rules.rules import Facts, Rule, RuleSet, compile
from ironic_rules.rules.getters import View, Views
from tests.functional import databases
from tests.perf.rules import scenarios

_HOST = "bench"
_ADMIN = RequestContext()

#: Best of the repetitions, in seconds for all rules together, by clock: cpu, elapsed.
Timing = dict[str, float]


class Bench:
    """A database with rules, and the conductor's cache of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache = RuleCache(database)
        self._inventory = scenarios.inventory()

    def measure(self, rules: list[dict[str, Any]], hits: int, repeat: int, *, saves: bool = False) -> dict[str, Timing]:
        """Return the timings ``total`` (asking for the rules, running them, saving) and ``engine`` (running only).

        :param hits: how many attributes the rules set
        """
        self.store(rules)
        rule_set = self._cache.current()
        totals, runs = [], []
        # The first one is a warm-up.
        for _ in range(repeat + 1):
            facts = self._facts()
            runs.append(_timed(rule_set.run, "main", facts))
            _check(facts, hits)
            facts = self._facts()
            totals.append(_timed(self._inspect, facts, saves))
            _check(facts, hits)
        return {"total": _best(totals[1:]), "engine": _best(runs[1:])}

    def after_changes(self, rules: list[dict[str, Any]], repeat: int) -> list[tuple[float, float]]:
        """Change one rule after the other; return the processor times of the first inspection and of the next one."""
        self.store(rules)
        self._inspect(self._facts(), saves=False)
        found = []
        for rule in rules[:repeat]:
            changed = [{**condition, "op": "eq", "args": ["{inventory[hostname]}", rule["uuid"]]}
                       for condition in rule["conditions"]]
            self._database.write(lambda conn, rule=rule, changed=changed: inspection_rules.update(
                conn, rule["uuid"], {"conditions": changed}))
            first, following = (
                _timed(self._inspect, facts, False)["cpu"] for facts in (self._facts(), self._facts()))
            found.append((first, following))
        return found

    def store(self, rules: list[dict[str, Any]]) -> None:
        """Make these the rules, in one request."""
        with self._database.writer() as conn:
            changes = inspection_rules.RevisionChanges(rules, removed=list(inspection_rules.uuids(conn)))
            inspection_rules.change(conn, changes, "bench")
        # As after a start: another cache would compile so many rules in the background.
        self._cache = RuleCache(self._database)

    def _facts(self) -> Facts:
        with self._database.writer() as conn:
            row = nodes.create(conn, {"driver": "fake-hardware"})
            nodes.reserve(conn, nodes.Lock(row.id, _HOST, f"{_HOST}:{row.id}"), "bench")
            row, revisions = nodes.get_with_revisions(conn, row.id)
            task = task_store.read(conn, row, revisions).task(_ADMIN)
        return Facts(task, orjson.loads(orjson.dumps(self._inventory)), scenarios.plugin_data())

    def _inspect(self, facts: Facts, saves: bool) -> None:
        task = facts.task
        assert task is not None
        self._cache.current(task.revisions.rules).run("main", facts)
        if saves:
            self._database.write(lambda conn: task_store.save(
                conn, task, nodes.Lock(task.node.id, _HOST, f"{_HOST}:{task.node.id}"), {}, release=True))


def run_alone(rules: list[dict[str, Any]], hits: int, repeat: int) -> Timing:
    """Return the timing of running rules that are in no database."""
    rule_set = RuleSet(map(compile, map(Rule.of, rules)))
    found = []
    with _frozen():
        for _ in range(repeat + 1):
            facts = Facts(Task(NodeDraft({"uuid": "", "extra": {}})), scenarios.inventory(), scenarios.plugin_data())
            found.append(_timed(rule_set.run, "main", facts))
            _check(facts, hits)
    return _best(found[1:])


def _check(facts: Facts, hits: int) -> None:
    assert facts.task is not None
    assert len(facts.task.node.extra) == hits


def view(inventory: dict[str, Any]) -> View:
    """Return an inventory as conditions see it."""
    return Views({"inventory": lambda: inventory}, "always").of(sensitive=False)


@contextlib.contextmanager
def bench(kind: str = "sqlite") -> Iterator[Bench]:
    """Yield a bench with an empty database."""
    with databases.migrated_database(kind) as url:
        database = databases.open_database(url)
        try:
            with _frozen():
                yield Bench(database)
        finally:
            database.dispose()


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    # As the service does at startup: existing objects need not be examined at every collection.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _timed(work: Callable[..., object], *arguments: Any) -> Timing:
    gc.collect()
    cpu, elapsed = time.process_time(), time.perf_counter()
    work(*arguments)
    return {"cpu": time.process_time() - cpu, "elapsed": time.perf_counter() - elapsed}


def _best(timings: list[Timing]) -> Timing:
    return {clock: min(timing[clock] for timing in timings) for clock in ("cpu", "elapsed")}
