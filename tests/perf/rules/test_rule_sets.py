"""Large sets of rules, against their bars: ``tox -e perf -- rules`` prints the tables.

Bars are of the processor time of one machine, or of memory; with ``IRONIC_RULES_REFERENCE`` set, the engine of that
environment runs the same rules.
"""

from __future__ import annotations

import contextlib
import json
import operator
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.functional import databases
from tests.perf import loads
from tests.perf.processes import ours
from tests.perf.rules import own_engine, scenarios
from tests.perf.sites import site

_MANY = 10_000
_TREE = Path(__file__).parents[3]


@dataclass(frozen=True)
class Case:
    """Rules of which ``hits`` match.

    :ivar unit: one of the times that are shown, in seconds
    :ivar bar: the maximum, in this unit
    :ivar per: by how many the time is divided
    """

    text: str
    rules: Callable[[], list[dict[str, Any]]]
    bar: float
    hits: int = 0
    unit: str = "ms"
    per: int = 1

    def shown(self, seconds: float) -> str:
        """Return a time for the table."""
        return f"{seconds * {'ms': 1e3, 'us': 1e6}[self.unit] / self.per:.3f} {self.unit}"


CASES = (
    Case("10,000 rules of all kinds mixed, none matches", lambda: scenarios.one_each(scenarios.never, _MANY), 1),
    *(Case(f"  all: {condition(0)['op']} {place}", lambda condition=condition: scenarios.one_each(condition, _MANY), 1)
      for place, condition in ((scenarios.place_of(each), each) for each in scenarios.NEVER)),
    Case("10,000 rules, 100 match", lambda: scenarios.one_each(scenarios.never, _MANY, 100), 2, 100),
    Case("1,000 matches over one field", lambda: scenarios.one_each(scenarios.MATCHES, 1000), 1),
    *(Case(f"un-indexed condition: {text}", lambda each=each: scenarios.one_each(each, 1000), 0.6, 0, "us", 1000)
      for text, each in scenarios.UNINDEXED.items()),
    Case("rule with set-attribute", lambda: scenarios.rules("match_set", 1000), 1.5, 1000, "us", 1000),
)


def show(title: str, rows: list[tuple[str, ...]], *columns: str) -> None:
    """Print a table whose first column is text."""
    table = Table(title=title)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


def test_rules_that_match_or_not(tmp_path: Path) -> None:
    made = [each.rules() for each in CASES]
    own = [own_engine.run_alone(rules, each.hits, 15)["cpu"] for each, rules in zip(CASES, made, strict=True)]
    comparable = {each.text: rules for each, given in zip(CASES, made, strict=True)
                  if (rules := scenarios.for_reference(given)) is not None}
    other = scenarios.measured_by_reference(tmp_path, [
        {"kind": each.text, "repeat": 1, "saves": False, "hits": each.hits, "rules": comparable[each.text]}
        for each in CASES if each.text in comparable])
    # The reference reads the rules for each machine: that is part of its time.
    theirs = dict(zip(comparable, (each["total"]["cpu"] for each in other), strict=True)) if other else {}
    rows = []
    for each, mine in zip(CASES, own, strict=True):
        row = [each.text, each.shown(mine), f"{each.bar:g} {each.unit}"]
        if each.text in theirs:
            row += [each.shown(theirs[each.text]), f"1/{theirs[each.text] / mine:,.0f}"]
        rows.append(tuple(row))
    show("Rules for one machine, without saving", rows,
         "rules", "ironic-rules", "bar", *(("reference", "ratio") if theirs else ()))
    assert all(own)


@pytest.mark.parametrize("kind", databases.KINDS)
def test_the_first_inspection_after_a_change(kind: str) -> None:
    rules = scenarios.one_each(scenarios.never, _MANY)
    with own_engine.bench(kind) as bench:
        pairs = bench.after_changes(rules, 3 * len(scenarios.NEVER))
    more = sorted(first - following for first, following in pairs)
    figures = {"first inspection": min(first for first, _ in pairs), "next one": min(later for _, later in pairs),
               "difference, median": statistics.median(more), "difference, most": more[-1]}
    show(f"One of 10,000 rules has changed, {kind}", [
        (text, f"{value * 1e3:.2f} ms", "5 ms" if text.startswith("difference") else "")
        for text, value in figures.items()], "what", "ironic-rules", "bar")
    assert len(pairs) == 3 * len(scenarios.NEVER)


def _measured_apart(*arguments: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", "tests.perf.rules.own_memory", *arguments], check=True, cwd=_TREE,
                          stdout=subprocess.PIPE)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@pytest.mark.parametrize("matching", [0, _MANY // 2, _MANY])
def test_memory_of_10_000_rules_and_1_000_scopes(matching: int) -> None:
    rules = [{**rule, "scope": f"scope {number % 1000}"}
             for number, rule in enumerate(scenarios.one_each(scenarios.never, _MANY, matching))]
    with databases.migrated_database("sqlite") as empty, databases.migrated_database("sqlite") as full:
        database = databases.open_database(full)
        own_engine.Bench(database).store(rules)
        database.dispose()
        figures = _measured_apart("scopes", empty, full)
    show(f"Memory of 10,000 rules, of which {matching:,} match, and 1,000 scopes, over an empty set", [
        ("all rules read and compiled", f"{figures['read']:.1f} MiB", "60 MiB"),
        ("after three inspections in each scope", f"{figures['run']:.1f} MiB", "60 MiB")],
        "what", "ironic-rules", "bar")
    assert (figures["rules"], figures["scopes"]) == (_MANY, 1000)


def test_the_sets_of_1_000_expressions_over_one_field() -> None:
    figures = _measured_apart("matches")
    show("1,000 matches over one field", [
        ("the sets are built", f"{figures['building, ms']:.1f} ms", ""),
        ("their memory", f"{figures['sets']:.1f} MiB", ""),
        ("first match of all", f"{figures['first, ms']:.3f} ms", ""),
        ("a new text, which some match", f"{figures['first of a text, ms']:.3f} ms", ""),
        ("a known text, which none matches", f"{figures['warm, ms']:.3f} ms", "1 ms"),
        ("memory of the sets after 1,000 texts", f"{figures['after a thousand texts']:.1f} MiB", "")],
        "what", "ironic-rules", "bar")
    assert figures["warm, ms"] > 0


def _difference(endpoint: str, processor_s: Callable[[], float], nodes: int, turns: int) -> tuple[float, float]:
    """Return the processor time of an inspection without rules, and how much more 100 rules cost, in milliseconds.

    The same processes inspect nodes in the scope of the rules and others in turns: other work on the machine, and the
    difference between two processes with the same load, are larger than what the rules cost.
    """
    loads.create_rules(endpoint, 100, matches=True, scope="bench")
    costs: dict[str | None, list[float]] = {None: [], "bench": []}
    for turn in range(turns + 2):
        for scope in (None, "bench") if turn % 2 else ("bench", None):
            first = loads.enter_inspect_wait(endpoint, nodes, inspection_scope=scope)
            before = processor_s()
            loads.report_all(endpoint, first, nodes, 4)
            # The first turns are a warm-up.
            if turn > 1:
                costs[scope].append((processor_s() - before) / nodes * 1e3)
            loads.delete_all(endpoint, "nodes")
    without = statistics.median(costs[None])
    return without, statistics.median(map(operator.sub, costs["bench"], costs[None]))


@contextlib.contextmanager
def _processes(folder: Path, kind: str) -> Iterator[tuple[str, Callable[[], float]]]:
    """Run one process with SQLite, or API, conductors, broker and database server; yield the URL, and their time."""
    if kind == "sqlite":
        with ours(folder) as service:
            yield service.endpoint, service.processor_s
    else:
        with site(folder, kind, 1) as cluster:
            yield cluster.endpoint, lambda: sum(cluster.times_s().values())


@pytest.mark.parametrize("kind", ["sqlite", "mysql", "postgresql"])
def test_inspections_end_to_end_with_100_rules_that_match(tmp_path: Path, kind: str) -> None:
    with _processes(tmp_path, kind) as (endpoint, processor_s):
        without, more = _difference(endpoint, processor_s, 50, 30)
    show(f"Processor time of an inspection, from the ramdisk's report to the end, {kind}, median of 30 turns", [
        ("without rules", f"{without:.2f} ms", ""),
        ("more with 100 rules that match and set an attribute", f"{more:.2f} ms", "2 ms")],
        "what", "ironic-rules", "bar")
    assert without > 0
