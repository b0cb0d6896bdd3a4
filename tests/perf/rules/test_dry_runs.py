"""The time of a dry run, explained: ``tox -e perf -- rules/test_dry_runs.py`` prints the table.

100 and 1,000 stored rules of two conditions over one report, half of which match, over HTTP with one connection.
Bars: 50 ms and 300 ms at the 95th percentile. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.perf import client as clients
from tests.perf import loads, processes

_BARS_MS = {100: 50, 1000: 300}
_TIMES = 40
_WARM_UP = 3


def _rule(number: int) -> dict[str, Any]:
    matches = number % 2 == 0
    return {"actions": [{"op": "set-attribute", "args": [f"/extra/a{number}", "{inventory[hostname]}"]}],
            "conditions": [{"op": "gt", "args": ["{inventory[cpu][count]}", 0 if matches else 10_000 + number]},
                           {"op": "!eq", "args": ["{inventory[system_vendor][serial_number]}", f"A{number}"]}]}


def _percentile(figures: list[float], part: float) -> float:
    return sorted(figures)[min(len(figures) - 1, int(part * len(figures)))] * 1000


def test_the_table_of_dry_runs(tmp_path: Path) -> None:
    table = Table("rules", "median, ms", "p95, ms", "bar, ms", "least CPU, ms", "median CPU, ms",
                  "reply, KiB", title="Dry runs")
    with processes.ours(tmp_path) as service, clients.Client(service.endpoint) as client:
        node = client.json("POST", "/v1/nodes", {"driver": "fake-hardware"})["uuid"]
        for count, bar in _BARS_MS.items():
            client.json("PUT", "/v1/inspection_rules", {"rules": [_rule(number) for number in range(count)]})
            body = {"node": node, "report": loads.inventory(1)}
            elapsed, processor, size = [], [], 0
            for _ in range(_WARM_UP + _TIMES):
                began, used = time.perf_counter(), service.processor_s()
                size = len(client.request("POST", "/v1/inspection_rules/dry_run", body))
                elapsed.append(time.perf_counter() - began)
                processor.append(service.processor_s() - used)
            wall, cpu = elapsed[_WARM_UP:], processor[_WARM_UP:]
            table.add_row(str(count), *(f"{figure:.1f}" for figure in (
                _percentile(wall, 0.5), _percentile(wall, 0.95), bar, _percentile(cpu, 0), _percentile(cpu, 0.5),
                size / 1024)))
    Console(width=120).print(table)

