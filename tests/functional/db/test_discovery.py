"""Discovery by many processes at once, on every kind of database."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import options as db_options

from ironic_rules import conf as service_conf
from ironic_rules.db import conductors, discovery, node_sets, nodes, outbox, ports
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.db.tables import events
from ironic_rules.exceptions import LookupFailed
from ironic_rules.inspection import discovery as inspection_discovery
from ironic_rules.inspection import payload
from tests.functional import databases
from tests.functional.api.conftest import FAKE_HARDWARE
from tests.functional.db.concurrency import at_once

AT_ONCE = 12


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    made = cfg.ConfigOpts()
    service_conf.register_opts(made)
    db_options.set_defaults(made)
    made([], project="ironic-rules", default_config_files=[], default_config_dirs=[])
    for name, value in (("enabled", True), ("driver", "fake-hardware"), ("max_nodes_per_minute", 60)):
        made.set_default(name, value, group="auto_discovery")
    yield made
    for name, value in (("enabled", False), ("driver", None), ("max_nodes_per_minute", 60)):
        made.set_default(name, value, group="auto_discovery")
    made.clear_override("add_ports", group="inspector")


@pytest.fixture
def processes(db: Database) -> list[Database]:
    """Databases as several processes use them: each with its own connections."""
    with db.writer() as conn:
        conductors.register(conn, "conductor-1", "", FAKE_HARDWARE, "instance-1")
    url = db.engine.url.render_as_string(hide_password=False)
    opened = [databases.open_database(url) for _ in range(3)]
    yield opened
    for database in opened:
        database.dispose()


def sent(*macs: str, bmc: str | None = None) -> payload.Payload:
    return payload.split({"inventory": {"bmc_address": bmc, "interfaces": [
        {"name": f"eth{number}", "mac_address": mac, "ipv4_address": None if number else "192.0.2.1"}
        for number, mac in enumerate(macs)]}})


def enrol(processes: list[Database], conf: cfg.ConfigOpts, machines: list[payload.Payload]) -> list[Any]:
    return at_once([partial(inspection_discovery.find_or_create, processes[number % 3], conf, machine)
                    for number, machine in enumerate(machines)])


def stored(db: Database) -> list[Any]:
    with db.reader() as conn:
        return nodes.list_nodes(conn, {}, Page(limit=100))


@pytest.mark.parametrize(("machine", "add_ports"), [
    (sent("52:54:00:00:00:01", "52:54:00:00:00:02", bmc="192.0.2.1"), "all"), (sent(bmc="192.0.2.1"), "all"),
    (sent("52:54:00:00:00:01"), "disabled"),
], ids=["MAC", "BMC only", "no ports"])
def test_one_machine_at_once_makes_one_node(db: Database, processes: list[Database], conf: cfg.ConfigOpts,
                                            machine: payload.Payload, add_ports: str) -> None:
    conf.set_override("add_ports", add_ports, group="inspector")

    found = enrol(processes, conf, [machine] * AT_ONCE)

    node, = stored(db)
    assert {getattr(row, "uuid", row) for row in found} == {node.uuid}
    # A conductor accepts it once, however many requests there are.
    accepted = at_once([partial(process.write, partial(_accept, node_id=node.id)) for process in processes * 2])
    assert sorted(accepted) == [False] * 5 + [True]
    with pytest.raises(LookupFailed):
        inspection_discovery.find_or_create(db, conf, machine)


def _accept(conn: sa.Connection, node_id: int) -> bool:
    return discovery.accept(conn, node_id)


def test_machines_that_overlap_make_no_second_owner_of_an_address(
        db: Database, processes: list[Database], conf: cfg.ConfigOpts) -> None:
    enrol(processes, conf, [sent(f"52:54:00:00:00:0{number}", f"52:54:00:00:00:0{number + 1}") for number in range(8)])

    with db.reader() as conn:
        owners = [ports.for_node(conn, node.id) for node in stored(db)]
    addresses = [port.address for owned in owners for port in owned]
    assert len(addresses) == len(set(addresses)) == 2 * len(owners)


def test_the_limit_holds_over_all_processes(db: Database, processes: list[Database], conf: cfg.ConfigOpts) -> None:
    conf.set_default("max_nodes_per_minute", 5, group="auto_discovery")

    found = enrol(processes, conf, [sent(f"52:54:00:00:01:{number:02x}") for number in range(AT_ONCE)])

    assert sum(isinstance(row, LookupFailed) for row in found) == AT_ONCE - 5
    assert len(stored(db)) == 5


@pytest.mark.parametrize(("add_ports", "expected", "rest"), [
    ("all", ["52:54:00:00:00:01", "52:54:00:00:00:02"], set()),
    ("active", ["52:54:00:00:00:01"], {"52:54:00:00:00:02"}),
    ("disabled", [], {"52:54:00:00:00:01", "52:54:00:00:00:02"}),
])
def test_a_node_is_made_whole(db: Database, processes: list[Database], conf: cfg.ConfigOpts, add_ports: str,
                              expected: list[str], rest: set[str]) -> None:
    conf.set_override("add_ports", add_ports, group="inspector")

    node = inspection_discovery.find_or_create(
        db, conf, sent("52:54:00:00:00:01", "52:54:00:00:00:02", bmc="192.0.2.1"))

    with db.reader() as conn:
        assert [port.address for port in ports.for_node(conn, node.id)] == expected
        assert {mac for mac in ("52:54:00:00:00:01", "52:54:00:00:00:02") if discovery.node_ids(conn, [mac])} == rest
        assert node_sets.list_bmc_addresses(conn, node.id) == ["192.0.2.1"]
        assert discovery.is_pending(conn, node.id)
    assert (node.provision_state, node.auto_discovered, node.inspect_interface) == ("enroll", True, "agent")


def test_what_nobody_accepted_can_be_withdrawn_and_the_rest_not(
        db: Database, processes: list[Database], conf: cfg.ConfigOpts) -> None:
    fresh, taken, changed = (
        inspection_discovery.find_or_create(db, conf, sent(f"52:54:00:00:00:0{number}")).id for number in range(3))
    with db.writer() as conn:
        nodes.reserve(conn, nodes.Lock(taken, "conductor-1", "run:1"), "test")
        nodes.update(conn, changed, {"name": "mine"})

    outbox.want(db.engine, outbox.Wanted("info", False, "conductor-1"))
    try:
        withdrawn = [db.write(partial(discovery.withdraw, node_id=node_id))
                     for node_id in (fresh, taken, changed, fresh)]
    finally:
        db.engine.update_execution_options(**{"ironic_rules.events": None})

    assert withdrawn == [True, False, False, False]
    with db.reader() as conn:
        assert list(conn.scalars(sa.select(events.c.type).order_by(events.c.id))) == [
            "baremetal.node.delete.start", "baremetal.node.delete.end"]
    assert {node.id for node in stored(db)} == {taken, changed}
