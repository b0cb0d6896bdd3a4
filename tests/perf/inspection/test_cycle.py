"""The whole cycle of a machine: ``tox -e perf -- inspection/test_cycle.py`` prints what it costs each process.

An operator enrolls a node and a port, manages and inspects the node; its ramdisk reports, and the operator asks until
the node is manageable: some 14 requests. Times are of processors, also those of the database server and the broker if
they run on this machine. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.perf import loads
from tests.perf.client import Client, run
from tests.perf.inspection.test_inspection import Figures, show
from tests.perf.processes import ours
from tests.perf.sites import Site, gather_statistics, site

_ROUNDS = 3


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


def _spent(site: Site, before: dict[str, float], nodes: int) -> Figures:
    each = {name: (after - before[name]) / nodes * 1e3 for name, after in site.times_s().items()}
    return {"all, ms/node": sum(each.values()), **{f"  {name}, ms/node": value for name, value in each.items()}}


@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_one_api_and_two_conductors_over_a_broker(tmp_path: Path, kind: str) -> None:
    nodes, times = 200, 10
    with site(tmp_path, kind, 1) as cluster:
        _cycles(cluster.endpoint, 40, 8)
        found: list[Figures] = []
        for _ in range(times):
            before = cluster.times_s()
            rate = _cycles(cluster.endpoint, nodes, 8)
            found.append({"nodes/s": rate, **_spent(cluster, before, nodes)})
            gather_statistics(cluster)
        first = loads.enter_inspect_wait(cluster.endpoint, nodes)
        before = cluster.times_s()
        rate, _ = loads.report_all(cluster.endpoint, first, nodes, 8)
        reports = {"nodes/s": rate, **_spent(cluster, before, nodes)}
    show(f"The cycle of {nodes} machines, 8 at once, RabbitMQ and {kind}; what was before remains", {
        "the first": found[0], "the second": found[1], f"the {times}th": found[-1], "only reports": reports})
    assert all(each["nodes/s"] > 0 for each in found)


def test_two_apis_and_two_conductors_inspect(tmp_path: Path) -> None:
    nodes = 400
    with site(tmp_path, "mysql", 2) as cluster:
        loads.inspect(cluster.endpoint, 40, 8)
        found: list[Figures] = []
        for _ in range(_ROUNDS):
            first = loads.enter_inspect_wait(cluster.endpoint, nodes)
            before = cluster.times_s()
            rate, _ = loads.report_all(cluster.endpoint, first, nodes, 8)
            found.append({"nodes/s": rate, **_spent(cluster, before, nodes)})
    show("Inspections by one of two APIs and two conductors, RabbitMQ and MariaDB, 8 at once; median of three", {
        "ironic-rules": {name: statistics.median(each[name] for each in found) for name in found[0]}})
    assert all(each["nodes/s"] > 0 for each in found)
