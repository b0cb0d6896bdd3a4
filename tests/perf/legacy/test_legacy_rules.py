"""The speed of legacy rules: ``tox -e perf -- legacy`` prints the tables.

With ``IRONIC_RULES_INSPECTOR`` set to a virtual environment that has ironic-inspector 12.5.0, its conditions are
measured in the same run, with the same rules and data. Times are processor times, best of several runs; no test fails
for being slow: the figures are for people.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from ironic_rules import legacy
from ironic_rules.legacy import LegacyRuleSet, conditions
from tests.unit.legacy.test_field_rules import data_of
from tests.unit.legacy.world import Machine, rule, rule_set

_COUNTS = (10, 1000)
#: Conditions of rules that do not match, by kind; each rule has another constant.
_KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain path, number": lambda number: {"field": "memory_mb", "op": "gt", "value": 10_000_000 + number},
    "plain path, text": lambda number: {"field": "inventory.system_vendor.product_name", "op": "eq",
                                        "value": f"Model {number}"},
    "plain path, expression": lambda number: {"field": "inventory.hostname", "op": "matches",
                                              "value": f"rack{number}-.*"},
    "[*]": lambda number: {"field": "inventory.disks[*].size", "op": "lt", "value": number},
}
#: Minimum factor by which they are faster than ironic-inspector.
_BARS = {"[*]": 1000}


def _spent(work: Callable[[], object], repeat: int = 12) -> float:
    best = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def _rules(kind: str, count: int) -> LegacyRuleSet:
    return rule_set({"conditions": [_KINDS[kind](number)],
                     "actions": [{"action": "set-attribute", "path": "/extra/a", "value": 1}]}
                    for number in range(count))


def test_rules_that_do_not_match(tmp_path: Path) -> None:
    data = data_of(Machine())
    theirs = _inspector(data, tmp_path)
    table = Table("rules that do not match", *(f"{count} rules, µs each" for count in _COUNTS), "1,000 against 10",
                  "ironic-inspector, µs each", "times faster", "at least")
    for kind in _KINDS:
        costs = []
        for count in _COUNTS:
            rules, machine = _rules(kind, count), Machine()
            # What a run costs besides its rules counts: it is small.
            tasks = [machine.task() for _ in range(12)]
            costs.append(_spent(lambda rules=rules, tasks=tasks: rules.run(tasks.pop(), lambda: data)) / count * 1e6)
        other = theirs.get(kind)
        table.add_row(kind, *(f"{cost:.2f}" for cost in costs), f"{costs[1] / costs[0]:.2f}",
                      "-" if other is None else f"{other * 1e6:.0f}",
                      "-" if other is None else f"{other * 1e6 / costs[1]:.0f}", str(_BARS.get(kind, 2000)))
    Console(width=160).print(table)


def _inspector(data: dict[str, Any], folder: Path) -> dict[str, float]:
    environment = os.environ.get("IRONIC_RULES_INSPECTOR")
    if not environment:
        return {}
    job = folder / "job.json"
    job.write_text(json.dumps({"data": data, "cases": [
        {"kind": kind, "repeat": 3, "conditions": [make(number) for number in range(20)]}
        for kind, make in _KINDS.items()]}))
    done = subprocess.run([f"{environment}/bin/python", Path(__file__).with_name("inspector_engine.py"), job],
                          check=True, capture_output=True, text=True)
    return dict(zip(_KINDS, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("kind", ["attributes", "capabilities", "items", "traits"])
def test_taking_back_and_writing_again(kind: str) -> None:
    actions = {
        "attributes": lambda number: {"action": "set-attribute", "path": f"/extra/deep/a{number}", "value": number},
        "capabilities": lambda number: {"action": "set-capability", "name": f"c{number}", "value": "yes"},
        "items": lambda number: {"action": "append-attribute", "path": "/extra/list", "value": f"item {number}"},
        "traits": lambda number: {"action": "add-trait", "name": f"CUSTOM_{number}"},
    }[kind]
    count = 50 if kind == "traits" else 100
    rules = rule_set({"actions": [actions(number)]} for number in range(count))
    machine = Machine({"properties": {"capabilities": "boot_mode:uefi"}})
    machine.inspect(rules)
    assert len(machine.owned) == count
    tasks = [machine.task() for _ in range(12)]
    spent = _spent(lambda: rules.run(tasks.pop(), dict, machine.owned))
    Console().print(f"{count} owned {kind} taken back and written again: {spent * 1e3:.2f} ms (at most 5 ms)")


def test_memory_of_compiled_rules() -> None:
    said = [rule([{"field": "memory_mb", "op": "ge", "value": number},
                  {"field": "auto_discovered", "op": "eq", "value": True},
                  {"field": f"inventory.disks[*].k{number}", "op": "eq", "value": f"v{number}"}],
                 [{"action": "set-attribute", "path": f"/extra/a{number}", "value": f"{{data[k{number}]}}"},
                  {"action": "set-capability", "name": f"c{number}", "value": "1"}], number=number)
            for number in range(1, 1001)]
    conditions.shared.cache_clear()
    tracemalloc.start()
    rules = LegacyRuleSet(map(legacy.compile_rule, said))
    used = tracemalloc.get_traced_memory()[0] / 2 ** 20
    tracemalloc.stop()
    assert len(rules) == 1000
    Console().print(f"1,000 compiled rules of 3 conditions and 2 actions: {used:.1f} MiB (at most 15 MiB)")


def test_compiling_a_set() -> None:
    said = [rule([{"field": "memory_mb", "op": "ge", "value": number}],
                 [{"action": "set-attribute", "path": "/extra/a", "value": 1}], number=number)
            for number in range(1, 1001)]
    compiled = [legacy.compile_rule(each) for each in said]
    rules = LegacyRuleSet(compiled)
    changed = _spent(lambda: rules.changed(compiled[:1], compiled[:1]), 5)
    Console().print(f"one rule of 1,000 changed: {changed * 1e3:.1f} ms")
