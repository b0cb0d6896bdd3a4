"""Rows of a page are those of the query on each database, and pages of texts are, byte by byte, those of values."""

from __future__ import annotations

import datetime
import random
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import sqlalchemy as sa

from ironic_rules.api.views import nodes as views
from ironic_rules.db import clock, nodes
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import columns_of, rows_of
from ironic_rules.db.tables import nodes as table
from ironic_rules.db.types import Json, UTCDateTime
from ironic_rules.models.nodes import NODE
from tests.functional import databases

EVERYTHING = Page(limit=1000)
URL = 'http://a"b:6385'
HOSTS = {"": ["host-1", 'host-"2"'], "east": ["host-3"]}
#: Texts that look like what is between the parts of a page, or that JSON escapes.
TEXTS = ["", '"', '"":0', '\\"":0', '","":0', "\\", "\x01", "a\x01b", "{", "}", "},{", "%s", "%", "\n\t\x7f\x1f", "é",
         "\U0001f600", "null", "true", "0", "'", "it's", " "]
VALUES = [{}, {"a": None}, {"": 0, "b": ["\x01", '"":0', 1.5, 2**63, True]}, {"password": "p", "é": {"token": ["t"]}},
          {"url": "http://u:p@h/"}, {"ipmi_password": None}, {"nested": [{"auth_token": "x", "ok": "\U0001f600"}]}]


@pytest.fixture(params=databases.KINDS)
def conn(request: pytest.FixtureRequest) -> Iterator[sa.Connection]:
    with databases.migrated_database(request.param) as url:
        database = databases.open_database(url)
        with database.writer() as connection:
            yield connection
        database.dispose()


def any_value(column: sa.Column[Any], chance: random.Random) -> Any:
    if isinstance(column.type, Json):
        return chance.choice(VALUES)
    if column.nullable and chance.random() < 0.4:
        return None
    if isinstance(column.type, UTCDateTime):
        return datetime.datetime(2026, 11, 26, 8, 40, chance.randrange(60), chance.choice([0, 500_000, 7, 123_456]),
                                 tzinfo=datetime.UTC)
    return chance.random() < 0.5 if isinstance(column.type, sa.Boolean) else chance.choice(TEXTS)


def create_any(conn: sa.Connection, count: int, chance: random.Random) -> None:
    fixed = {"id", "uuid", "name", "instance_uuid", "chassis_uuid", "revision", "reservation_resumptions"}
    for number in range(count):
        values = {column.name: any_value(column, chance) for column in table.c if column.name not in fixed}
        values["conductor_group"] = chance.choice(["", "east", "west"])
        nodes.create(conn, {**values, "name": f"{chance.choice(TEXTS)}{number}" if number % 3 else None})


def assert_is_equal(conn: sa.Connection, minor: int, fields: tuple[str, ...] | None, page: Page = EVERYTHING) -> None:
    view = views.view(minor, fields)
    texts = nodes.list_nodes(conn, {}, page, view.columns, raw_json=True)
    values = nodes.list_nodes(conn, {}, page)
    traits = {row.id: ["CUSTOM_A"] * (row.id % 3) for row in nodes.list_nodes(conn, {}, EVERYTHING)}
    found, expected = (orjson.dumps([*view.render(rows, URL, traits, HOSTS)]) for rows in (texts, values))
    assert found == expected, (minor, fields)


def test_pages_are_those_that_are_made_of_rows(conn: sa.Connection) -> None:
    create_any(conn, 100, random.Random(7))

    for minor in (15, 34, 52, 96):
        assert_is_equal(conn, minor, None)
        assert_is_equal(conn, minor, views.default_fields(minor))
    for page in (Page(limit=7, sort_key="name"), Page(limit=60, sort_key="updated_at", sort_dir="desc")):
        assert_is_equal(conn, 96, None, page)


def test_any_fields_can_be_shown(conn: sa.Connection) -> None:
    chance = random.Random(8)
    create_any(conn, 40, chance)

    for name in sorted(NODE.shown):
        assert_is_equal(conn, 96, (name,))
    for _ in range(100):
        assert_is_equal(conn, 96, tuple(chance.sample(sorted(NODE.shown), chance.randrange(1, 12))))


def test_rows_are_those_of_the_query(conn: sa.Connection) -> None:
    create_any(conn, 100, random.Random(9))

    for columns in (None, ["uuid"], ["extra"], ["updated_at", "extra", "maintenance", "last_error", "id"]):
        for raw_json in (False, True):
            query = sa.select(*columns_of(table, columns, raw_json=raw_json)).order_by(table.c.id)
            found, expected = rows_of(conn, query), conn.execute(query).all()
            assert found == expected
            assert [row._fields for row in found] == [row._fields for row in expected]
            assert [[*map(type, row)] for row in found] == [[*map(type, row)] for row in expected]


def test_every_character_is_read(conn: sa.Connection) -> None:
    every = [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = ["".join(every[first:first + 250]) for first in range(0, len(every), 250)]
    conn.execute(sa.insert(table), [
        {"uuid": str(uuid.UUID(int=place)), "driver": "d", "owner": text, "provision_state": "enroll",
         "created_at": clock.now()} for place, text in enumerate(texts)])

    rows = nodes.list_nodes(conn, {}, Page(limit=len(texts)), ["owner"])

    assert [row.owner for row in rows] == texts


def test_a_large_row_is_read(conn: sa.Connection) -> None:
    nodes.create(conn, {"driver": "d", "extra": {"a": "x" * 9_000_000}})
    conn.execute(sa.update(table).values(properties={"b": "y" * 9_000_000}))

    row, = nodes.list_nodes(conn, {}, EVERYTHING, ["extra", "properties", "uuid"])

    # Two values that max_allowed_packet of MariaDB, by default 16 MiB, permits, but not one after the other.
    assert (len(row.extra["a"]), len(row.properties["b"])) == (9_000_000, 9_000_000)


def test_a_page_without_rows_is_empty(conn: sa.Connection) -> None:
    assert nodes.list_nodes(conn, {}, EVERYTHING) == []
    assert_is_equal(conn, 96, None)
