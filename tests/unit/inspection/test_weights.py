"""The weights of evidence, and the table of cases in the documentation."""

from __future__ import annotations

import pathlib
import re

import pytest

from ironic_rules.db import discovery, node_sets, nodes, ports
from ironic_rules.exceptions import LookupFailed, MachineUnknown
from ironic_rules.inspection import lookup

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
A1, A2, B1, B2, NEW = (f"52:54:00:00:00:{digit:02x}" for digit in range(1, 6))
BMC_A, BMC_B, BMC_NEW = "192.0.2.1", "192.0.2.2", "192.0.2.9"
IDS = {"a": {"serial:aaaa1"}, "b": {"serial:bbbb1"}}
#: Reports, and whether node A is found; B and A wait, each with two ports, a BMC and a serial number.
CASES = [
    ({"macs": [A1, A2]}, A),
    ({"macs": [A1]}, A),
    ({"macs": [A1, A2, B1]}, A),
    ({"macs": [A1, B1]}, None),
    ({"macs": [A1, A2, B1, B2]}, None),
    ({"macs": [A1, A2, B1, B2], "bmc": BMC_A}, A),
    ({"uuid": A, "macs": [A1, A2, B1, B2]}, None),
    ({"uuid": A, "macs": [A1, A2, B1, B2], "bmc": BMC_A}, A),
    ({"uuid": A, "macs": [B1]}, None),
    ({"uuid": A, "macs": [NEW]}, None),
    ({"macs": [A1, A2], "bmc": BMC_NEW}, A),
    ({"macs": [A1, A2], "bmc": BMC_B}, None),
    ({"macs": [A1, A2], "bmc": BMC_B, "ids": "a"}, A),
    ({"macs": [A1, A2], "bmc": BMC_B, "ids": "b"}, None),
    ({"uuid": A, "macs": [A1, A2], "bmc": BMC_B}, A),
    ({"uuid": A, "macs": [A1, A2], "bmc": BMC_B, "ids": "b"}, None),
    ({"uuid": A, "macs": [A1, A2, B1, B2], "bmc": BMC_B}, None),
    ({"uuid": A, "bmc": BMC_B}, None),
    ({"macs": [B1], "bmc": BMC_A}, A),
    ({"macs": [B1, B2], "bmc": BMC_A}, None),
    ({"macs": [A1, A2], "ids": "b"}, A),
    ({"macs": [NEW], "ids": "a"}, None),
    ({"bmc": BMC_A}, A),
    ({"macs": [NEW], "bmc": BMC_A}, A),
]


@pytest.fixture
def fleet(db):
    with db.writer() as conn:
        for uuid, macs, bmc, ids in ((A, [A1, A2], BMC_A, "a"), (B, [B1, B2], BMC_B, "b")):
            row = nodes.create(conn, {"uuid": uuid, "driver": "d", "provision_state": "inspect wait"})
            for mac in macs:
                ports.create(conn, {"address": mac, "node_id": row.id})
            node_sets.set_bmc_addresses(conn, row.id, [bmc])
            node_sets.set_machine_ids(conn, row.id, IDS[ids])
    return db


def find(db, uuid=None, macs=(), bmc=None, ids=None, **options):
    with db.reader() as conn:
        owners, _ = ports.owners_and_rules_revision(conn, macs)
        try:
            return lookup.find_node(conn, uuid, macs, [bmc] if bmc else [], owners,
                                    ids=lambda: IDS.get(ids, set()), **options).uuid
        except LookupFailed:
            return None


@pytest.mark.parametrize(("sent", "expected"), CASES, ids=str)
def test_the_heavier_node_is_found(fleet, sent, expected):
    assert find(fleet, **sent) == expected


@pytest.mark.parametrize(("sent", "expected"), CASES, ids=str)
def test_who_waits_does_not_change_who_a_machine_is(fleet, sent, expected):
    """A machine of the node that does not wait is not taken for the other one, except by the only BMC address."""
    with fleet.writer() as conn:
        nodes.update(conn, nodes.get_id(conn, A), {"provision_state": "manageable"})

    assert find(fleet, **sent) is None


def test_the_bmc_of_another_node_counts_for_nothing_with_warn(fleet):
    assert find(fleet, macs=[A1, A2], bmc=BMC_B, foreign_bmc="warn") == A
    assert find(fleet, uuid=A, bmc=BMC_B, foreign_bmc="warn") == A
    assert find(fleet, macs=[A1], bmc=BMC_NEW, foreign_bmc="strict") is None
    assert find(fleet, uuid=A, macs=[A1], bmc=BMC_B, foreign_bmc="strict") is None


def test_a_bmc_that_several_nodes_have_refuses_no_other(fleet):
    with fleet.writer() as conn:
        for uuid in (B, "cccccccc-0000-4000-8000-000000000003"):
            if uuid != B:
                nodes.create(conn, {"uuid": uuid, "driver": "d"})
            node_sets.set_bmc_addresses(conn, nodes.get_id(conn, uuid), [BMC_B])

    assert find(fleet, macs=[A1, A2], bmc=BMC_B) == A


def test_ignored_addresses_are_no_ports_of_a_named_node(fleet):
    assert find(fleet, uuid=A, macs=[NEW], ignored=(A1, A2[:8])) == A


def test_a_port_whose_address_is_shared_finds_its_node_if_nothing_speaks_against_it(fleet):
    with fleet.writer() as conn:
        b = nodes.get_id(conn, B)
        node_sets.note_shared(conn, b, node_sets.sharing(conn, b, [A1]), [A1], [B1, A1])

    assert find(fleet, macs=[A1]) == A
    assert find(fleet, macs=[A1], bmc=BMC_A) == A
    assert find(fleet, macs=[A1], bmc=BMC_NEW) is None
    assert find(fleet, macs=[A1], ids="b") is None
    assert find(fleet, macs=[A1, B1]) == B
    assert find(fleet, macs=[A1, A2, B1]) == A
    assert find(fleet, uuid=A, macs=[A1]) == A


@pytest.mark.parametrize(("sent", "is_new"), [
    ({"macs": [NEW, A1]}, False),
    ({"macs": [NEW, A1], "ids": "a"}, False),
    ({"macs": [NEW, A1], "ids": "b"}, True),  # [auto_discovery]known_serial decides
    ({"macs": [NEW, A1], "ids": "c"}, True),
    ({"macs": [NEW, A1], "bmc": BMC_NEW}, True),
    ({"macs": [NEW, A1], "bmc": BMC_NEW, "ids": "a"}, False),
    ({"macs": [NEW, A1, A2], "bmc": BMC_NEW, "ids": "c"}, False),
    ({"macs": [NEW], "bmc": BMC_A}, False),
    ({"macs": [NEW], "bmc": BMC_A, "ids": "a"}, False),
    ({"macs": [NEW], "bmc": BMC_A, "ids": "c"}, True),
], ids=str)
def test_a_machine_with_addresses_of_a_node_is_new_only_if_it_is_certainly_another(fleet, monkeypatch, sent, is_new):
    monkeypatch.setitem(IDS, "c", {"serial:cccc1"})
    with fleet.writer() as conn:
        nodes.update(conn, nodes.get_id(conn, A), {"provision_state": "manageable"})
    with fleet.reader() as conn:
        possible = lookup.possible_nodes(conn, sent["macs"], [sent["bmc"]] if "bmc" in sent else [],
                                         lambda: IDS.get(sent.get("ids"), set()), ())
        owners, _ = ports.owners_and_rules_revision(conn, sent["macs"])
        with pytest.raises(LookupFailed) as caught:
            lookup.find_node(conn, None, sent["macs"], [sent["bmc"]] if "bmc" in sent else [], owners,
                             ids=lambda: IDS.get(sent.get("ids"), set()))

    assert (possible == set()) == is_new
    assert not is_new or isinstance(caught.value, MachineUnknown)


def test_a_discovered_address_that_is_shared_finds_no_node(fleet):
    with fleet.writer() as conn:
        a, b = nodes.get_id(conn, A), nodes.get_id(conn, B)
        discovery.begin(conn, a, [NEW])
        node_sets.note_shared(conn, b, node_sets.sharing(conn, b, [NEW]), [NEW], [B1, NEW])

    assert find(fleet, macs=[NEW]) is None


def test_the_documentation_has_the_weights():
    text = (pathlib.Path(__file__).parents[3] / "doc/source/user/inspection.rst").read_text()
    table = text.partition("     - Weight\n")[2].partition("\n\n")[0]

    assert sorted(int(number) for number in re.findall(r"^     - (\d+)$", table, re.MULTILINE)) == sorted(
        lookup.WEIGHTS.values())
    assert f"at least **{lookup.MARGIN}**" in text
