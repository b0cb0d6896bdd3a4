"""Rules that are kept in git: ``tox -e perf -- rules/test_apply.py`` prints the table.

2,000 rules are applied in one request, over HTTP: new ones, the same again, all with another priority, and rolled back.
Bars: 2 s, and 0.5 s if nothing changes. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from tests.functional import databases
from tests.perf import client as clients
from tests.perf import processes
from tests.perf.rules import scenarios

_RULES = 2000
_TURNS = 5
_PATH = "/v1/inspection_rules"


@pytest.mark.parametrize("kind", databases.KINDS)
def test_the_table_of_applied_rules(tmp_path: Path, kind: str) -> None:
    rules = [{**rule, "name": f"rule {number}"}
             for number, rule in enumerate(scenarios.one_each(scenarios.never, _RULES))]
    for rule in rules:
        # They are found by their names.
        del rule["uuid"]
    others = [{**rule, "priority": rule["priority"] + 1} for rule in rules]
    table = Table("work", "elapsed, s", "CPU, s", "bar, s", title=f"{_RULES:,} rules, {kind}, best of {_TURNS}")
    taken: dict[str, list[tuple[float, float]]] = {}

    with databases.migrated_database(kind) as url, \
            processes.ours(tmp_path, f"[database]\nconnection = {url}\n") as service, \
            clients.Client(service.endpoint) as client:
        def timed(work: str, expected: str, call: Callable[[], Any]) -> dict[str, Any]:
            began, used = time.perf_counter(), service.processor_s()
            reply: dict[str, Any] = call()
            taken.setdefault(work, []).append((time.perf_counter() - began, service.processor_s() - used))
            assert len(reply[expected]) == _RULES
            return reply

        def applied(given: list[dict[str, Any]]) -> Any:
            return client.json("PUT", _PATH, {"rules": given, "bundle": "git", "prune": True})

        for _ in range(_TURNS):
            first = timed("new", "created", lambda: applied(rules))["revision"]
            timed("unchanged", "unchanged", lambda: applied(rules))
            timed("all changed", "changed", lambda: applied(others))
            timed("rolled back", "changed",
                  lambda first=first: client.json("POST", f"{_PATH}/revisions/{first}/rollback", {}))
            client.request("DELETE", _PATH, ok=(204,))
    for work, figures in taken.items():
        elapsed, processor = (min(each) for each in zip(*figures, strict=True))
        table.add_row(work, f"{elapsed:.2f}", f"{processor:.2f}", "0.5" if work == "unchanged" else "2")
    Console(width=100).print(table)
