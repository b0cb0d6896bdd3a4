"""The tables of fields: the properties of a declaration, and that they match the database."""

from __future__ import annotations

import datetime
from typing import Protocol

import pytest
import sqlalchemy as sa

from ironic_rules.db import tables
from ironic_rules.db.types import Json, UTCDateTime
from ironic_rules.models.fields import Field, Fields, Filter, Text, Type, field, form, record, values_of
from ironic_rules.models.nodes import INTERFACES, NODE, SUB_RESOURCES
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.models.resources import ALLOCATION, CHASSIS, RUNBOOK, VOLUME_CONNECTOR, VOLUME_TARGET
from ironic_rules.models.rules import RULE
from ironic_rules.models.steps import DEPLOY_TEMPLATE
from tests.walking import walking


@form
class Thing(Protocol):
    id: int = field(shown=False)
    name: str = field(patch=True, required=True, summary=True)
    since_five: str | None = field(since=5, patch=True, filter=7)
    settings: dict[str, object] = field(since=9, patch=True, rules=True, secret=True)
    made_at: datetime.datetime | None = field()
    joined: str = field(column=False)


@record
class Record:
    uuid: str = field()
    parts: tuple[str, ...] = field(default=())
    mode: str = field(patch=True, default="quick")


THING = Fields.of(Thing, computed={"links": 1, "extra": 4}, inputs={"ident": 3}, filters=(Filter("colour", since=2),))


def test_types_come_from_the_annotations():
    assert {name: (entry.type, entry.nullable) for name, entry in THING.items()} == {
        "id": (Type.INTEGER, False), "name": (Type.STRING, False), "since_five": (Type.STRING, True),
        "settings": (Type.OBJECT, False), "made_at": (Type.TIME, True), "joined": (Type.STRING, False)}


def test_one_declaration_says_who_may_do_what():
    assert (THING.columns, THING.summary, THING.required, THING.json, THING.secret) == (
        ("name", "since_five", "settings", "made_at", "joined"), ("name",), ("name",), {"settings"}, {"settings"})
    assert (THING.patchable, THING.writable_by_rules) == ({"name", "since_five", "settings"}, {"settings"})
    assert THING.sort_keys == {"id", "name", "since_five", "made_at"}
    assert THING.shown == {"name", "since_five", "settings", "made_at", "joined", "links", "extra"}


def test_a_field_is_hidden_below_its_version_only():
    assert [sorted(THING.hidden(minor)) for minor in (1, 3, 4, 5, 9, 96)] == [
        ["extra", "ident", "settings", "since_five"], ["extra", "settings", "since_five"], ["settings", "since_five"],
        ["settings"], [], []]


def test_filters_are_those_by_value_and_those_that_are_named():
    assert {name: entry.since for name, entry in THING.filters.items()} == {"since_five": 7, "colour": 2}


def test_what_is_removed_gets_its_default():
    assert (THING.defaults(), Fields.of(Record).defaults()) == ({"settings": {}}, {"mode": "quick"})
    assert THING["settings"].initial() is not THING["settings"].initial()


def test_what_a_rule_deletes_is_empty():
    assert (Fields.of(Record)["mode"].empty(), THING["since_five"].empty()) == ("", None)


def test_a_record_is_immutable_and_has_its_defaults():
    made = Record(uuid="x")

    assert values_of(Fields.of(Record), made) == {"uuid": "x", "parts": (), "mode": "quick"}
    with pytest.raises(AttributeError):
        made.mode = "slow"


def test_a_form_leaves_nothing_in_its_class():
    assert not hasattr(Thing, "name")


COLUMNS = {
    "nodes": (NODE, tables.nodes), "ports": (PORT, tables.ports), "portgroups": (PORT_GROUP, tables.portgroups),
    "runbooks": (RUNBOOK, tables.runbooks), "allocations": (ALLOCATION, tables.allocations),
    "chassis": (CHASSIS, tables.chassis),
    "volume_connectors": (VOLUME_CONNECTOR, tables.volume_connectors),
    "volume_targets": (VOLUME_TARGET, tables.volume_targets),
    "inspection_rules": (RULE, tables.inspection_rules), "deploy_templates": (DEPLOY_TEMPLATE, tables.deploy_templates),
}
COLUMN_TYPES = {Type.STRING: (sa.String, sa.Text), Type.INTEGER: (sa.Integer,), Type.BOOLEAN: (sa.Boolean,),
                Type.TIME: (UTCDateTime,), Type.OBJECT: (Json,), Type.LIST: (Json,)}


def differs(entry: Field, column: sa.Column[object]) -> bool:
    """Yield the columns that differ from the table of the fields."""
    is_bounded = entry.patch and entry.type is Type.STRING and entry.text not in (Text.UUID, Text.MAC)
    fits = not is_bounded or column.type.length in (None, entry.max_length) or bool(entry.choices)
    # A rule's phase was nullable before it had a default.
    is_nullable = entry.nullable or entry.name == "phase"
    return not (isinstance(column.type, COLUMN_TYPES[entry.type]) and fits and column.nullable <= is_nullable)


@walking("name", COLUMNS)
def test_fields_and_columns_are_the_same(name):
    fields, table = COLUMNS[name]

    assert set(fields.where(lambda entry: entry.column)) == set(table.c.keys())
    assert [entry.name for entry in fields.values() if entry.column and differs(entry, table.c[entry.name])] == []


def test_fields_of_nodes_that_no_table_has_are_known():
    assert NODE.shown - set(NODE.columns) == {"traits", "links", "conductor", *SUB_RESOURCES}


def test_every_kind_of_interfaces_has_its_field():
    assert INTERFACES == (
        "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue",
        "storage", "vendor")


def test_every_field_that_can_be_patched_is_shown():
    assert NODE.patchable <= NODE.shown


@walking("hidden", ["id", "revision", "agent_token_hash", "reservation_purpose", "reserved_at"])
def test_what_only_the_service_reads_is_in_no_reply(hidden):
    assert hidden in NODE
    assert hidden not in NODE.shown
