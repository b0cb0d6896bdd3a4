"""The cost of counting: CPU time per request, per stage of an inspection, and per page, in this process.

A request and a stage may take 15 microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ironic_rules.api.access_log import RequestMetrics
from ironic_rules.api.routes import find
from ironic_rules.api.v1 import RootController
from ironic_rules.metrics import exporter
from ironic_rules.metrics.catalog import FAMILIES, HISTOGRAM
from ironic_rules.metrics.numbers import Numbers, Stages

_TIMES = 50_000


def cpu_us(work: Callable[[], object]) -> float:
    """Return the CPU time of one call in microseconds: the least of five series."""
    series = []
    for _ in range(5):
        began = time.thread_time()
        for _ in range(_TIMES):
            work()
        series.append((time.thread_time() - began) / _TIMES * 1e6)
    return min(series)


def test_what_counting_costs():
    numbers, root = Numbers(), RootController()
    environ = {"REQUEST_METHOD": "GET", "ironic_rules.found": find(root, "GET", "/v1/nodes/x")}

    def app(environ: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [])
        return []

    counted = RequestMetrics(app, root, numbers)
    start: Any = lambda status, headers: None  # noqa: E731  (as a server's)
    request = cpu_us(lambda: counted(environ, start)) - cpu_us(lambda: app(environ, start))

    def stage() -> None:
        stages.begin("hooks")
        numbers.observe("inspection_stage_duration_seconds", 0.1, "hooks")

    stages = Stages("start")
    of_stage = cpu_us(stage)

    for family in FAMILIES.values():  # as many series as a busy API has
        if family.kind == HISTOGRAM:
            for number in range(100):
                numbers.observe(family.name, 0.1, *(f"{label}-{number}" for label in family.labels))
    page = exporter.page_of(exporter.NumbersCollector(numbers), "the benchmark")
    began = time.thread_time()
    _, text = page("")
    of_page = (time.thread_time() - began) * 1000

    print(f"\nCPU time per request: {request:.2f} us; per stage: {of_stage:.2f} us; "
          f"per page of {len(text) / 1024:.0f} KiB: {of_page:.1f} ms")
