"""The lock on a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import node_sets, nodes, portgroups, tables
from ironic_rules.db.session import Database
from ironic_rules.exceptions import LockLost, NodeLocked, NodeNotFound
from tests.functional.db.concurrency import at_once

MakeNode = Callable[..., Any]


def lock(node: Any, host: str, serial: int = 1) -> nodes.Lock:
    return nodes.Lock(node.id, host, f"{host}-run:{serial}")


MISSING = nodes.Lock(999_999_999, "host-1", "host-1-run:1")


@pytest.fixture
def node(conn: sa.Connection) -> Any:
    return nodes.create(conn, {"driver": "d"})


def test_reserve_notes_who_and_why_and_when(conn: sa.Connection, node: Any) -> None:
    held = nodes.reserve(conn, lock(node, "host-1"), "inspection")
    assert (held.reservation, held.reservation_purpose, held.revision) == ("host-1", "inspection", node.revision)
    assert held.reserved_at >= node.created_at


def test_reserve_returns_the_known_node_only_while_it_is_as_it_was(conn: sa.Connection, node: Any) -> None:
    first, second = lock(node, "host-1"), lock(node, "host-1", 2)
    assert nodes.reserve(conn, first, "test", node=node) is node
    nodes.release(conn, first, {"name": "changed"})
    assert nodes.reserve(conn, second, "test", node=node).name == "changed"
    with pytest.raises(NodeLocked):
        nodes.reserve(conn, lock(node, "host-2"), "test", node=nodes.get_by_id(conn, node.id))


def test_a_node_is_read_with_what_it_has_in_other_tables(conn: sa.Connection, node: Any) -> None:
    parts = (tables.node_traits, tables.portgroups)

    def found(row: Any) -> list[bool]:
        return [nodes.has_part(row, table) for table in parts]

    assert found(node) == [True, True]  # not known
    assert found(nodes.get_with_parts(conn, node.uuid)) == [False, False]
    node_sets.add_trait(conn, node.id, "CUSTOM_A")
    assert found(nodes.get_with_parts(conn, node.id)) == [True, False]
    portgroups.create(conn, {"node_id": node.id})
    assert found(nodes.get_with_revisions(conn, node.id)[0]) == [True, True]
    with pytest.raises(NodeNotFound):
        nodes.get_with_parts(conn, MISSING.node_id)


def test_the_holder_of_the_lock_knows_whether_there_is_a_token(conn: sa.Connection, node: Any) -> None:
    mine = lock(node, "host-1")
    nodes.reserve(conn, mine, "test")
    assert not nodes.has_agent_token_locked(conn, mine)
    nodes.claim_agent_token(conn, node.id, "0" * 64)
    assert nodes.has_agent_token_locked(conn, mine)
    with pytest.raises(LockLost):
        nodes.has_agent_token_locked(conn, lock(node, "host-2"))


@pytest.mark.parametrize("owner", ["host-1", "host-2"])
def test_a_held_lock_can_not_be_taken(conn: sa.Connection, node: Any, owner: str) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    with pytest.raises(NodeLocked, match=f"{node.uuid} is locked by host host-1"):
        nodes.reserve(conn, lock(node, owner), "power")


def test_reserve_of_a_missing_node_says_so(conn: sa.Connection) -> None:
    with pytest.raises(NodeNotFound):
        nodes.reserve(conn, MISSING, "inspection")


def test_of_many_that_reserve_one_node_one_wins(db: Database, make_node: MakeNode) -> None:
    node = make_node()

    def reserve(owner: str) -> Callable[[], Any]:
        return lambda: db.write(lambda conn: nodes.reserve(conn, lock(node, owner), "test"))

    results = at_once([reserve(f"host-{index}") for index in range(6)])
    winner, = (result for result in results if not isinstance(result, Exception))
    assert [str(result) for result in results if isinstance(result, NodeLocked)] == [
        str(NodeLocked(node=node.uuid, host=winner.reservation))] * 5


def test_resumptions_are_counted_for_as_long_as_the_lock_is_held(conn: sa.Connection, node: Any) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    nodes.take_over(conn, lock(node, "host-1"), lock(node, "host-2"))
    assert [nodes.count_resumption(conn, lock(node, "host-2"), most=2) for _ in range(3)] == [1, 2, None]
    assert nodes.get_by_id(conn, node.id).reservation_resumptions == 2
    with pytest.raises(LockLost):
        nodes.count_resumption(conn, lock(node, "host-1"), most=5)
    nodes.release(conn, lock(node, "host-2"))
    assert nodes.reserve(conn, lock(node, "host-1"), "power").reservation_resumptions == 0
    with pytest.raises(NodeNotFound):
        nodes.count_resumption(conn, MISSING, most=5)


def test_release_writes_and_unlocks_at_once(conn: sa.Connection, node: Any) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    nodes.release(conn, lock(node, "host-1"), {"provision_state": "manageable", "extra": {"a": 1}})
    freed = nodes.get_by_id(conn, node.id)
    assert (freed.reservation, freed.reservation_purpose, freed.reserved_at) == (None, None, None)
    assert (freed.provision_state, freed.extra, freed.revision) == ("manageable", {"a": 1}, node.revision + 1)


def test_a_holder_writes_and_keeps_the_lock(conn: sa.Connection, node: Any) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    nodes.update_locked(conn, lock(node, "host-1"), {"name": "web-1"})
    held = nodes.get_by_id(conn, node.id)
    assert (held.name, held.reservation, held.revision) == ("web-1", "host-1", node.revision + 1)
    with pytest.raises(LockLost, match="no longer held by host-2"):
        nodes.update_locked(conn, lock(node, "host-2"), {"name": "x"})


def test_reserve_in_state_takes_the_lock_and_writes_at_once(conn: sa.Connection, node: Any) -> None:
    with pytest.raises(NodeNotFound):
        nodes.reserve_in_state(conn, lock(node, "host-1"), "test", "inspect wait", {"provision_state": "inspecting"})
    nodes.reserve_in_state(conn, lock(node, "host-1"), "test", node.provision_state, {"provision_state": "inspecting"})
    held = nodes.get_by_id(conn, node.id)
    assert (held.provision_state, held.reservation, held.reservation_purpose) == ("inspecting", "host-1", "test")
    with pytest.raises(NodeLocked, match="host-1"):
        nodes.reserve_in_state(conn, lock(node, "host-2"), "test", "inspecting", {})


def test_reserved_names_the_locked_nodes_of_a_group(db: Database, make_node: MakeNode) -> None:
    locked, other = make_node(reservation="host-1"), make_node(reservation="host-2", conductor_group="east")
    make_node()
    with db.reader() as conn:
        assert [held.lock for held in nodes.locks(conn, "")] == [nodes.Lock(locked.id, "host-1", None)]
        assert [held.node_uuid for held in nodes.locks(conn, "east")] == [other.uuid]


def test_release_without_values_is_no_change(conn: sa.Connection, node: Any) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    nodes.release(conn, lock(node, "host-1"))
    freed = nodes.get_by_id(conn, node.id)
    assert (freed.reservation, freed.revision, freed.updated_at) == (None, node.revision, None)


def test_release_by_another_one_writes_nothing(conn: sa.Connection, node: Any) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    with pytest.raises(LockLost, match=f"{node.uuid} is no longer held by host-2"):
        nodes.release(conn, lock(node, "host-2"), {"name": "x"})
    with pytest.raises(NodeNotFound):
        nodes.release(conn, MISSING)
    now = nodes.get_by_id(conn, node.id)
    assert (now.reservation, now.name) == ("host-1", None)


def test_take_over_moves_the_lock_of_the_named_owner_only(conn: sa.Connection, node: Any) -> None:
    nodes.reserve(conn, lock(node, "host-1"), "inspection")
    assert not nodes.take_over(conn, lock(node, "host-3"), lock(node, "host-2"))
    assert nodes.take_over(conn, lock(node, "host-1"), lock(node, "host-2"))
    assert not nodes.take_over(conn, lock(node, "host-1"), lock(node, "host-3"))
    held = nodes.get_by_id(conn, node.id)
    assert (held.reservation, held.reservation_purpose) == ("host-2", "inspection")
    with pytest.raises(LockLost):
        nodes.release(conn, lock(node, "host-1"))


def test_of_many_that_take_over_one_node_one_wins(db: Database, make_node: MakeNode) -> None:
    node = make_node(reservation="dead")

    def take_over(owner: str) -> Callable[[], bool]:
        dead = nodes.Lock(node.id, "dead", None)
        return lambda: db.write(lambda conn: nodes.take_over(conn, dead, lock(node, owner)))

    results = at_once([take_over(f"host-{index}") for index in range(4)])
    assert sorted(map(str, results)) == ["False"] * 3 + ["True"]


def test_an_earlier_holder_with_the_same_name_writes_nothing(conn: sa.Connection, node: Any) -> None:
    earlier, later = lock(node, "host-1"), lock(node, "host-1", 2)
    nodes.reserve(conn, earlier, "inspection")
    assert nodes.take_over(conn, earlier, later)
    for write in (nodes.release, nodes.update_locked):
        with pytest.raises(LockLost):
            write(conn, earlier, {"name": "stale"})
    for look in (lambda: nodes.get_locked(conn, earlier), lambda: nodes.count_resumption(conn, earlier, 5)):
        with pytest.raises(LockLost):
            look()
    assert nodes.get_locked(conn, later)[0].name is None
    nodes.release(conn, later)
    assert nodes.get_by_id(conn, node.id).reservation_token is None


def test_a_lock_of_a_version_without_tokens_is_taken_over_by_its_host_name(conn: sa.Connection, node: Any) -> None:
    conn.execute(sa.update(tables.nodes).where(tables.nodes.c.id == node.id).values(reservation="host-1"))
    old = nodes.Lock(node.id, "host-1", None)
    assert not nodes.take_over(conn, lock(node, "host-1"), lock(node, "host-2"))
    assert nodes.take_over(conn, old, lock(node, "host-2"))
    assert not nodes.take_over(conn, old, lock(node, "host-3"))
    nodes.release(conn, lock(node, "host-2"))
