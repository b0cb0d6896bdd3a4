"""The cost of a callback by the number of nodes that wait: ``tox -e perf -- inspection`` prints the table.

The API in process over a real database, with a conductor that only records calls; the two services alternate, request
by request, so that other load of the machine affects both. No test fails for being slow: the figures are for people.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
import pytest
from oslo_config import cfg
from oslo_db import options as db_options
from rich.console import Console
from rich.table import Table

from ironic_rules import conf as service_conf
from ironic_rules.api.app import make_app
from ironic_rules.db import node_sets, nodes, ports
from ironic_rules.db.session import Database
from tests.fakes import FakeConductorAPI
from tests.functional import databases
from tests.functional.api.conftest import Client
from tests.functional.api.raw import send
from tests.perf import loads

_FEW, _MANY = 100, 5000
_ROUNDS = 300
_BAR = 1.2
_MISS_BAR_MS = 5.0


class Cost(NamedTuple):
    """Medians of one POST in milliseconds: from request to reply, and of the processor."""

    elapsed: float
    processor: float


def _body(number: int, *, macs: bool, bmc: bool) -> bytes:
    body = loads.inventory(number)
    if not macs:
        body["inventory"]["interfaces"] = []
    if not bmc:
        body["inventory"]["bmc_address"] = None
    return orjson.dumps(body)


#: by case: the status, and the body for the n-th request to a service with so many nodes
_CASES: dict[str, tuple[int, Callable[[int, int], bytes]]] = {
    "miss": (404, lambda turn, count: _body(1_000_000 + turn, macs=True, bmc=True)),
    "MAC": (200, lambda turn, count: _body(turn * 37 % count, macs=True, bmc=False)),
    "BMC": (200, lambda turn, count: _body(turn * 37 % count, macs=False, bmc=True)),
    "MAC and BMC": (200, lambda turn, count: _body(turn * 37 % count, macs=True, bmc=True)),
}


def _fill(database: Database, count: int) -> None:
    """Store ``count`` nodes in INSPECT WAIT, each with two ports and a BMC address."""
    for first in range(0, count, 500):
        with database.writer() as conn:
            for number in range(first, min(first + 500, count)):
                node = nodes.create(conn, {"driver": "fake-hardware", "provision_state": "inspect wait",
                                           "inspect_interface": "agent"})
                for nic in range(2):
                    ports.create(conn, {"node_id": node.id, "address": loads.mac(number, nic)})
                node_sets.set_bmc_addresses(conn, node.id, [loads.bmc(number)])


@contextlib.contextmanager
def _service(kind: str, count: int) -> Iterator[Client]:
    conf = cfg.ConfigOpts()
    service_conf.register_opts(conf)
    db_options.set_defaults(conf)
    conf([], project="ironic-rules", default_config_files=[], default_config_dirs=[])
    with databases.migrated_database(kind) as url:
        database = databases.open_database(url)
        _fill(database, count)
        yield Client(make_app(conf, database, FakeConductorAPI()))
        database.dispose()


def _measure(services: dict[int, Client]) -> dict[str, dict[int, Cost]]:
    found: dict[str, dict[int, list[Cost]]] = {case: {count: [] for count in services} for case in _CASES}
    for turn in range(_ROUNDS):
        for case, (status, body) in _CASES.items():
            for count, app in services.items():
                sent = body(turn, count)
                elapsed, processor = time.perf_counter(), time.thread_time()
                reply = send(app, "POST", "/v1/continue_inspection", "", sent,
                             HTTP_X_OPENSTACK_IRONIC_API_VERSION="1.1")
                cost = Cost((time.perf_counter() - elapsed) * 1e3, (time.thread_time() - processor) * 1e3)
                assert reply.status == status, reply
                found[case][count].append(cost)
    return {case: {count: _median(costs) for count, costs in by_count.items()} for case, by_count in found.items()}


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


@pytest.mark.parametrize("kind", [
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def test_the_table_of_the_lookup(kind: str) -> None:
    with _service(kind, _FEW) as few, _service(kind, _MANY) as many:
        costs: dict[str, dict[int, Any]] = _measure({_FEW: few, _MANY: many})
    table = Table(title=f"POST continue_inspection on {kind}, median of {_ROUNDS}, ms")
    for column in ("found by", f"{_FEW} waiting", f"{_MANY:,} waiting", "ratio", "bar",
                   f"processor, {_FEW}", f"processor, {_MANY:,}", "ratio", "bar"):
        table.add_column(column, justify="left" if column == "found by" else "right")
    for case, by_count in costs.items():
        low, high = by_count[_FEW], by_count[_MANY]
        table.add_row(case, f"{low.elapsed:.2f}", f"{high.elapsed:.2f}", f"{high.elapsed / low.elapsed:.2f}", f"{_BAR}",
                      f"{low.processor:.2f}", f"{high.processor:.2f}", f"{high.processor / low.processor:.2f}",
                      f"{_MISS_BAR_MS} ms" if case == "miss" else "")
    Console(width=130).print(table)
    assert all(cost.processor > 0 for by_count in costs.values() for cost in by_count.values())
