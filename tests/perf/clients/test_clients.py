"""The cost of a request with 1, 4 and 8 clients: ``tox -e perf -- clients`` prints the tables.

Per request, the processor time of the service in and outside of the kernel, and its memory; of lists also with one and
two API processes and database servers. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.perf import loads, sites
from tests.perf.client import Client
from tests.perf.processes import Measured, ours

_CLIENTS = (1, 4, 8)
#: Number of series in turns, of which the median is shown.
_SERIES = 5
#: name -> path and number of requests
_REQUESTS = {
    "list of 1,000 nodes": ("/v1/nodes?limit=1000", 60),
    "list of 1,000 nodes, detail": ("/v1/nodes?limit=1000&detail=true", 40),
    "list of 1,000 rules, detail": ("/v1/inspection_rules?limit=1000&detail=true", 40),
    "one node by name": ("/v1/nodes/{name}", 400),
    "GET /": ("/", 400),
}


def measure(service: Measured, path: str, count: int, clients: int) -> list[float]:
    """Return requests per second, milliseconds per request (user, kernel, p50, p95) and MiB (now, peak)."""
    before = service.times_s()
    timing = loads.repeat_get(service.endpoint, path, count, clients)
    user, kernel = (1e3 * (after - first) / count for after, first in zip(service.times_s(), before, strict=True))
    return [timing.per_second, user, kernel, timing.median_ms, timing.percentile_ms(95), service.resident_mib(),
            service.peak_mib()]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], list[float]]:
    with ours(tmp_path_factory.mktemp("ours")) as service:
        loads.create_nodes(service.endpoint, 1000)
        loads.create_rules(service.endpoint, 1000)
        with Client(service.endpoint) as client:
            node = client.json("GET", "/v1/nodes?limit=1&fields=name")["nodes"][0]["name"]
        return {(name, clients): measure(service, path.format(name=node), count, clients)
                for name, (path, count) in _REQUESTS.items() for clients in _CLIENTS}


def test_the_cost_of_clients(figures: dict[tuple[str, int], list[float]]) -> None:
    table = Table(title="Requests with several clients")
    for column in ("request", "clients", "requests/s", "user, ms", "kernel, ms", "p50, ms", "p95, ms", "MiB",
                   "peak, MiB"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for (name, clients), values in figures.items():
        table.add_row(name, str(clients), *(f"{value:.1f}" for value in values))
    Console(width=120).print(table)
    assert all(values[0] > 0 for values in figures.values())


def measure_site(site: sites.Site, path: str, count: int, clients: int) -> list[float]:
    """Return requests per second, and milliseconds of the API and of the database server per request."""
    before, began = site.times_s(), time.monotonic()
    loads.repeat_get(site.endpoint, path, count, clients)
    taken, after = time.monotonic() - began, site.times_s()
    return [count / taken, *(1e3 * (after[name] - before[name]) / count for name in ("API", "database"))]


def medians(site: sites.Site, path: str, count: int) -> dict[int, list[float]]:
    """Return what :func:`measure_site` does by number of clients: medians of series in turns."""
    series = [{clients: measure_site(site, path, count, clients) for clients in _CLIENTS} for _ in range(_SERIES)]
    return {clients: [statistics.median(values) for values in zip(*(each[clients] for each in series), strict=True)]
            for clients in _CLIENTS}


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_lists_of_several_processes(tmp_path: Path, kind: str) -> None:
    table = Table(title=escape(f"Lists, {kind}, by processes of [api]workers"))
    for column in ("workers", "request", "clients", "requests/s", "to one client", "API, ms", "database, ms"):
        table.add_column(column, justify="left" if column == "request" else "right")
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        with sites.site(folder, kind, 1, f"[api]\nworkers = {workers}\n") as site:
            loads.create_nodes(site.endpoint, 1000)
            loads.create_rules(site.endpoint, 1000)
            sites.gather_statistics(site)
            for name, (path, count) in _REQUESTS.items():
                if not name.startswith("list"):
                    continue
                found = medians(site, path, count)
                for clients, (rate, api, server) in found.items():
                    table.add_row(str(workers), name, str(clients), f"{rate:.0f}", f"{rate / found[1][0]:.2f}",
                                  f"{api:.1f}", f"{server:.1f}")
                assert all(rate > 0 for rate, _, _ in found.values())
    Console(width=120).print(table)
