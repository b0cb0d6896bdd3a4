"""The rule engine's speed: ``tox -e perf -- rules`` prints the tables.

With ``IRONIC_RULES_REFERENCE`` set, the engine of that environment is measured in the same run, with the same rules and
the same inventory, and ratios are printed. Times are processor times, best of several runs; no test fails for being
slow: the figures are for people.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from ironic_rules import rules
from ironic_rules.rules.getters import View
from tests.perf.rules import own_engine, scenarios

_COUNTS = (10, 1000)
_FLAT_COUNTS = (10, 100, 1000, 10_000)

#: Microseconds per rule by (kind, number of rules).
Costs = dict[tuple[str, int], float]


@dataclass(frozen=True)
class Figures:
    """Costs of running the rules, and of reading, running and, for ``match_set_db``, saving."""

    engine: Costs
    total: Costs


@dataclass(frozen=True)
class Bar:
    """The maximum cost of 1,000 rules: ``own`` must be ``limit`` times cheaper than ``other`` of the reference."""

    text: str
    own: tuple[str, str]
    other: tuple[str, str]
    limit: int


_BARS = (
    Bar("nomatch", ("engine", "nomatch"), ("engine", "nomatch"), 60),
    Bar("nomatch, reading the rules counted in", ("total", "nomatch"), ("total", "nomatch"), 60),
    Bar("match_set", ("engine", "match_set"), ("engine", "match_set"), 20),
    Bar("match_set, read and saved, against match_set", ("total", "match_set_db"), ("total", "match_set"), 20),
    Bar("match_set, read and saved, against match_set_db", ("total", "match_set_db"), ("total", "match_set_db"), 500),
    Bar("loop_regex", ("engine", "loop_regex"), ("engine", "loop_regex"), 8),
    Bar("loop_match", ("engine", "loop_match"), ("engine", "loop_match"), 8),
)


@pytest.fixture(scope="module")
def own() -> Figures:
    figures = Figures({}, {})
    with own_engine.bench() as bench:
        for kind in scenarios.KINDS:
            for count in _FLAT_COUNTS:
                timings = bench.measure(scenarios.rules(kind, count), scenarios.hits(kind, count),
                                        5 if count > 1000 else 12, saves=kind == "match_set_db")
                figures.engine[kind, count] = timings["engine"]["cpu"] / count * 1e6
                figures.total[kind, count] = timings["total"]["cpu"] / count * 1e6
    return figures


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Figures | None:
    cases: list[dict[str, Any]] = [
        {"kind": kind, "repeat": 1 if kind == "match_set_db" else 4, "saves": kind == "match_set_db",
         "hits": scenarios.hits(kind, count), "rules": scenarios.rules(kind, count)}
        for kind in scenarios.KINDS for count in _COUNTS]
    timings = scenarios.measured_by_reference(tmp_path_factory.mktemp("reference"), cases)
    if timings is None:
        return None
    figures = Figures({}, {})
    for case, timing in zip(cases, timings, strict=True):
        kind, count = case["kind"], len(case["rules"])
        figures.total[kind, count] = timing["total"]["cpu"] / count * 1e6
        figures.engine[kind, count] = (timing["total"]["cpu"] - timing["reading"]["cpu"]) / count * 1e6
    return figures


def test_the_table_of_the_rules(own: Figures, other: Figures | None) -> None:
    table = Table(title="Rules: microseconds of processor time per rule")
    table.add_column("rules")
    table.add_column("number", justify="right")
    for who in ("ironic-rules", "reference")[:2 if other else 1]:
        table.add_column(f"{who}: engine", justify="right")
        table.add_column("with reading", justify="right")
    if other:
        table.add_column("ratio: engine", justify="right")
        table.add_column("with reading", justify="right")
    for kind in scenarios.KINDS:
        for count in _COUNTS:
            case = kind, count
            cells = [own.engine[case], own.total[case], *([other.engine[case], other.total[case]] if other else [])]
            ratios = [cells[2] / cells[0], cells[3] / cells[1]] if other else []
            table.add_row(kind, str(count), *(f"{cell:.2f}" for cell in cells), *(f"1/{ratio:.0f}" for ratio in ratios))
    table.caption = "; ".join(f"{kind}: {text}" for kind, text in scenarios.KINDS.items())
    Console(width=120).print(table)
    assert all(cost > 0 for cost in own.engine.values())


def test_the_bars(own: Figures, other: Figures | None) -> None:
    if other is None:
        pytest.skip("IRONIC_RULES_REFERENCE is not set")
    table = Table(title="1,000 rules against the bars")
    for column in ("what", "ironic-rules, us per rule", "reference", "ratio", "bar"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for bar in _BARS:
        ours, theirs = _cost(own, bar.own), _cost(other, bar.other)
        table.add_row(bar.text, f"{ours:.2f}", f"{theirs:.2f}", f"1/{theirs / ours:.0f}", f"1/{bar.limit}")
    Console(width=120).print(table)


def _cost(figures: Figures, which: tuple[str, str]) -> float:
    costs: Costs = getattr(figures, which[0])
    return costs[which[1], 1000]


def test_the_cost_of_a_rule_by_their_number(own: Figures) -> None:
    table = Table(title="Microseconds per rule by the number of rules (engine)")
    for column in ("rules", *map(str, _FLAT_COUNTS), "10,000 to 10"):
        table.add_column(column, justify="left" if column == "rules" else "right")
    for kind in scenarios.KINDS:
        costs = [own.engine[kind, count] for count in _FLAT_COUNTS]
        table.add_row(kind, *(f"{cost:.2f}" for cost in costs), f"{costs[-1] / costs[0]:.2f}")
    Console(width=120).print(table)


@pytest.mark.parametrize("name", ["matches", "contains"])
def test_an_expression_that_backtracks_elsewhere(name: str) -> None:
    condition = {"op": name, "args": ["{inventory[hostname]}", "(a+)+$"]}
    rule = rules.Rule(conditions=[condition], actions=[{"op": "fail", "args": ["x"]}])
    check = rules.compile(rule).conditions[0].call
    found = []
    for text in ("a" * 10_000, "a" * 9_999 + "!"):
        view = own_engine.view({"hostname": text})
        found.append(min(_seconds(check, view) for _ in range(20)) * 1e6)
    print(f"{name} (a+)+$ on 10,000 letters: {found[0]:.0f} us if it does, {found[1]:.0f} us if not")
    assert max(found) < 100_000


def _seconds(check: Callable[[View], bool], view: View) -> float:
    began = time.process_time()
    check(view)
    return time.process_time() - began
