"""Flavors over HTTP: ``tox -e perf -- flavors`` prints the table. No test fails for being slow."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from ironic_rules.db import nodes
from ironic_rules.db.tables import node_traits
from ironic_rules.db.tables import nodes as nodes_table
from tests.functional import databases
from tests.perf import loads
from tests.perf.client import Timing, run
from tests.perf.processes import ours

_NODES, _FLAVORS = 10_000, 1000
_CLASS = {"resources:CUSTOM_GOLD": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}
_SPECS = {**_CLASS, "hw:cpu_policy": "dedicated", "hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3",
          "hw:numa_mem.0": "1024",
          "hw:mem_page_size": "large", "capabilities:boot_mode": "uefi",
          **{f"trait:CUSTOM_T{number}": "required" for number in range(10)}}
#: figure: p95 in milliseconds that is wanted
_BARS = {"POST of 20 extra specs": 10, f"explanation, {_NODES:,} nodes": 50,
         f"explanation with a capability, {_NODES:,} nodes": 50, f"list of {_FLAVORS:,}, detail": 50}


def _fill(folder: Path) -> None:
    """Store nodes of one resource class, half of them available, with a trait and capabilities."""
    database = databases.open_database(f"sqlite:///{folder}/state/ironic-rules.sqlite")
    with database.writer() as conn:
        first = nodes.create(conn, {"driver": "fake-hardware", "resource_class": "gold", "power_state": "power off",
                                    "provision_state": "available"})
        row = dict(conn.execute(sa.select(nodes_table)).one()._mapping)
        rows = [{**row, "id": first.id + number, "uuid": str(uuid.uuid4()), "maintenance": number % 2 == 0,
                 "properties": {"memory_mb": number, "cpu_arch": "x86_64",
                                "capabilities": f"boot_mode:{'bios' if number % 3 else 'uefi'},raid:1"}}
                for number in range(1, _NODES)]
        conn.execute(sa.insert(nodes_table), rows)
        conn.execute(sa.insert(node_traits), [
            {"node_id": found["id"], "trait": "CUSTOM_RAID"} for found in rows if found["id"] % 5])
    database.dispose()


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Timing]:
    folder = tmp_path_factory.mktemp("ours")
    with ours(folder) as service:
        url = service.endpoint
        run(url, _FLAVORS, 1, lambda client, number: client.request("POST", "/v1/flavors", {"flavor": {
            "id": f"f{number}", "name": f"flavor-{number}", "ram": 1, "vcpus": 1, "disk": 1}}))
        found = {"POST of 20 extra specs": run(url, _FLAVORS, 1, lambda client, number: client.request(
            "POST", f"/v1/flavors/f{number}/os-extra_specs", {"extra_specs": _SPECS}))}
        found[f"list of {_FLAVORS:,}, detail"] = loads.repeat_get(url, f"/v1/flavors/detail?limit={_FLAVORS}", 30)
        _fill(folder)
        for number, (name, more) in enumerate((("explanation", {}), (
                "explanation with a capability", {"capabilities:boot_mode": "uefi"}))):
            specs = {**_CLASS, "trait:CUSTOM_RAID": "required", **more}
            run(url, 1, 1, lambda client, _, number=number, specs=specs: (  # type: ignore[misc]
                client.request("POST", "/v1/flavors", {"flavor": {
                    "id": f"e{number}", "name": f"e{number}", "ram": 1, "vcpus": 1, "disk": 1}}),
                client.request("POST", f"/v1/flavors/e{number}/os-extra_specs", {"extra_specs": specs})))
            found[f"{name}, {_NODES:,} nodes"] = loads.repeat_get(url, f"/v1/flavors/e{number}/explanation", 30)
    return found


def test_the_table_of_flavors(figures: dict[str, Timing]) -> None:
    table = Table(title="Flavors: p50, p95 and the wanted p95 in ms")
    for column in ("figure", "p50", "p95", "bar"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for name, bar in _BARS.items():
        table.add_row(name, f"{figures[name].median_ms:.2f}", f"{figures[name].percentile_ms(95):.2f}", str(bar))
    Console(width=100).print(table)
    assert len(_SPECS) == 20
    assert figures.keys() == _BARS.keys()
