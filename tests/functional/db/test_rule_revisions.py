"""Revisions of the rule set, changes of many rules, and searches, on each database."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import inspection_rules, rule_revisions
from ironic_rules.db.inspection_rules import RevisionChanges
from ironic_rules.db.paging import Page
from ironic_rules.db.rule_revisions import Author
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inspection_rule_versions
from ironic_rules.exceptions import (
    duplicate_inspection_rule_name,
    inspection_rule_already_exists,
    rule_revision_not_found,
)
from ironic_rules.models.rules import RULE, Rule
from tests.functional.db.concurrency import at_once
from tests.functional.db.test_inspection_rules import rule
from tests.wordings import refused, says

KEEP = 4
FIELDS = RULE.where(lambda entry: entry.patch)
EMPTY = {name: RULE[name].initial() for name in FIELDS}


def full(**values: Any) -> dict[str, Any]:
    return {**EMPTY, **rule(), **values}


def by_uuid(rules: list[Rule]) -> dict[str, Any]:
    """Return all that must be kept of each rule."""
    return {found.uuid: (found.position, found.created_at, [getattr(found, name) for name in FIELDS])
            for found in rules}


def change(conn: sa.Connection, chance: random.Random, author: Author) -> None:
    """Make one change, as a user can."""
    stored = [found.uuid for found in inspection_rules.all_rules(conn)]
    chance.shuffle(stored)
    kind = chance.choice(["create", "update", "destroy", "change", "change", "change", "all"] if stored else ["create"])
    number = chance.randrange(9999)
    match kind:
        case "create":
            inspection_rules.create(conn, full(priority=number), author=author)
        case "update":
            inspection_rules.update(conn, stored[0], {"priority": number}, author=author)
        case "destroy":
            inspection_rules.destroy(conn, stored[0], author=author)
        case "all":
            inspection_rules.destroy_all(conn, author=author)
        case "change":
            third = len(stored) // 3
            inspection_rules.change(conn, RevisionChanges(
                created=[full(name=f"{number}-{each}") for each in range(chance.randrange(4))],
                changed={uuid: full(priority=number, conditions=[{"op": "x"}]) for uuid in stored[:third]},
                removed=stored[third:2 * third]), "many", author=author)


@pytest.mark.parametrize("seed", range(2))
def test_every_kept_revision_is_what_the_set_was(db: Database, seed: int) -> None:
    chance, author = random.Random(seed), Author("u" * 300, KEEP)
    known: dict[int, dict[str, Any]] = {}
    for _ in range(30):
        with db.writer() as conn:
            change(conn, chance, author)
            now = inspection_rules.revision(conn)
            known[now] = by_uuid(inspection_rules.all_rules(conn))
            kept = rule_revisions.list_revisions(conn, 100)
            assert [row.revision for row in kept] == sorted(known)[:-KEEP - 1:-1]
            assert {row.user for row in kept} == {"u" * 255}
            assert all(by_uuid(rule_revisions.rules_at(conn, row.revision)) == known[row.revision] for row in kept)
            # Nothing is stored that no kept revision needs.
            oldest = kept[-1].revision
            needless = sa.select(sa.func.count()).where(inspection_rule_versions.c.ended <= oldest)
            assert conn.scalar(needless) == 0
            with refused(rule_revision_not_found):
                rule_revisions.get(conn, now + 1)
    assert sorted(known) == list(range(1, 31))


def test_many_rules_are_created_in_their_order(conn: sa.Connection) -> None:
    inspection_rules.create(conn, rule())
    revision, uuids = inspection_rules.change(
        conn, RevisionChanges(created=[full(description=str(number)) for number in range(600)]), "many")
    later = inspection_rules.create(conn, rule())
    assert (revision, len(set(uuids))) == (2, 600)
    found = inspection_rules.all_rules(conn)
    assert [each.description for each in found[1:-1]] == [str(number) for number in range(600)]
    assert [each.uuid for each in found[1:-1]] == uuids
    assert (later.position, later.revision) == (602, 3)
    inspection_rules.change(conn, RevisionChanges(
        changed={uuid: full(priority=1) for uuid in uuids[:550]}, removed=uuids[550:]), "many")
    assert sorted({(each.priority, each.revision) for each in inspection_rules.all_rules(conn)}) == [
        (0, 1), (0, 3), (1, 4)]
    assert len(rule_revisions.rules_at(conn, 3)) == 602


def test_a_position_that_a_rule_could_get_back_is_not_given_again(conn: sa.Connection) -> None:
    first = inspection_rules.create(conn, rule())
    inspection_rules.destroy(conn, first.uuid)
    assert inspection_rules.create(conn, rule()).position == first.position + 1


def test_a_uuid_that_is_taken_is_refused_in_many_too(db: Database) -> None:
    taken = db.write(lambda conn: inspection_rules.create(conn, rule()))
    with refused(inspection_rule_already_exists):
        db.write(lambda conn: inspection_rules.change(
            conn, RevisionChanges(created=[full(), full(uuid=taken.uuid)]), "many"))
    with db.reader() as conn:
        assert len(inspection_rules.all_rules(conn)) == inspection_rules.revision(conn) == 1


@pytest.mark.parametrize("bundle", [None, "racks"])
def test_of_rules_with_one_name_that_are_made_at_once_one_is(db: Database, bundle: str | None) -> None:
    def create() -> Rule:
        return db.write(lambda conn: inspection_rules.create(conn, rule(name="a", bundle=bundle)))

    results = at_once([create] * 4)
    assert [says(result, duplicate_inspection_rule_name) for result in results].count(True) == 3
    db.write(lambda conn: inspection_rules.create(conn, rule(name="A", bundle=bundle)))
    db.write(lambda conn: inspection_rules.create(conn, rule(name="a", bundle="other")))


def test_rules_are_searched_with_case_and_without_patterns(conn: sa.Connection) -> None:
    for name, path in (("a", "/extra/a_b"), ("b", "/extra/aXb"), ("c", "/EXTRA/a"), ("d", "/extra%/a")):
        inspection_rules.create(conn, rule(name=name, description=f"It's {path}", actions=[
            {"op": "set-attribute", "args": [path, 1]}]))

    def found(**filters: Any) -> str:
        return "".join(row.name for row in inspection_rules.list_rules(conn, filters, Page(limit=9), ["name"]))

    assert found(writes="/extra") == "ab"
    assert found(writes="/extra/a_b") == "a"
    assert found(writes="/extra%") == "d"
    assert found(description="'S /extra/A_") == "a"
    assert found(op="set-attribute") == "abcd"
    assert found(op="SET-attribute") == ""
    uuids = {row.name: row.uuid for row in inspection_rules.all_rules(conn)}
    assert found(uuid_in=[uuids["b"], uuids["d"]]) == "bd"
    assert found(uuid_not_in=[uuids["b"]]) == "acd"
    assert (found(uuid_in=[]), found(uuid_not_in=[])) == ("", "abcd")


def test_numbers_beyond_those_of_the_columns_find_nothing(conn: sa.Connection) -> None:
    inspection_rules.create(conn, rule())
    assert inspection_rules.list_rules(conn, {"priority": 10**17}, Page(limit=9)) == []
    assert rule_revisions.list_revisions(conn, 9, 10**17, ascending=True) == []
    assert [row.revision for row in rule_revisions.list_revisions(conn, 9, 10**17)] == [1]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_order_of_execution_has_every_rule_once(conn: sa.Connection, order: str) -> None:
    chance = random.Random(1)
    for _ in range(25):
        inspection_rules.create(conn, rule(phase=chance.choice(["early", "preprocess", "main", None]),
                                           priority=chance.randrange(3)))
    expected = sorted((inspection_rules.place_of(found), found.uuid) for found in inspection_rules.all_rules(conn))
    seen: list[str] = []
    place = None
    while page := inspection_rules.list_in_order(
            conn, {}, Page(limit=4, sort_dir=order), ["uuid", "phase", "priority", "position"], place):
        seen += [row.uuid for row in page]
        place = inspection_rules.place_of_marker(conn, page[-1].uuid)
    assert seen == [uuid for _, uuid in (expected if order == "asc" else expected[::-1])]
    # Places of built-in rules are beyond all columns.
    beyond = inspection_rules.RulePlace(2, 10**12, 2**32 + 1)
    later = inspection_rules.list_in_order(conn, {}, Page(limit=99, sort_dir=order), ["uuid"], beyond)
    assert len(later) == (0 if order == "asc" else 25)
