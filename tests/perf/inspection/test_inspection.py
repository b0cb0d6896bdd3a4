"""Inspections end to end: with many rules, and with several conductors.

``tox -e perf -- inspection`` prints the tables; with ``IRONIC_RULES_REFERENCE`` set, with the reference service's
figures of the same run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from tests.perf import loads, reference
from tests.perf.processes import Measured, ours
from tests.perf.sites import site

Figures = dict[str, float]
RULES = (0, 100)
CONCURRENCY = (1, 4, 8)
#: The reference needs more than a second for each node that 100 rules match.
NODES = {"ironic-rules": 200, "reference": 24}


def inspections(service: Measured, nodes: int) -> Figures:
    """Return nodes per second and POST latencies, without rules and with a hundred that match."""
    figures: Figures = {}
    for rules in RULES:
        if rules:
            loads.create_rules(service.endpoint, rules, matches=True)
        for concurrency in CONCURRENCY:
            rate, posts = loads.inspect(service.endpoint, nodes, concurrency)
            name = f"{rules} rules match, {concurrency} at once"
            figures[f"{name}: nodes/s"] = rate
            figures[f"{name}: POST p95, ms"] = posts.percentile_ms(95)
            loads.delete_all(service.endpoint, "nodes")
    return figures


def show(title: str, figures: dict[str, Figures]) -> None:
    """Print a table, with ratios if there are two columns."""
    table = Table(title=title)
    for column in ("figure", *figures, *(["ratio"] if len(figures) == 2 else [])):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, own in next(iter(figures.values())).items():
        cells = [f"{values[name]:.2f}" for values in figures.values()]
        if len(figures) == 2:
            other = list(figures.values())[1][name]
            cells.append(f"{own / other:.1f}" if name.endswith("/s") else f"1/{other / own:.1f}")
        table.add_row(name, *cells)
    Console(width=110).print(table)


def test_inspections_with_and_without_rules(tmp_path: Path) -> None:
    services: dict[str, Callable[[], contextlib.AbstractContextManager[Measured]]] = {
        "ironic-rules": lambda: ours(tmp_path)}
    venv = reference.environment()
    if venv is not None:
        (tmp_path / "reference").mkdir()
        services["reference"] = lambda: reference.running(tmp_path / "reference", venv)
    figures: dict[str, Figures] = {}
    for name, run in services.items():
        with run() as service:
            figures[name] = inspections(service, NODES[name])
    show("Inspections, one process, SQLite", figures)
    assert all(value > 0 for values in figures.values() for value in values.values())


def test_memory_after_many_inspections(tmp_path: Path) -> None:
    figures: Figures = {}
    done = 0
    with ours(tmp_path) as service:
        for total in (200, 2000):
            loads.inspect(service.endpoint, total - done, 8)
            done = total
            figures[f"resident memory after {total} inspections, MiB"] = service.resident_mib()
    show("Memory of the one-process service", {"ironic-rules": figures})
    assert all(figures.values())


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_two_conductors_over_a_broker_and_a_database_server(tmp_path: Path, kind: str) -> None:
    """2,000 nodes: ``loads.inspect`` fails for one that is lost, and a duplicate name is refused."""
    with site(tmp_path, kind, 1) as cluster:
        rate, posts = loads.inspect(cluster.endpoint, 2000, 8)
    show(f"Two conductors over RabbitMQ and {kind}, 2,000 nodes", {"ironic-rules": {
        "nodes/s": rate, "POST p50, ms": posts.median_ms, "POST p95, ms": posts.percentile_ms(95)}})
    assert rate > 0
