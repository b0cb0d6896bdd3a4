"""Legacy rules, what they own, and the operations that take it back, on each database."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import sqlalchemy as sa

from ironic_rules.db import clock, legacy_rules, legacy_values, nodes, operations
from ironic_rules.db.operations import Ended
from ironic_rules.db.session import Database
from ironic_rules.db.tables import legacy_values as table
from ironic_rules.exceptions import (
    LegacyRuleGone,
    legacy_rule_already_exists,
    legacy_rule_changed,
    legacy_rule_not_found,
    operation_not_found,
)
from ironic_rules.models.rules import OwnedValue
from tests.functional.db.concurrency import at_once
from tests.wordings import refused

A, B = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "ab")
RULE: dict[str, Any] = {"actions": [{"action": "fail", "message": "é 😀"}], "conditions": []}


def value(place: str, written: Any = 1, rule: str = A, **more: Any) -> OwnedValue:
    return OwnedValue(rule_uuid=rule, action=0, kind="path", place=place, written=written, **more)


def test_rules_have_an_order_and_a_revision(conn: sa.Connection) -> None:
    start = legacy_rules.revision(conn)
    first, second = (legacy_rules.create(conn, {**RULE, "uuid": uuid}) for uuid in (A, B))
    changed = legacy_rules.update(conn, A.upper(), {"scope": "x", "description": "é" * 20_000}, revision=start + 1)

    assert (first.revision, second.revision, changed.revision) == (start + 1, start + 2, start + 3)
    assert [rule.uuid for rule in legacy_rules.all_rules(conn)] == [A, B]
    assert [rule.uuid for rule in legacy_rules.changed_since(conn, start + 2)] == [A]
    assert changed.actions == RULE["actions"]
    assert (changed.position, changed.created_at) == (first.position, first.created_at)
    with refused(legacy_rule_changed):
        legacy_rules.destroy(conn, A, revision=start + 1)
    legacy_rules.destroy(conn, A)
    assert legacy_rules.existing(conn, [A, B]) == {B} == legacy_rules.uuids(conn)
    with refused(legacy_rule_not_found):
        legacy_rules.get(conn, A)
    with refused(legacy_rule_already_exists):
        legacy_rules.create(conn, {**RULE, "uuid": B})


def test_rules_that_are_created_at_once_have_different_places(db: Database) -> None:
    made = at_once([lambda: db.write(lambda conn: legacy_rules.create(conn, RULE)) for _ in range(6)])

    assert len({rule.position for rule in made}) == len({rule.revision
                                                         for rule in made}) == 6  # type: ignore[union-attr]


def test_only_the_difference_of_what_is_owned_is_written_and_the_order_is_kept(
        conn: sa.Connection) -> None:
    for uuid in (A, B):
        legacy_rules.create(conn, {**RULE, "uuid": uuid})
    node = nodes.create(conn, {"driver": "fake-hardware"}).id
    one, two, three = value("/extra/a", {"é": [None, "😀"]}), value("/extra/b", had_before=True, before=0), value(
        "/extra/c", None, B)
    legacy_values.save(conn, node, {}, [one, two, three])
    before = legacy_values.for_node(conn, node)
    assert list(before.values()) == [one, two, three]
    assert nodes.get_with_revisions(conn, node)[1].owns_legacy_values

    legacy_values.save(conn, node, before, [one, two, three])
    assert legacy_values.for_node(conn, node) == before
    legacy_values.save(conn, node, before, [one, three, two])
    after = legacy_values.for_node(conn, node)
    assert list(after.values()) == [one, three, two]
    assert next(iter(after)) == next(iter(before))

    changed = replace(two, before=7)
    legacy_values.keep(conn, after, [three, changed])
    kept = legacy_values.for_node(conn, node)
    assert list(kept.values()) == [three, changed]
    assert kept.keys() < after.keys()
    legacy_values.save(conn, node, kept, [])
    assert not nodes.get_with_revisions(conn, node)[1].owns_legacy_values


def test_what_is_saved_while_a_rule_is_deleted_has_a_rule_or_is_not_saved(
        db: Database, make_node: Callable[..., Any]) -> None:
    db.write(lambda conn: legacy_rules.create(conn, {**RULE, "uuid": A}))
    made = [make_node().id for _ in range(6)]

    def save(node: int) -> Callable[[], Any]:
        return lambda: db.write(lambda conn: legacy_values.save(conn, node, {}, [value("/extra/a")]))

    def delete() -> Any:
        return db.write(lambda conn: legacy_rules.destroy(conn, A))

    results = at_once([*map(save, made[:3]), delete, *map(save, made[3:])])

    assert [found for found in results if found is not None and not isinstance(found, LegacyRuleGone)] == []
    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(table)) == 0


def test_postponed_items_come_last_and_equal_results_are_a_group(
        db: Database, make_node: Callable[..., Any]) -> None:
    made = [make_node(conductor_group=group) for group in ("", "", "", "rack-7")]
    with db.writer() as conn:
        operation = operations.create(conn, "a-kind", {}, None, nodes.uuids({}))
        first, second, third = operations.claim(conn, operation.id, "x", 9, group="")
        assert [first.node_uuid, second.node_uuid, third.node_uuid] == [node.uuid for node in made[:3]]
        operations.postpone(conn, first)
        later = clock.now() + datetime.timedelta(seconds=operations.PAUSE_S + 1)
        assert operations.claim(conn, operation.id, "x", 9, group="") == []
        other, = operations.claim(conn, operation.id, "y", 9, later)
        assert other.node_uuid == made[3].uuid
        again, = operations.claim(conn, operation.id, "y", 9, later, "")
        assert (again.id, again.postponed) == (first.id, 1)
        operations.end_all(conn, [
            (item, Ended(operations.UNCHANGED, None, orjson.dumps(result, option=orjson.OPT_SORT_KEYS)))
            for item, result in ((second, {"a": 1, "b": [2]}), (third, {"b": [2], "a": 1}), (other, {}))])
        found = operations.groups(conn, operation.id, 9)
        assert [(row.number, row.result) for row in found] == [(2, {"a": 1, "b": [2]}), (1, {})]
        listed = operations.list_items(conn, operation.id, None, None, 9, result_hash=found[0].result_hash)
        assert [row.id for row in listed] == [second.id, third.id]
        behind = operations.list_items(conn, operation.id, operations.UNCHANGED, second.node_uuid, 9)
        assert [row.id for row in behind] == [third.id, other.id]


def test_items_are_claimed_once_and_again_after_a_while(db: Database, make_node: Callable[..., Any]) -> None:
    with db.writer() as conn:
        legacy_rules.create(conn, {**RULE, "uuid": A})
    for _ in range(6):
        node = make_node()
        db.write(lambda conn, node=node: legacy_values.save(conn, node.id, {}, [value("/extra/a"), value("/extra/b")]))
    make_node()
    operation = db.write(lambda conn: operations.create(
        conn, "a-kind", {"rules": [A]}, "someone", legacy_values.nodes_of(A)))

    def claim(worker: str) -> Callable[[], Any]:
        return lambda: db.write(lambda conn: operations.claim(conn, operation.id, worker, 3))

    claimed = at_once([claim(worker) for worker in "xyz"])
    items = [item.id for found in claimed for item in found]  # type: ignore[union-attr]
    # Two that look at the same rows at the same moment may leave some for the next look.
    items += [item.id for item in db.write(lambda conn: operations.claim(conn, operation.id, "x", 6))]
    assert len(items) == len(set(items)) == 6
    later = clock.now() + datetime.timedelta(seconds=operations.LEASE_S + 1)
    again = db.write(lambda conn: operations.claim(conn, operation.id, "late", 4, later))
    assert len(again) == 4
    with db.writer() as conn:
        assert operations.begin(conn, operation.id, again[0], "late")
        assert not operations.begin(conn, operation.id, again[0], "x")
        operations.end(conn, again[0], operations.CHANGED)
        operations.end(conn, again[1], operations.FAILED, "é 😀")
        assert not operations.begin(conn, operation.id, again[0], "late")
        assert not operations.finish(conn, operation.id)
        assert operations.counts(conn, [operation]) == {
            operation.id: {operations.CHANGED: 1, operations.FAILED: 1, operations.LEFT: 4}}
        assert [(row.node_uuid, row.error) for row in operations.errors(conn, operation.id, 9)] == [
            (again[1].node_uuid, "é 😀")]
        conn.execute(sa.update(operations.items).values(status=operations.UNCHANGED))
        assert operations.finish(conn, operation.id)
        assert not operations.finish(conn, operation.id)
        assert operations.running(conn) == []
        operations.cancel(conn, operation.id)
        for _ in range(operations.KEPT):
            new = operations.create(conn, "a-kind", {}, None, legacy_values.nodes_of(B))
            operations.cancel(conn, new.id)
        assert operations.get(conn, operation.uuid).status == operations.FINISHED
        operations.create(conn, "a-kind", {}, None, legacy_values.nodes_of(B))
        with refused(operation_not_found):
            operations.get(conn, operation.uuid)
        assert operations.counts(conn, [operation]) == {operation.id: {}}
