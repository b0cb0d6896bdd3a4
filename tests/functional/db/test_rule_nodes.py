"""The nodes counted for rules with ``max_nodes``, on each database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import inspection_rules, nodes, rule_records, rule_revisions
from ironic_rules.db.inspection_rules import RevisionChanges
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inspection_rule_nodes
from ironic_rules.exceptions import RuleSpent
from ironic_rules.models.rules import Rule
from tests.functional.db.concurrency import at_once
from tests.functional.db.test_inspection_rules import rule
from tests.functional.db.test_rule_revisions import full

A, B, C, D = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "abcd")


def limited(conn: sa.Connection, max_nodes: int | None, **values: Any) -> str:
    return inspection_rules.create(conn, rule(max_nodes=max_nodes, **values)).uuid


def counted(conn: sa.Connection, uuid: str) -> tuple[int, list[str]]:
    """Return the number that the rule shows, and the nodes."""
    table = inspection_rule_nodes.c
    found = conn.scalars(sa.select(table.node_uuid).where(table.rule_uuid == uuid).order_by(table.node_uuid))
    return inspection_rules.get(conn, uuid).nodes_counted, list(found)


def test_distinct_nodes_are_counted_up_to_the_limit(conn: sa.Connection) -> None:
    two, one, free = limited(conn, 2), limited(conn, 1), limited(conn, None)
    rule_records.count_node(conn, A, [two, one, free])
    rule_records.count_node(conn, A, [two, one, free])
    assert [counted(conn, uuid) for uuid in (two, one, free)] == [(1, [A]), (1, [A]), (0, [])]
    assert (rule_records.spent(conn, A), rule_records.spent(conn, B)) == ({}, {one: 1})
    rule_records.count_node(conn, B, [two])
    assert (rule_records.spent(conn, B), rule_records.spent(conn, C)) == ({one: 1}, {one: 1, two: 2})
    with pytest.raises(RuleSpent, match=rf"{two} has been applied to max_nodes other nodes \(2\)"):
        rule_records.count_node(conn, C, [two])
    assert counted(conn, two) == (2, [A, B])


def test_a_changed_limit_counts_for_the_nodes_to_come(conn: sa.Connection) -> None:
    uuid = limited(conn, 2)
    for node in (A, B):
        rule_records.count_node(conn, node, [uuid])
    inspection_rules.update(conn, uuid, {"max_nodes": 1})
    assert (rule_records.spent(conn, A), rule_records.spent(conn, C)) == ({}, {uuid: 2})
    rule_records.count_node(conn, B, [uuid])
    with pytest.raises(RuleSpent):
        rule_records.count_node(conn, C, [uuid])
    inspection_rules.update(conn, uuid, {"max_nodes": 3, "description": "other"})
    rule_records.count_node(conn, C, [uuid])
    assert (counted(conn, uuid), rule_records.spent(conn, D)) == ((3, [A, B, C]), {uuid: 3})


def test_counting_does_not_change_the_rule(conn: sa.Connection) -> None:
    """The revision of a rule is its ETag, and by that of the set processes detect changes."""
    uuid = limited(conn, 2)
    before = inspection_rules.get(conn, uuid), inspection_rules.revision(conn)
    rule_records.count_node(conn, A, [uuid])
    after = inspection_rules.get(conn, uuid)
    assert (after.revision, after.updated_at, inspection_rules.revision(conn)) == (
        before[0].revision, before[0].updated_at, before[1])


@pytest.mark.parametrize("many", [False, True])
def test_a_rule_without_a_limit_forgets_its_nodes(conn: sa.Connection, many: bool) -> None:
    def write(max_nodes: int | None) -> None:
        if many:
            inspection_rules.change(conn, RevisionChanges(changed={
                uuid: full(max_nodes=max_nodes), other: full(max_nodes=5, description="kept")}), "many")
        else:
            inspection_rules.update(conn, uuid, {"max_nodes": max_nodes})

    uuid, other = limited(conn, 1), limited(conn, 5)
    rule_records.count_node(conn, A, [uuid, other])
    write(None)
    rule_records.count_node(conn, B, [uuid])
    assert (counted(conn, uuid), counted(conn, other)) == ((0, []), (1, [A]))
    write(1)
    rule_records.count_node(conn, B, [uuid])
    assert (counted(conn, uuid), counted(conn, other)) == ((1, [B]), (1, [A]))


def test_a_deleted_node_stays_counted_and_a_deleted_rule_is_forgotten(db: Database, make_node: Any) -> None:
    node = make_node()
    uuid = db.write(lambda conn: limited(conn, 1))
    db.write(lambda conn: rule_records.count_node(conn, node.uuid, [uuid]))
    with db.writer() as conn:
        nodes.destroy(conn, node.id)
        assert counted(conn, uuid) == (1, [node.uuid])
        last = inspection_rules.revision(conn)
        inspection_rules.destroy(conn, uuid)
        assert conn.scalar(sa.select(sa.func.count()).select_from(inspection_rule_nodes)) == 0
        # An inspection that has begun before ends after it.
        rule_records.count_node(conn, B, [uuid])
        again, = rule_revisions.rules_at(conn, last)
        changes = RevisionChanges(created=[{**full(max_nodes=again.max_nodes), "uuid": uuid}])
        inspection_rules.change(conn, changes, "rollback")
        assert (counted(conn, uuid), rule_records.spent(conn, B)) == ((0, []), {})


def count_in_turn(db: Database, order: Iterable[str], applied: list[str]) -> list[str]:
    """Return the nodes that were counted."""
    done = []
    for node in order:
        try:
            db.write(lambda conn, node=node: rule_records.count_node(conn, node, applied))  # type: ignore[misc]
        except RuleSpent:
            continue
        done.append(node)
    return done


@pytest.mark.parametrize("seed", range(3))
def test_those_who_count_at_once_never_exceed_a_limit(db: Database, seed: int) -> None:
    """All nodes are counted by each of six threads in an order of its own; the rules are given in different orders."""
    chance = random.Random(seed)
    limits = [5, 12, 7]
    rules = [db.write(lambda conn, limit=limit: limited(conn, limit)) for limit in limits]  # type: ignore[misc]
    all_nodes = [f"00000000-0000-4000-8000-{number:012}" for number in range(15)]

    def worker(number: int) -> Callable[[], list[str]]:
        order = chance.sample(all_nodes, len(all_nodes))
        return lambda: count_in_turn(db, order, rules if number % 2 else rules[::-1])

    results = at_once([worker(number) for number in range(6)])
    with db.reader() as conn:
        found = [counted(conn, uuid) for uuid in rules]
    # A transaction counts for all of its rules or for none: the lowest limit is that of all of them.
    assert [number for number, _ in found] == [5, 5, 5]
    assert all(node_uuids == found[0][1] and len(node_uuids) == 5 for _, node_uuids in found)
    assert [sorted(result) for result in results if not isinstance(result, Exception)] == [found[0][1]] * 6


def test_a_limit_that_is_lowered_while_nodes_are_counted_holds(db: Database) -> None:
    uuid = db.write(lambda conn: limited(conn, 1000))
    seen: list[int] = []

    def lower() -> list[str]:
        def change(conn: sa.Connection) -> Rule:
            return inspection_rules.update(conn, uuid, {"max_nodes": 3})

        seen.append(db.write(change).nodes_counted)
        return []

    def worker(number: int) -> Callable[[], list[str]]:
        return lambda: count_in_turn(db, (f"{number:08}-0000-4000-8000-{step:012}" for step in range(10)), [uuid])

    results = at_once([lower, *(worker(number) for number in range(4))])
    assert not [result for result in results if isinstance(result, Exception)]
    with db.reader() as conn:
        number, found = counted(conn, uuid)
    assert number == len(found) == max(seen[0], 3)
