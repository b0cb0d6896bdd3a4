"""Traits and BMC addresses of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import discovery, node_sets, nodes, ports
from ironic_rules.db.session import Database
from ironic_rules.exceptions import NodeNotFound, trait_not_found
from ironic_rules.models.inventories import Sharing
from tests.functional.db.concurrency import at_once
from tests.wordings import refused

MakeNode = Callable[..., Any]
NOBODY = 999_999_999


@pytest.fixture
def node(conn: sa.Connection) -> Any:
    return nodes.create(conn, {"driver": "d"})


def test_traits_of_many_nodes_come_sorted(conn: sa.Connection, node: Any) -> None:
    other, bare = (nodes.create(conn, {"driver": "d"}) for _ in range(2))
    node_sets.set_traits(conn, node.id, ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"])
    node_sets.add_trait(conn, other.id, "CUSTOM_C")
    assert node_sets.list_traits(conn, [node.id, other.id, bare.id]) == {
        node.id: ["CUSTOM_A", "CUSTOM_B"], other.id: ["CUSTOM_C"], bare.id: []}
    assert node_sets.list_traits(conn, []) == {}


def test_set_all_replaces_the_traits(conn: sa.Connection, node: Any) -> None:
    node_sets.set_traits(conn, node.id, ["CUSTOM_A", "CUSTOM_B"])
    node_sets.set_traits(conn, node.id, ["CUSTOM_B", "CUSTOM_C"])
    assert node_sets.list_traits(conn, [node.id])[node.id] == ["CUSTOM_B", "CUSTOM_C"]
    node_sets.set_traits(conn, node.id, [])
    assert node_sets.list_traits(conn, [node.id])[node.id] == []


def test_add_of_a_trait_that_is_there_is_no_error(conn: sa.Connection, node: Any) -> None:
    node_sets.add_trait(conn, node.id, "CUSTOM_A")
    node_sets.add_trait(conn, node.id, "CUSTOM_A")
    assert node_sets.list_traits(conn, [node.id])[node.id] == ["CUSTOM_A"]


def test_remove_names_the_trait_that_is_missing(conn: sa.Connection, node: Any) -> None:
    node_sets.set_traits(conn, node.id, ["CUSTOM_A", "CUSTOM_B"])
    node_sets.remove_trait(conn, node.id, "CUSTOM_A")
    with refused(trait_not_found, match=f"{node.uuid} doesn't have a trait 'CUSTOM_A'"):
        node_sets.remove_trait(conn, node.id, "CUSTOM_A")
    node_sets.remove_all_traits(conn, node.id)
    assert node_sets.list_traits(conn, [node.id])[node.id] == []


@pytest.mark.parametrize("change", [
    lambda conn: node_sets.set_traits(conn, NOBODY, ["CUSTOM_A"]),
    lambda conn: node_sets.add_trait(conn, NOBODY, "CUSTOM_A"),
    lambda conn: node_sets.remove_trait(conn, NOBODY, "CUSTOM_A"),
    lambda conn: node_sets.set_bmc_addresses(conn, NOBODY, ["10.0.0.1"])])
def test_a_missing_node_is_said_to_be_missing(db: Database, change: Callable[[sa.Connection], None]) -> None:
    with pytest.raises(NodeNotFound):
        db.write(change)


def test_of_two_replacements_at_once_one_stays_whole(db: Database, make_node: MakeNode) -> None:
    node = make_node()
    sets = [["CUSTOM_A", "CUSTOM_B"], ["CUSTOM_B", "CUSTOM_C"], ["CUSTOM_D"]]

    def replace(names: list[str]) -> Callable[[], None]:
        return lambda: db.write(lambda conn: node_sets.set_traits(conn, node.id, names))

    assert at_once([replace(names) for names in sets]) == [None, None, None]
    with db.reader() as conn:
        assert node_sets.list_traits(conn, [node.id])[node.id] in sets


def test_writers_of_neighbouring_nodes_do_not_deadlock(db: Database, make_node: MakeNode) -> None:
    found = [make_node() for _ in range(8)]

    def replace(node_id: int) -> Callable[[], None]:
        def work() -> None:
            # Without db.write(): a deadlock would be an error, not repeated.
            for _ in range(5):
                with db.writer() as conn:
                    node_sets.set_traits(conn, node_id, ["CUSTOM_A", "CUSTOM_B"])
                    node_sets.set_bmc_addresses(conn, node_id, [f"10.0.0.{node_id % 250}"])
                    node_sets.set_bmc_addresses(conn, node_id, [])
                    node_sets.remove_all_traits(conn, node_id)

        return work

    assert at_once([replace(node.id) for node in found]) == [None] * 8


def test_bmc_addresses_lead_to_nodes(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    node_sets.set_bmc_addresses(conn, node.id, ["fd00::1", "10.0.0.1"])
    node_sets.set_bmc_addresses(conn, other.id, ["10.0.0.2", "10.0.0.1"])
    assert node_sets.nodes_of_bmc_addresses(conn, ["fd00::1"]) == {node.id}
    assert node_sets.nodes_of_bmc_addresses(conn, ["10.0.0.1", "10.9.9.9"]) == {node.id, other.id}
    assert node_sets.nodes_of_bmc_addresses(conn, []) == set()
    assert node_sets.list_bmc_addresses(conn, node.id) == ["10.0.0.1", "fd00::1"]


def test_bmc_addresses_are_replaced_and_cleared(conn: sa.Connection, node: Any) -> None:
    node_sets.set_bmc_addresses(conn, node.id, ["10.0.0.1", "10.0.0.2"])
    node_sets.set_bmc_addresses(conn, node.id, ["10.0.0.2", "10.0.0.3"])
    assert node_sets.list_bmc_addresses(conn, node.id) == ["10.0.0.2", "10.0.0.3"]
    node_sets.set_bmc_addresses(conn, node.id, [])
    assert node_sets.list_bmc_addresses(conn, node.id) == []


MACS = [f"52:54:00:00:00:0{digit}" for digit in range(6)]


def note(conn: sa.Connection, node: Any, reported: list[str]) -> None:
    """Note what an accepted report of the node's machine shares with other nodes, as an inspection does."""
    owners = node_sets.owners_of_macs(conn, reported)
    foreign = [address for address, owned_by in owners.items() if owned_by - {node.id}]
    node_sets.note_shared(conn, node.id, node_sets.sharing(conn, node.id, reported), foreign, reported)


def test_an_address_of_another_node_that_is_reported_is_shared(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    for mac in MACS[:2]:
        ports.create(conn, {"node_id": node.id, "address": mac})

    note(conn, other, [MACS[1], MACS[2]])

    assert node_sets.sharing(conn, node.id, MACS) == Sharing(frozenset(MACS[1:2]), frozenset())
    assert node_sets.sharing(conn, other.id, MACS) == Sharing(frozenset(), frozenset(MACS[1:2]))
    assert node_sets.identifying_macs(conn, [node.id]) == {node.id: {MACS[0]}}
    assert {owner.address: owner.is_shared for owner in ports.owners_and_rules_revision(conn, MACS)[0]} == {
        MACS[0]: False, MACS[1]: True}
    (listed,) = node_sets.list_shared_macs(conn)
    assert (listed["address"], listed["nodes"], listed["port_of"]) == (MACS[1], [other.uuid], node.uuid)
    # The node's own next report has the address, too: it is shared without its port as well.
    note(conn, node, MACS[:2])
    assert node_sets.sharing(conn, 0, MACS).of_others == set(MACS[1:2])
    assert node_sets.reporters(conn, MACS) == {MACS[1]: {node.id, other.id}}


@pytest.mark.parametrize("reports", [
    [MACS[:2]], [MACS[:1], MACS[1:2]], [MACS[1:2], MACS[:1], MACS[:2]]], ids=str)
def test_nobody_takes_the_last_address_of_a_node(conn: sa.Connection, node: Any, reports: list[list[str]]) -> None:
    other = nodes.create(conn, {"driver": "d"})
    for mac in MACS[:2]:
        ports.create(conn, {"node_id": node.id, "address": mac})

    for reported in reports:
        note(conn, other, [*reported, MACS[5]])

    assert len(node_sets.identifying_macs(conn, [node.id])[node.id]) >= 1


def test_an_address_that_is_no_longer_reported_is_no_longer_shared(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    for mac in MACS[:2]:
        ports.create(conn, {"node_id": node.id, "address": mac})
    note(conn, other, [MACS[1], MACS[2]])

    note(conn, other, [MACS[2]])

    assert node_sets.list_shared_macs(conn) == []


def test_with_its_reporter_goes_what_it_has_reported(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    for mac in MACS[:2]:
        ports.create(conn, {"node_id": node.id, "address": mac})
    note(conn, other, MACS[1:3])
    note(conn, node, MACS[:2])

    nodes.destroy(conn, other.id)

    assert node_sets.identifying_macs(conn, [node.id])[node.id] == set(MACS[:2])
    assert node_sets.forget_shared_mac(conn, MACS[1]) == 1
    assert node_sets.list_shared_macs(conn) == []


def test_an_address_of_a_discovered_machine_without_a_port_is_shared_as_well(conn: sa.Connection, node: Any) -> None:
    other = nodes.create(conn, {"driver": "d"})
    discovery.begin(conn, node.id, MACS[:2])

    note(conn, other, MACS[1:3])

    assert node_sets.identifying_macs(conn, [node.id])[node.id] == set(MACS[:1])
    assert node_sets.owners_of_macs(conn, MACS) == {mac: {node.id} for mac in MACS[:2]}
