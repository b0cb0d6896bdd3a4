"""Costs that grow with the cloud: ``tox -e perf -- scale`` prints how long requests and periodic work take by its size.

The same requests are measured with 1,000 and 100,000 nodes, of which a tenth waits, with three ports each, and 100 and
10,000 inspection rules; each figure is the shortest of several, since other processes only make it longer.
``IRONIC_RULES_TEST_SCALE`` sets the larger number of nodes. No test fails for being slow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from ironic_rules import service
from ironic_rules.conductor import recovery
from ironic_rules.pxe_filter import settings
from ironic_rules.pxe_filter.sync import Keeper
from ironic_rules.rpc import transport as rpc_transport
from tests.functional.databases import migrated_database
from tests.perf import loads
from tests.perf.client import Client
from tests.perf.processes import ours
from tests.perf.scale import population

_SMALL = 1000
_LARGE = int(os.environ.get("IRONIC_RULES_TEST_SCALE", "100000"))
_REPEAT = 7
Figures = dict[str, float]


def _paths(nodes: int) -> dict[str, str]:
    """Return the measured requests by what they are; pages have 100 rows."""
    middle = nodes // 2
    lists = {
        "nodes": "/v1/nodes?", "in detail": "/v1/nodes?detail=true&",
        "from the middle": f"/v1/nodes?marker={population.node_uuid(middle)}&",
        "sorted by name": "/v1/nodes?sort_key=name&",
        "the same, from the middle": f"/v1/nodes?sort_key=name&marker={population.node_uuid(middle)}&",
        "sorted by provision_state": "/v1/nodes?sort_key=provision_state&",
        "sorted by updated_at, latest first": "/v1/nodes?sort_key=updated_at&sort_dir=desc&",
        "in one provision state": "/v1/nodes?provision_state=manageable&",
        "of an owner": f"/v1/nodes?owner={7:032x}&", "of a resource class": "/v1/nodes?resource_class=baremetal-3&",
        "of a conductor group": "/v1/nodes?conductor_group=group1&", "of a shard": "/v1/nodes?shard=shard3&",
        "of a chassis": f"/v1/nodes?chassis_uuid={population.chassis(3)}&",
        "in maintenance": "/v1/nodes?maintenance=true&", "with a fault": "/v1/nodes?fault=power%20failure&",
        "with an instance": "/v1/nodes?associated=true&", "without an instance": "/v1/nodes?associated=false&",
        "with a text in the description": f"/v1/nodes?description_contains=machine%20{middle}&",
        "with a text that none has": "/v1/nodes?description_contains=nowhere&",
        "ports": "/v1/ports?", "ports in detail": "/v1/ports?detail=true&",
        "ports of a node": f"/v1/ports?node={population.node_uuid(middle)}&",
        "port by address": f"/v1/ports?address={population.address(middle)}&",
        "inspection rules": "/v1/inspection_rules?", "deploy templates": "/v1/deploy_templates?",
        "deploy templates in detail": "/v1/deploy_templates?detail=true&",
    }
    single = {
        "one node by name": f"/v1/nodes/{population.name(middle)}",
        "lookup by MAC address": f"/v1/lookup?addresses={population.address(9 * population.PORTS_PER_NODE)}",
        "counts of provision states": "/v1/node_states",
    }
    return {**{name: path + "limit=100" for name, path in lists.items()}, **single}


def _shortest_ms(work: Callable[[], object]) -> float:
    found = []
    for _ in range(_REPEAT):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found) * 1e3


def _measure(folder: Path, kind: str, size: population.Size, rules: int) -> Figures:
    folder.mkdir()
    with migrated_database(kind) as url:
        population.fill(url, size)
        text = f"[database]\nconnection = {url}\n[conductor]\nrecovery_interval = 3600\n"
        figures: Figures = {}
        with ours(folder, text) as running, Client(running.endpoint) as client:
            client.request("PUT", "/v1/inspection_rules", {
                "rules": [loads.rule(number, False) for number in range(rules)]})
            for name, path in _paths(size.nodes).items():
                figures[name] = _shortest_ms(lambda path=path: client.request("GET", path))  # type: ignore[misc]
            figures["report of an unknown machine"] = _shortest_ms(lambda: client.request(
                "POST", "/v1/continue_inspection", loads.inventory(90_000_000), ok=(404,)))
        return {**figures, **_periodic_work(folder, text)}


def _periodic_work(folder: Path, text: str) -> Figures:
    """Return the figures of what conductors and the PXE filter do by themselves, in this process."""
    hosts = folder / "hosts"
    hosts.mkdir()
    file = folder / "periodic.conf"
    file.write_text(f"[DEFAULT]\ntransport_url = ironic-rules-memory://\n{text}[pxe_filter]\ndhcp_hostsdir = {hosts}\n")
    conf = service.prepare_config([], config_files=[str(file)])
    db, transport = service.make_database(conf), rpc_transport.get_transport(conf)
    conductor = service.make_conductor_service(conf, db, transport)._conductor
    keeper = Keeper(settings.from_conf(conf), db)
    try:
        keeper.open()
        began = time.perf_counter()
        keeper.sync(periodic=True)
        return {"first synchronization of the PXE filter": (time.perf_counter() - began) * 1e3,
                "search for interrupted work": _shortest_ms(lambda: recovery.resume_orphans(conductor)),
                "search for overdue nodes": _shortest_ms(lambda: recovery.fail_overdue(conductor))}
    finally:
        keeper.close()
        transport.cleanup()
        db.dispose()


@pytest.mark.parametrize("kind", [
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def test_the_table_of_sizes(tmp_path: Path, kind: str) -> None:
    small = _measure(tmp_path / "small", kind, population.Size(_SMALL, 100), 100)
    large = _measure(tmp_path / "large", kind, population.Size(_LARGE, 1000), 10_000)
    table = Table(title=f"{kind}: milliseconds, pages of 100 rows")
    for column in ("what", f"{_SMALL:,} nodes", f"{_LARGE:,} nodes", "ratio"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, figure in large.items():
        table.add_row(name, f"{small[name]:.2f}", f"{figure:.2f}", f"{figure / small[name]:.1f}")
    Console(width=110).print(table)
    assert small.keys() == large.keys()
