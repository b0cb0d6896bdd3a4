"""Inspection rules and the revision of their set."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import inspection_rules, rule_revisions
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.exceptions import (
    Invalid,
    MarkerNotFound,
    inspection_rule_already_exists,
    inspection_rule_not_found,
    rule_changed,
)
from tests.functional.db.concurrency import at_once
from tests.wordings import refused

ACTIONS = [{"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}]
EVERYTHING = Page(limit=1000)


def rule(**values: Any) -> dict[str, Any]:
    return {"actions": ACTIONS, **values}


def test_create_fills_in_what_is_not_given(conn: sa.Connection) -> None:
    created = inspection_rules.create(conn, rule())
    assert uuidutils.is_uuid_like(created.uuid)
    assert (created.actions, created.conditions, created.priority, created.sensitive) == (ACTIONS, [], 0, False)
    assert (created.scope, created.phase, created.updated_at) == (None, "main", None)
    assert created.position == created.revision == inspection_rules.revision(conn) == 1
    assert inspection_rules.get(conn, created.uuid.upper()) == created


@pytest.mark.parametrize(("text", "expected"), [
    ("éclair", {"a"}), ("ÉCLAIR", {"a"}), ("clair 10", {"a", "b"}), ("дом", {"b"}), ("0%", {"a"}), ("_", {"a"}),
    ("/_", {"a"}), ("%%", set()), ("\\", {"b"}), ("//", set()), ("e", {"b"})])
def test_a_part_of_the_description_is_found_without_case_in_any_script(
        conn: sa.Connection, text: str, expected: set[str]) -> None:
    """Characters with a meaning for LIKE have none here; matches() says the same of rules that are not stored."""
    for name, description in {"a": "Éclair 100%/_", "b": "eclair 10 \\ ДОМ", "c": None}.items():
        stored = inspection_rules.create(conn, rule(name=name, description=description))
        assert inspection_rules.matches_filters(stored, {"description": text}) == (name in expected)
    assert {row.name for row in inspection_rules.list_rules(conn, {"description": text}, EVERYTHING)} == expected


def test_a_second_rule_of_one_uuid_is_refused(db: Database) -> None:
    first = db.write(lambda conn: inspection_rules.create(conn, rule()))
    with refused(inspection_rule_already_exists, match=first.uuid):
        db.write(lambda conn: inspection_rules.create(conn, rule(uuid=first.uuid)))
    with db.reader() as conn:
        assert inspection_rules.revision(conn) == 1


def test_every_change_grows_the_revision(conn: sa.Connection) -> None:
    first, second = (inspection_rules.create(conn, rule()) for _ in range(2))
    assert inspection_rules.update(conn, first.uuid, {"priority": 5}).revision == 3
    inspection_rules.destroy(conn, second.uuid)
    assert inspection_rules.revision(conn) == 4
    inspection_rules.destroy_all(conn)
    assert inspection_rules.revision(conn) == 5
    assert inspection_rules.all_rules(conn) == []


def test_update_writes_and_stamps_and_keeps_the_position(conn: sa.Connection) -> None:
    created = inspection_rules.create(conn, rule(description="a"))
    changed = inspection_rules.update(conn, created.uuid, {"description": None, "conditions": [{"op": "x"}]})
    assert (changed.description, changed.conditions, changed.position) == (None, [{"op": "x"}], created.position)
    assert changed.updated_at >= created.created_at


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False), ([], {}), ({"a": 1}, {"a": True})])
def test_an_update_without_a_difference_writes_nothing(conn: sa.Connection, before: Any, after: Any) -> None:
    """Values that Python takes for equal are different ones where their JSON is."""
    def actions(value: Any) -> list[dict[str, Any]]:
        return [{"op": "set-attribute", "args": {"path": "/extra/a", "value": value}}]

    created = inspection_rules.create(conn, rule(actions=actions(before)))
    for values in ({}, {"priority": 0}, {"actions": actions(before), "conditions": [], "name": None}):
        assert inspection_rules.update(conn, created.uuid, values, revision=1) == created
    with refused(rule_changed):
        inspection_rules.update(conn, created.uuid, {}, revision=7)
    assert [row.revision for row in rule_revisions.list_revisions(conn, 9)] == [inspection_rules.revision(conn)] == [1]
    changed = inspection_rules.update(conn, created.uuid, {"actions": actions(after)})
    assert (changed.revision, repr(changed.actions)) == (2, repr(actions(after)))


def test_an_update_of_a_sensitive_rule_is_written_in_any_case(conn: sa.Connection) -> None:
    """Otherwise the revision would confirm a guess."""
    created = inspection_rules.create(conn, rule(sensitive=True))
    for number, actions in enumerate(([{"op": "fail", "args": ["a guess"]}], ACTIONS, ACTIONS), 2):
        assert inspection_rules.update(conn, created.uuid, {"actions": actions}).revision == number


def test_to_delete_all_of_no_rules_writes_nothing(conn: sa.Connection) -> None:
    inspection_rules.destroy_all(conn)
    assert rule_revisions.list_revisions(conn, 9) == []
    assert inspection_rules.revision(conn) == 0


def test_update_with_an_old_revision_is_refused(db: Database) -> None:
    created = db.write(lambda conn: inspection_rules.create(conn, rule()))

    def update() -> Any:
        return db.write(
            lambda conn: inspection_rules.update(conn, created.uuid, {"priority": 1}, revision=created.revision))

    changed = update()
    with refused(rule_changed, match=created.uuid):
        update()
    with db.reader() as conn:
        assert inspection_rules.get(conn, created.uuid) == changed
        assert inspection_rules.revision(conn) == changed.revision


def test_of_two_updates_with_one_revision_one_wins(db: Database) -> None:
    created = db.write(lambda conn: inspection_rules.create(conn, rule()))

    def update() -> Any:
        return db.write(
            lambda conn: inspection_rules.update(conn, created.uuid, {"priority": 1}, revision=created.revision))

    assert sorted(type(result).__name__ for result in at_once([update] * 3)) == ["Changed", "Changed", "Rule"]


def test_a_rule_is_deleted_only_with_the_revision_that_is_asked_for(db: Database) -> None:
    created = db.write(lambda conn: inspection_rules.create(conn, rule()))
    changed = db.write(lambda conn: inspection_rules.update(conn, created.uuid, {"priority": 1}))
    with refused(rule_changed, match=created.uuid):
        db.write(lambda conn: inspection_rules.destroy(conn, created.uuid, revision=created.revision))
    db.write(lambda conn: inspection_rules.destroy(conn, created.uuid, revision=changed.revision))
    with refused(inspection_rule_not_found, match=created.uuid):
        db.write(lambda conn: inspection_rules.destroy(conn, created.uuid, revision=changed.revision))


def test_a_missing_rule_is_said_to_be_missing(db: Database) -> None:
    uuid = uuidutils.generate_uuid()
    for work in (lambda conn: inspection_rules.get(conn, uuid), lambda conn: inspection_rules.destroy(conn, uuid),
                 lambda conn: inspection_rules.update(conn, uuid, {"priority": 1}),
                 lambda conn: inspection_rules.update(conn, uuid, {"priority": 1}, revision=3)):
        with refused(inspection_rule_not_found, match=uuid):
            db.write(work)
    with db.reader() as conn:
        assert inspection_rules.revision(conn) == 0


def test_rules_made_at_once_get_distinct_positions(db: Database) -> None:
    results = at_once([lambda: db.write(lambda conn: inspection_rules.create(conn, rule()))] * 8)
    assert sorted(result.position for result in results if not isinstance(result, Exception)) == list(range(1, 9))
    with db.reader() as conn:
        assert inspection_rules.revision(conn) == 8


def test_all_rules_come_in_the_order_of_their_run(conn: sa.Connection) -> None:
    for description, priority in (("c", 0), ("a", 10), ("d", 0), ("b", 5)):
        inspection_rules.create(conn, rule(description=description, priority=priority))
    assert [row.description for row in inspection_rules.all_rules(conn)] == ["a", "b", "c", "d"]


def test_lists_come_in_the_order_of_creation_and_filtered(conn: sa.Connection) -> None:
    inspection_rules.create(conn, rule(description="a", phase="main", scope="rack"))
    inspection_rules.create(conn, rule(description="b", phase="early", priority=7))

    def found(**filters: Any) -> list[str]:
        return [row.description for row in inspection_rules.list_rules(conn, filters, EVERYTHING)]

    assert found() == ["a", "b"]
    assert found(phase="main") == found(scope="rack") == ["a"]
    assert found(priority=7) == found(scope=None) == ["b"]
    with pytest.raises(ValueError, match="no such filter: colour"):
        found(colour="red")


def test_lists_give_the_stored_json(conn: sa.Connection) -> None:
    inspection_rules.create(conn, rule())
    row, = inspection_rules.list_rules(conn, {}, EVERYTHING, ["uuid", "actions"], raw_json=True)
    assert row.actions == '[{"op":"set-attribute","args":{"path":"/extra/a","value":"b"}}]'


@pytest.mark.parametrize("page", [Page(1, sort_key="actions"), Page(1, sort_key="position"), Page(1, marker="nobody")])
def test_list_refuses_a_page_that_does_not_exist(conn: sa.Connection, page: Page) -> None:
    with pytest.raises((Invalid, MarkerNotFound)):
        inspection_rules.list_rules(conn, {}, page)
