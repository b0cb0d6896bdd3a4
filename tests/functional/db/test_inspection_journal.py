"""The journal of rejected reports, and enrolment from it, on every kind of database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, discovery, inspection_journal, node_sets, ports
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inspection_journal as table
from ironic_rules.db.tables import inspection_journal_keys as keys
from ironic_rules.exceptions import Conflict, machine_enrolled
from ironic_rules.inspection import enrolment
from ironic_rules.models.rejected_reports import DISCOVERY_OFF, UNKNOWN, WRONG_STATE, RejectedReport
from tests.wordings import refused

MAC, BMC, UUID = "52:54:00:0a:0b:0c", "198.51.100.20", "0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e33"
VALUES = {"driver": "fake-hardware"}


def entry(db: Database, reason: str = DISCOVERY_OFF, **sent: Any) -> Any:
    """Store a report of a machine; return its entry."""
    callback = RejectedReport(reason, "why", None, clock.now(), **sent)
    db.write(lambda conn: inspection_journal.add(conn, [(callback, 1)]))
    with db.reader() as conn:
        return conn.execute(sa.select(table).order_by(table.c.id.desc())).first()


def enroll(db: Database, found: Any) -> Any:
    return db.write(lambda conn: enrolment.enroll(conn, found, VALUES))


def test_the_machine_of_an_entry_is_enrolled_once(db: Database) -> None:
    found = entry(db, macs=(MAC,), bmc_addresses=(BMC,), node_uuid=UUID)
    node = enroll(db, found)
    assert (node.uuid, node.provision_state, node.target_provision_state) == (UUID, "inspect wait", "enroll")
    with db.reader() as conn:
        assert [port.address for port in ports.for_node(conn, node.id)] == [MAC]
        assert node_sets.list_bmc_addresses(conn, node.id) == [BMC]
    with refused(machine_enrolled, match=rf"node {UUID} \(inspect wait\)"):
        enroll(db, found)


def test_a_machine_with_many_addresses_is_found_by_its_bmc(db: Database) -> None:
    found = entry(db, macs=tuple(f"52:54:00:00:00:{number:02x}" for number in range(200)), bmc_addresses=(BMC,))
    with db.reader() as conn:
        assert [each.uuid for each in inspection_journal.list_entries(conn, {"address": BMC}, Page(limit=2))] == [
            found.uuid]


def test_of_two_machines_with_one_bmc_one_is_enrolled(db: Database) -> None:
    machines = [entry(db, bmc_addresses=(BMC,)), entry(db, bmc_addresses=(BMC, "198.51.100.21"))]

    def tried(found: Any) -> bool:
        try:
            return bool(enroll(db, found))
        except Conflict:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(tried, machines * 4)) == 1


def test_the_reason_is_what_the_database_knows_of_the_machine(db: Database, make_node: Callable[..., Any]) -> None:
    assert entry(db, WRONG_STATE, node_uuid=UUID).reason == UNKNOWN
    node = make_node(provision_state="available")
    db.write(lambda conn: node_sets.set_bmc_addresses(conn, node.id, [BMC]))
    found = entry(db, bmc_addresses=(BMC,))
    assert (found.reason, found.nodes[0]["provision_state"]) == (WRONG_STATE, "available")
    assert entry(db, macs=(MAC,)).reason == DISCOVERY_OFF


def test_callbacks_that_are_added_together_are_as_those_added_alone(
        db: Database, make_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    known = [make_node(provision_state=state) for state in ("available", "manageable", "enroll")]
    macs = [f"52:54:00:0a:0b:{number:02x}" for number in range(6)]
    for node, mac in zip(known, macs, strict=False):
        db.write(lambda conn, node=node, mac=mac: ports.create(conn, {"address": mac, "node_id": node.id}))
        db.write(lambda conn, node=node: node_sets.set_bmc_addresses(conn, node.id, [BMC]))
    sent = [
        {"macs": (macs[0], macs[1])}, {"macs": (macs[2],), "bmc_addresses": (BMC,)}, {"macs": (macs[3], macs[4])},
        {"node_uuid": known[1].uuid.upper()}, {"node_uuid": UUID, "macs": (macs[5],)}, {"bmc_addresses": (BMC,)}, {}]
    callbacks = [(RejectedReport(DISCOVERY_OFF, f"why {number}", "192.0.2.1", clock.now(), **each), number + 1)
                 for number, each in enumerate(sent)]

    def written() -> list[tuple[Any, ...]]:
        with db.reader() as conn:
            rows = conn.execute(sa.select(table).order_by(table.c.detail)).all()
            return [(row.machine, row.reason, row.times, row.source, row.detail, row.macs, row.bmc_addresses,
                     row.node_uuid, sorted(row.nodes, key=lambda each: str(each["node"])), sorted(conn.scalars(
                         sa.select(keys.c.value).where(keys.c.entry_id == row.id)))) for row in rows]

    def add_all(*, alone: bool) -> list[tuple[Any, ...]]:
        db.write(lambda conn: conn.execute(sa.delete(table)))
        for given in [[each] for each in callbacks] if alone else [callbacks]:
            db.write(lambda conn, given=given: inspection_journal.add(conn, given))
        return written()

    together = add_all(alone=False)
    assert add_all(alone=True) == together
    assert [len(row[8]) for row in together] == [2, 3, 0, 1, 0, 3, 0]
    for name, value in (("_MOST_TOGETHER", 2), ("_MOST_TOGETHER", 10), ("_MOST", 3)):
        with monkeypatch.context() as context:
            context.setattr(discovery, name, value)
            assert add_all(alone=False) == together
    # Once more, when another node has one of the addresses: each is counted, and found by what it is near to now.
    db.write(lambda conn: ports.create(conn, {"address": macs[4], "node_id": known[0].id}))
    db.write(lambda conn: inspection_journal.add(conn, callbacks))
    again = written()
    assert [row[2] for row in again] == [2 * (number + 1) for number in range(7)]
    assert [row[9] for row in again if row[9] not in [each[9] for each in together]] == [
        sorted([macs[3], macs[4], known[0].uuid])]
