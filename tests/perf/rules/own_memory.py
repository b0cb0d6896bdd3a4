"""Measures how much memory rules need: ``python -m tests.perf.rules.own_memory scopes EMPTY_URL URL``, or ``matches``.

Run in a process of its own, which has not used memory for anything else. Prints a JSON object of figures in MiB, as the
operating system sees them, and in milliseconds of processor time.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from ironic_rules import rules
from ironic_rules.inspection.rule_sets import RuleCache
from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.task import Task
from tests.functional import databases
from tests.perf.rules import scenarios


def main() -> None:
    """Print the figures of the given kind."""
    kind, *urls = sys.argv[1:]
    print(json.dumps(_matches() if kind == "matches" else _scopes(*urls)))


def _scopes(empty_url: str, url: str) -> dict[str, float]:
    """Return the memory of the rules in a database, over that of an empty one."""
    before = RuleCache(databases.open_database(empty_url))
    before.current().run("main", _facts(None))
    base = _resident()
    cache = RuleCache(databases.open_database(url))
    rule_set = cache.current()
    figures = {"rules": len(rule_set), "read": _resident() - base}
    scopes = sorted({rule.scope for rule in rule_set.rules("main") if rule.scope is not None})
    # From the second or third time on, those that match run together.
    for _ in range(3):
        for scope in scopes:
            rule_set.run("main", _facts(scope))
    return {**figures, "scopes": len(scopes), "run": _resident() - base}


def _matches() -> dict[str, float]:
    """Return the memory of a thousand expressions over one field, and how long the first matches take."""
    stored = scenarios.one_each(scenarios.MATCHES, 1000)
    compiled = [rules.compile(rules.Rule.of(rule)) for rule in stored]
    # What is imported and created once.
    rules.RuleSet(compiled[:40]).run("main", _facts(None))
    base = _resident()
    began = time.process_time()
    rule_set = rules.RuleSet(compiled)
    figures = {"building, ms": (time.process_time() - began) * 1e3, "sets": _resident() - base}
    times = []
    for number in range(1000):
        facts = _facts(None)
        # Each text matches at least one of the expressions.
        facts.inventory["system_vendor"]["product_name"] = f"no{number}x{number} of a rack"
        times.append(_run(rule_set, facts))
    warm = min(_run(rule_set, _facts(None)) for _ in range(50))
    return {**figures, "first, ms": times[0] * 1e3, "first of a text, ms": sorted(times)[500] * 1e3,
            "warm, ms": warm * 1e3, "after a thousand texts": _resident() - base}


def _run(rule_set: rules.RuleSet, facts: rules.Facts) -> float:
    began = time.process_time()
    rule_set.run("main", facts)
    return time.process_time() - began


def _facts(scope: str | None) -> Any:
    return rules.Facts(Task(NodeDraft({"extra": {}, "inspection_scope": scope})), scenarios.inventory(),
                       scenarios.plugin_data())


def _resident() -> float:
    gc.collect()
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
