"""The whole cycle of a machine: ``tox -e perf -- inspection/test_cycle.py`` prints what it costs each process.

An operator enrols a node and a port, manages and inspects the node; its ramdisk reports, and the operator asks until
the node is manageable: some 14 requests. Times are of processors, also those of the database server and the broker if
they run on this machine. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from tests.functional.brokers import temporary_vhost
from tests.functional.databases import temporary_database
from tests.functional.processes import Cluster
from tests.perf import loads
from tests.perf.client import Client, run
from tests.perf.inspection.test_inspection import Figures, show
from tests.perf.processes import all_s, listener, ours

_ROUNDS = 3
_OPTIONS = ("heartbeat_interval = 10\nheartbeat_timeout = 60\nrecovery_interval = 10\n[pxe_filter]\nnotify = false\n")


def _cycle(client: Client, number: int) -> None:
    loads._enter_inspect_wait(client, number, {})
    client.request("POST", "/v1/continue_inspection", loads.inventory(number))
    loads._until(lambda: loads._has_reached(client, f"bench-{number}", "manageable"))


def _cycles(endpoint: str, nodes: int, clients: int) -> float:
    """Let so many machines go through the cycle; return nodes per second."""
    first = next(loads._numbers) * 100_000
    return run(endpoint, nodes, clients, lambda client, number: _cycle(client, first + number)).per_second


def test_one_process(tmp_path: Path) -> None:
    clients = (1, 2, 4, 8)
    costs: dict[int, list[float]] = {number: [] for number in clients}
    rates: dict[int, list[float]] = {number: [] for number in clients}
    with ours(tmp_path) as service:
        for turn in range(_ROUNDS + 1):
            for number in clients[turn % 2 * 2:] + clients[:turn % 2 * 2]:
                began = service.processor_s()
                rate = _cycles(service.endpoint, 48, number)
                # The first turn is a warm-up.
                if turn:
                    costs[number].append((service.processor_s() - began) / 48 * 1e3)
                    rates[number].append(rate)
                loads.delete_all(service.endpoint, "nodes")
    show("The cycle of a machine, one process, SQLite, median of three", {"ironic-rules": {
        f"{number} at once: {name}": statistics.median(found[number])
        for number in clients for name, found in (("ms/node", costs), ("nodes/s", rates))}})
    assert all(value > 0 for values in costs.values() for value in values)


@dataclass(frozen=True)
class _Site:
    """The processes of a cluster, and of its servers, by name."""

    endpoint: str
    database: str
    pids: dict[str, list[int]]

    def times_s(self) -> dict[str, float]:
        return {name: sum(map(all_s, pids)) for name, pids in self.pids.items()}


@contextmanager
def _site(folder: Path, kind: str, apis: int) -> Iterator[_Site]:
    """Run API processes and two conductors over RabbitMQ; clients use the first API."""
    with temporary_database(kind) as database, temporary_vhost() as transport:
        cluster = Cluster(folder, database, transport, _OPTIONS)
        try:
            cluster.sync_database()
            conductors = [cluster.conductor(f"conductor-{number}").pid for number in range(2)]
            started = [cluster.api(f"api-{number}") for number in range(apis)]
            servers = {name: listener(urlsplit(url.partition("+")[2] if "+" in url else url).port or 0)
                       for name, url in (("database", database), ("broker", transport))}
            yield _Site(started[0][1], database, {
                "API": [api.pid for api, _ in started], "conductors": conductors,
                **{name: pids for name, pids in servers.items() if pids}})
        finally:
            cluster.close()


def _gather_statistics(site: _Site) -> None:
    """Do what PostgreSQL does by itself once in a minute, unless autovacuum is off.

    Until then, sessions use the plans that they made when the tables were empty: reading them from end to end.
    """
    if site.database.startswith("postgresql"):
        engine = sa.create_engine(site.database, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            conn.exec_driver_sql("ANALYZE")
        engine.dispose()


def _spent(site: _Site, before: dict[str, float], nodes: int) -> Figures:
    each = {name: (after - before[name]) / nodes * 1e3 for name, after in site.times_s().items()}
    return {"all, ms/node": sum(each.values()), **{f"  {name}, ms/node": value for name, value in each.items()}}


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_one_api_and_two_conductors_over_a_broker(tmp_path: Path, kind: str) -> None:
    nodes, times = 200, 10
    with _site(tmp_path, kind, 1) as site:
        _cycles(site.endpoint, 40, 8)
        found: list[Figures] = []
        for _ in range(times):
            before = site.times_s()
            rate = _cycles(site.endpoint, nodes, 8)
            found.append({"nodes/s": rate, **_spent(site, before, nodes)})
            _gather_statistics(site)
        first = loads.enter_inspect_wait(site.endpoint, nodes)
        before = site.times_s()
        rate, _ = loads.report_all(site.endpoint, first, nodes, 8)
        reports = {"nodes/s": rate, **_spent(site, before, nodes)}
    show(f"The cycle of {nodes} machines, 8 at once, RabbitMQ and {kind}; what was before remains", {
        "the first": found[0], "the second": found[1], f"the {times}th": found[-1], "only reports": reports})
    assert all(each["nodes/s"] > 0 for each in found)


def test_two_apis_and_two_conductors_inspect(tmp_path: Path) -> None:
    nodes = 400
    with _site(tmp_path, "mysql", 2) as site:
        loads.inspect(site.endpoint, 40, 8)
        found: list[Figures] = []
        for _ in range(_ROUNDS):
            first = loads.enter_inspect_wait(site.endpoint, nodes)
            before = site.times_s()
            rate, _ = loads.report_all(site.endpoint, first, nodes, 8)
            found.append({"nodes/s": rate, **_spent(site, before, nodes)})
    show("Inspections by one of two APIs and two conductors, RabbitMQ and MariaDB, 8 at once; median of three", {
        "ironic-rules": {name: statistics.median(each[name] for each in found) for name in found[0]}})
    assert all(each["nodes/s"] > 0 for each in found)
