"""The journal of refused callbacks, and enrolment from it, on every kind of database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import bmc_addresses, clock, inspection_journal, ports
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inspection_journal as table
from ironic_rules.exceptions import MachineEnrolled
from ironic_rules.inspection import enrolment
from ironic_rules.models.refused_callbacks import DISCOVERY_OFF, UNKNOWN, WRONG_STATE, RefusedCallback

MAC, BMC, UUID = "52:54:00:0a:0b:0c", "198.51.100.20", "0f7a2a68-3d7c-49f8-8a5c-6d9b6a7c1e33"
VALUES = {"driver": "fake-hardware"}


def entry(db: Database, reason: str = DISCOVERY_OFF, **sent: Any) -> Any:
    """Store a callback of a machine; return its entry."""
    db.write(lambda conn: inspection_journal.add(conn, RefusedCallback(reason, "why", None, clock.now(), **sent), 1))
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
        assert bmc_addresses.list_for(conn, node.id) == [BMC]
    with pytest.raises(MachineEnrolled, match=rf"node {UUID} \(inspect wait\)"):
        enroll(db, found)


def test_of_two_machines_with_one_bmc_one_is_enrolled(db: Database) -> None:
    machines = [entry(db, bmc_addresses=(BMC,)), entry(db, bmc_addresses=(BMC, "198.51.100.21"))]

    def tried(found: Any) -> bool:
        try:
            return bool(enroll(db, found))
        except MachineEnrolled:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(tried, machines * 4)) == 1


def test_the_reason_is_what_the_database_knows_of_the_machine(db: Database, make_node: Callable[..., Any]) -> None:
    assert entry(db, WRONG_STATE, node_uuid=UUID).reason == UNKNOWN
    node = make_node(provision_state="available")
    db.write(lambda conn: bmc_addresses.set_for(conn, node.id, [BMC]))
    found = entry(db, bmc_addresses=(BMC,))
    assert (found.reason, found.nodes[0]["provision_state"]) == (WRONG_STATE, "available")
    assert entry(db, macs=(MAC,)).reason == DISCOVERY_OFF
