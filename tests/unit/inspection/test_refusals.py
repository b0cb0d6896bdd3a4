from __future__ import annotations

import logging
import time

import pytest

from ironic_rules.db import discovery, node_sets, nodes, ports
from ironic_rules.exceptions import LookupFailed, MachineUnknown
from ironic_rules.inspection import journal
from ironic_rules.inspection.journal import RefusedMachines, Unlogged

MAC_A, MAC_B, MAC_NEW = "52:54:00:00:00:0a", "52:54:00:00:00:0b", "52:54:00:00:00:99"
BMC_A, BMC_NEW = "192.0.2.1", "2001:db8::99"
UUID_A, UUID_B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
NOBODY = "cccccccc-0000-4000-8000-000000000003"


@pytest.fixture
def refused():
    return RefusedMachines()


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def message(refused, db, caplog, error, uuid, macs, addresses):
    caplog.set_level(logging.INFO)
    with db.reader() as conn:
        found = discovery.find_matches(conn, uuid, macs, addresses)
        refused.log(logging.getLogger("ironic_rules.test"), error, uuid, macs, addresses, found, Unlogged(3, 0))
    record, = (record for record in caplog.records if record.name == "ironic_rules.test")
    return record.levelname, record.getMessage()


def test_the_line_says_which_node_has_what_and_what_no_node_has(refused, db, caplog):
    with db.writer() as conn:
        for uuid, mac, state in ((UUID_A, MAC_A, "manageable"), (UUID_B, MAC_B, "inspect wait")):
            row = nodes.create(conn, {"uuid": uuid, "driver": "fake-hardware", "provision_state": state})
            ports.create(conn, {"address": mac, "node_id": row.id})
            node_sets.set_bmc_addresses(conn, row.id, [BMC_A])

    found = message(refused, db, caplog, LookupFailed.because("the reason"), UUID_A.upper(),
                    [MAC_A, MAC_B, MAC_NEW], [BMC_A, BMC_NEW])

    assert found == ("WARNING", (
        "A report is rejected: the reason; "
        f'node {UUID_A} in state "manageable" has its UUID, the MAC address {MAC_A}, the BMC address {BMC_A}; '
        f'node {UUID_B} in state "inspect wait" has the MAC address {MAC_B}, the BMC address {BMC_A}; '
        f"no node has the MAC address {MAC_NEW}, the BMC address {BMC_NEW} "
        "(3 further refusals of this machine since the last message)"))


def test_a_machine_that_is_unknown_is_told_in_one_line_without_control_characters(refused, db, caplog):
    level, text = message(refused, db, caplog, MachineUnknown.because("no waiting node has any of them"),
                          "x\n\x1b[31m", [MAC_NEW], [])

    assert level == "INFO"
    assert f"no node has the UUID x\\n\\x1b[31m, the MAC address {MAC_NEW} (" in text


def test_a_chassis_of_a_hundred_nodes_makes_no_long_line(refused, db, caplog):
    with db.writer() as conn:
        for _ in range(100):
            node_sets.set_bmc_addresses(conn, nodes.create(conn, {"driver": "fake-hardware"}).id, [BMC_A])

    _, text = message(refused, db, caplog, LookupFailed.because("x"), None, [], [BMC_A])

    assert text.count('in state "enroll"') == 4
    assert "60 more nodes match" in text


def test_a_machine_is_logged_once_in_a_period_unless_the_reason_changes(clock, refused):
    def due(reason="x", macs=(MAC_A, MAC_B)):
        found = refused.is_due(None, macs, [BMC_A], reason)
        return found and found.of_machine

    assert [due(), due(), due(macs=(MAC_B, MAC_A))] == [0, None, None]
    assert due(macs=(MAC_NEW,)) == 0
    assert [due("y"), due("y")] == [2, None]
    clock[0] += journal.MACHINE_PERIOD_S
    assert [due("y"), due("y")] == [1, None]


def test_machines_without_addresses_are_told_apart_by_what_they_call_themselves(refused):
    due = [refused.is_due(uuid, [], [], "x") for uuid in (UUID_A, NOBODY, UUID_A)]

    assert due == [Unlogged(0, 0), Unlogged(0, 0), None]


def test_a_flood_of_invented_machines_fills_neither_the_log_nor_the_memory(clock):
    refused = RefusedMachines()
    due = []
    for number in range(10_000):
        clock[0] += 0.01
        due.append(refused.is_due(None, [f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}"], [], "x"))

    logged = [one for one in due if one is not None]
    assert len(logged) <= journal.MACHINES_AT_ONCE + 100 * journal.MACHINES_PER_SECOND
    assert len(refused._machines) <= journal._MACHINES
    # Each is logged, or counted in a line.
    clock[0] += 60
    last = refused.is_due(None, [MAC_A], [], "x")
    assert len(logged) + sum(one.of_others for one in (*logged, last)) == 10_000
    assert str(last).startswith(" (") and "of other machines since the last message)" in str(last)
