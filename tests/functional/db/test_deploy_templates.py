"""Deploy templates and their steps."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import deploy_templates
from ironic_rules.db.paging import Page
from ironic_rules.db.session import Database
from ironic_rules.db.tables import deploy_template_steps
from ironic_rules.exceptions import (
    Invalid,
    MarkerNotFound,
    deploy_template_already_exists,
    deploy_template_changed,
    deploy_template_not_found,
    duplicate_deploy_template_name,
)
from ironic_rules.models.steps import DEPLOY_TEMPLATE, Step
from tests.functional.db.concurrency import at_once
from tests.wordings import refused

BIOS = Step("bios", "apply_configuration", {"settings": [{"name": "Ünïcode", "value": 1.5}]}, 150)
RAID = Step("raid", "create_configuration", {"a": None, "b": {"c": [True, 1]}}, 0)
PATIENT = Step("deploy", "write_image", {}, 2**31 - 1)
EVERYTHING = Page(limit=1000)


def stored(conn: sa.Connection, name: str = "CUSTOM_A", *steps: Step, **values: Any) -> Any:
    return deploy_templates.create(conn, {"name": name, **values}, steps or (BIOS,))


def test_create_fills_in_what_is_not_given_and_keeps_the_steps_in_order(conn: sa.Connection) -> None:
    created = stored(conn, "CUSTOM_A", RAID, BIOS, PATIENT, RAID)
    assert uuidutils.is_uuid_like(created.uuid)
    assert (created.name, created.extra, created.revision, created.updated_at) == ("CUSTOM_A", {}, 1, None)
    assert created.steps == (RAID, BIOS, PATIENT, RAID)
    assert deploy_templates.get(conn, "CUSTOM_A") == deploy_templates.get(conn, created.uuid.upper()) == created


@pytest.mark.parametrize(("taken", "error"), [
    ("name", duplicate_deploy_template_name), ("uuid", deploy_template_already_exists)])
def test_a_name_and_a_uuid_belong_to_one_template(db: Database, taken: str, error: Any) -> None:
    first = db.write(stored)
    values = {"name": "CUSTOM_B", "uuid": uuidutils.generate_uuid(), taken: getattr(first, taken)}
    with refused(error, match=values[taken]):
        db.write(lambda conn: deploy_templates.create(conn, values, [BIOS]))
    with db.reader() as conn:
        assert [row.name for row in deploy_templates.list_templates(conn, EVERYTHING)] == ["CUSTOM_A"]
        assert conn.scalar(sa.select(sa.func.count()).select_from(deploy_template_steps)) == 1


def test_update_writes_stamps_and_counts(conn: sa.Connection) -> None:
    created = stored(conn, "CUSTOM_A", RAID, BIOS)
    renamed = deploy_templates.update(conn, created, {"name": "CUSTOM_B", "extra": {"a": 1}})
    assert (renamed.name, renamed.extra, renamed.steps, renamed.revision) == ("CUSTOM_B", {"a": 1}, (RAID, BIOS), 2)
    assert renamed.updated_at >= created.created_at
    changed = deploy_templates.update(conn, renamed, {}, [BIOS, BIOS, PATIENT])
    assert (changed.name, changed.steps, changed.revision) == ("CUSTOM_B", (BIOS, BIOS, PATIENT), 3)


def test_a_name_that_is_taken_stops_an_update(db: Database) -> None:
    first = db.write(stored)
    db.write(lambda conn: stored(conn, "CUSTOM_B"))
    with refused(duplicate_deploy_template_name, match="CUSTOM_B"):
        db.write(lambda conn: deploy_templates.update(conn, first, {"name": "CUSTOM_B"}, [RAID]))
    with db.reader() as conn:
        assert deploy_templates.get(conn, first.uuid) == first


def test_of_several_updates_of_one_state_one_wins(db: Database) -> None:
    read = db.write(stored)

    def change(step: Step) -> Any:
        return db.write(lambda conn: deploy_templates.update(conn, read, {}, [step, step]))

    results = at_once([lambda: change(BIOS), lambda: change(RAID), lambda: change(PATIENT)])
    won, = (result for result in results if not isinstance(result, Exception))
    assert sorted(type(result).__name__ for result in results) == [
        "Changed", "Changed", "DeployTemplate"]
    with db.reader() as conn:
        assert deploy_templates.get(conn, read.uuid) == won


def test_destroy_takes_the_steps_along(conn: sa.Connection) -> None:
    deploy_templates.destroy(conn, stored(conn, "CUSTOM_A", RAID, BIOS))
    assert conn.scalar(sa.select(sa.func.count()).select_from(deploy_template_steps)) == 0


def test_destroy_notices_a_change_if_it_shall(db: Database) -> None:
    read = db.write(stored)
    db.write(lambda conn: deploy_templates.update(conn, read, {"extra": {"a": 1}}))
    with refused(deploy_template_changed, match=read.uuid):
        db.write(lambda conn: deploy_templates.destroy(conn, read, only_unchanged=True))
    db.write(lambda conn: deploy_templates.destroy(conn, read))
    for work in (lambda conn: deploy_templates.destroy(conn, read),
                 lambda conn: deploy_templates.update(conn, read, {"extra": {}}),
                 lambda conn: deploy_templates.get(conn, read.uuid)):
        with refused(deploy_template_not_found, match=read.uuid):
            db.write(work)


def test_templates_are_found_by_traits(conn: sa.Connection) -> None:
    made = {name: stored(conn, name, RAID, BIOS) for name in ("CUSTOM_B", "HW_CPU_X86_VMX", "CUSTOM_A", "CUSTOM__A")}
    assert deploy_templates.for_traits(conn, ["CUSTOM_OTHER", "CUSTOM_B", "CUSTOM_A", "HW_CPU_X86_VMX"]) == [
        made["CUSTOM_A"], made["CUSTOM_B"], made["HW_CPU_X86_VMX"]]
    assert deploy_templates.for_traits(conn, []) == deploy_templates.for_traits(conn, {"custom_a"}) == []


def test_a_list_gives_the_stored_json_and_the_steps_in_their_order(conn: sa.Connection) -> None:
    first = stored(conn, "CUSTOM_B", RAID, BIOS, extra={"a": 1})
    second = stored(conn, "CUSTOM_A", PATIENT)
    rows = deploy_templates.list_templates(conn, EVERYTHING, ["id", "name", "extra"], raw_json=True)
    assert [tuple(row) for row in rows] == [(first.id, "CUSTOM_B", '{"a":1}'), (second.id, "CUSTOM_A", "{}")]
    assert deploy_templates.steps_of(conn, [second.id, first.id, 10**6]) == {
        second.id: [("deploy", "write_image", "{}", 2**31 - 1)],
        first.id: [("raid", "create_configuration", '{"a":null,"b":{"c":[true,1]}}', 0),
                   ("bios", "apply_configuration", '{"settings":[{"name":"Ünïcode","value":1.5}]}', 150)],
        10**6: []}
    assert deploy_templates.steps_of(conn, []) == {}


def test_the_cost_of_a_list_is_two_queries(db: Database) -> None:
    with db.writer() as conn:
        for number in range(20):
            stored(conn, f"CUSTOM_{number}", RAID, BIOS)
    statements: list[str] = []

    def count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    sa.event.listen(db.engine, "before_cursor_execute", count)
    with db.reader() as conn:
        rows = deploy_templates.list_templates(conn, EVERYTHING)
        steps = deploy_templates.steps_of(conn, [row.id for row in rows])
        deploy_templates.for_traits(conn, [row.name for row in rows])
    sa.event.remove(db.engine, "before_cursor_execute", count)
    assert sum(map(len, steps.values())) == 40
    assert len([text for text in statements if text.startswith("SELECT")]) == 3


@pytest.mark.parametrize("sort_dir", ["asc", "desc"])
@pytest.mark.parametrize("key", sorted(DEPLOY_TEMPLATE.sort_keys))
def test_a_walk_along_the_markers_meets_each_template_once(conn: sa.Connection, key: str, sort_dir: str) -> None:
    made = {stored(conn, f"CUSTOM_{number}").uuid for number in (3, 1, 2)}
    found: list[str] = []
    page = Page(limit=1, sort_key=key, sort_dir=sort_dir)
    while rows := deploy_templates.list_templates(conn, page):
        found.append(rows[0].uuid)
        page = dataclasses.replace(page, marker=rows[0].uuid)
    assert (len(found), set(found)) == (3, made)


@pytest.mark.parametrize("page", [Page(1, sort_key="extra"), Page(1, sort_key="revision"), Page(1, marker="nobody")])
def test_list_refuses_a_page_that_does_not_exist(conn: sa.Connection, page: Page) -> None:
    with pytest.raises((Invalid, MarkerNotFound)):
        deploy_templates.list_templates(conn, page)
