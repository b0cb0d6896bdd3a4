"""Facts of many nodes: the bytes that they take, and how fast a new one is found in stored inventories.

``tox -e perf -- facts`` prints the tables. Bars: 4 KiB per node with the built-in facts, and 1,500 nodes per second and
core. ``IRONIC_RULES_TEST_NODES`` sets the number of nodes.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from ironic_rules import samples, service
from ironic_rules.conductor import operations
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import clock, facts, inventory
from ironic_rules.db import tables as t
from ironic_rules.inspection import fact_sets
from tests.functional.databases import temporary_database

_NODES = int(os.environ.get("IRONIC_RULES_TEST_NODES", "20000"))
_TABLES = ("fact_texts", "fact_numbers", "fact_problems", "fact_states")
_SIZE = {
    "postgresql": "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(ARRAY[{}]) AS name",
    "mysql": "SELECT sum(data_length + index_length) FROM information_schema.tables "
             "WHERE table_schema = database() AND table_name IN ({})",
    "sqlite": "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name IN ({}))",
}


@pytest.fixture(params=["sqlite", "mysql", "postgresql"])
def conductor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Conductor]:
    with temporary_database(request.param) as url:
        file = tmp_path / "perf.conf"
        file.write_text("[DEFAULT]\nhost = perf\ntransport_url = ironic-rules-memory://\n"
                        f"[database]\nconnection = {url}\n")
        conf = service.prepare_config([], config_files=[str(file)])
        db = service.make_database(conf, upgrade=True)
        yield service.make_conductor(conf, db)
        db.dispose()


def _fill(conductor: Conductor) -> None:
    """Write nodes with inventories, half of them of either sample."""
    bodies = [samples.inventory(name) for name in ("dell-r660", "hpe-dl380-gen11")]
    for first in range(0, _NODES, 500):
        numbers = range(first, min(_NODES, first + 500))
        with conductor.db.writer() as conn:
            conn.execute(sa.insert(t.nodes), [
                {"id": number + 1, "uuid": f"00000000-0000-4000-8000-{number:012d}", "driver": "fake-hardware",
                 "provision_state": "manageable", "created_at": clock.now()} for number in numbers])
            conn.execute(sa.insert(t.node_inventory), [
                {"node_id": number + 1, "inventory_data": data["inventory"], "received_plugin_data": {},
                 "plugin_data": {key: value for key, value in data.items() if key not in ("inventory", "logs")},
                 "status": inventory.PROCESSED, "created_at": clock.now()}
                for number in numbers for data in [_of(bodies[number % 2], number)]])


def _of(body: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the report of one of many machines, each of which has its own numbers and addresses."""
    made = copy.deepcopy(body)
    found = made["inventory"]
    found["system_vendor"]["serial_number"] = f"S{number:07d}"
    found["bmc_address"] = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    for place, interface in enumerate(found["interfaces"]):
        interface["mac_address"] = f"52:54:{place:02x}:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
    return made


def _find(conductor: Conductor, names: list[str] | None) -> tuple[float, float]:
    """Have facts found on all nodes; return the seconds that it took, and those of this processor."""
    with conductor.db.writer() as conn:
        wanted = [fact for fact in facts.all_facts(conn) if names is None or fact.name in names]
        fact_sets.begin(conn, wanted, None)
    began, spent = time.monotonic(), time.process_time()
    while operations.work(conductor):
        pass
    return time.monotonic() - began, time.process_time() - spent


def _size(conductor: Conductor) -> float:
    db = conductor.db
    quoted = ", ".join(f"'{name}'" for name in _TABLES)
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        if db.dialect == "mysql":
            conn.exec_driver_sql(f"ANALYZE TABLE {', '.join(_TABLES)}").all()
        return float(conn.exec_driver_sql(_SIZE[db.dialect].format(quoted)).scalar_one() or 0)


def test_the_table_of_facts(conductor: Conductor) -> None:
    _fill(conductor)
    empty = _size(conductor)
    all_s, all_cpu_s = _find(conductor, None)
    size = (_size(conductor) - empty) / _NODES
    one_s, one_cpu_s = _find(conductor, ["memory_gib"])
    with conductor.db.reader() as conn:
        rows = sum(conn.execute(sa.select(sa.func.count()).select_from(t.metadata.tables[name])).scalar_one()
                   for name in _TABLES[:2]) / _NODES
    table = Table("figure", "value", title=f"{conductor.db.dialect}, {_NODES} nodes, {rows:.0f} values each")
    table.add_row("bytes per node", f"{size:.0f}")
    table.add_row("one fact, nodes/s", f"{_NODES / one_s:.0f}")
    table.add_row("one fact, nodes per second of this processor", f"{_NODES / one_cpu_s:.0f}")
    table.add_row("all facts, nodes/s", f"{_NODES / all_s:.0f}")
    table.add_row("all facts, nodes per second of this processor", f"{_NODES / all_cpu_s:.0f}")
    Console(width=100).print(table)
