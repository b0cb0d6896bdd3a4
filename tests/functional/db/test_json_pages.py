"""Pages that a database writes as JSON are, byte by byte, those that are made of rows."""

from __future__ import annotations

import datetime
import random
import re
import sys
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import sqlalchemy as sa

from ironic_rules.api.views import nodes as views
from ironic_rules.db import json_pages, nodes
from ironic_rules.db.json_pages import Selected
from ironic_rules.db.paging import Page
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
    rows = nodes.list_nodes(conn, {}, page, view.columns, raw_json=True)
    traits = {row.id: ["CUSTOM_A"] * (row.id % 3) for row in nodes.list_nodes(conn, {}, EVERYTHING)}
    made = nodes.list_json(conn, {}, page, view.selected)
    assert made is not None
    text = b"".join([b"[", *view.pieces(made, URL, traits, HOSTS), b"]"])
    if conn.dialect.name == "mysql":
        # MariaDB writes \u001F instead of \u001f.
        text = re.sub(rb"(?<!\\)((?:\\\\)*)\\u00([01][A-F])", lambda found: found[0].lower(), text)
    assert text == orjson.dumps(view.render(rows, URL, traits, HOSTS)), (minor, fields)


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


def test_every_character_is_written_as_by_orjson(conn: sa.Connection) -> None:
    every = [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    for first in range(0, len(every), 16_000):
        nodes.create(conn, {"driver": "d", "description": "".join(every[first:first + 16_000])})

    assert_is_equal(conn, 96, ("description",))


def test_a_row_that_is_too_large_is_not_made(conn: sa.Connection) -> None:
    nodes.create(conn, {"driver": "d", "extra": {"a": "x" * 9_000_000}})
    conn.execute(sa.update(table).values(properties={"b": "y" * 9_000_000}))

    made = nodes.list_json(conn, {}, EVERYTHING, views.view(96, ("extra", "properties")).selected)

    # Two values that max_allowed_packet of MariaDB, by default 16 MiB, permits, but not one after the other.
    mysql = conn.dialect.name == "mysql"
    assert (made is None) == (mysql and conn.scalar(sa.text("SELECT @@max_allowed_packet")) < 18_000_000)


def test_a_page_without_rows_is_empty(conn: sa.Connection) -> None:
    assert_is_equal(conn, 96, None)


def test_only_the_first_rows_remain(conn: sa.Connection) -> None:
    create_any(conn, 5, random.Random(9))
    view = views.view(96, ("uuid", "extra"))
    made = nodes.list_json(conn, {}, EVERYTHING, view.selected)
    assert made is not None
    made.cut(2)

    shown = orjson.loads(b"".join([b"[", *view.pieces(made, URL, {}, {}), b"]"]))

    rows = nodes.list_nodes(conn, {}, EVERYTHING)
    assert [(node["uuid"], node["extra"]) for node in shown] == [(row.uuid, row.extra) for row in rows[:2]]


def test_a_table_may_have_more_columns_than_a_function_of_sqlite_arguments() -> None:
    wide = sa.Table("wide", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True),
                    *(sa.Column(f"c{number}", sa.String(9)) for number in range(200)))
    selected = Selected(tuple(f"c{number}" for number in range(200)), ("id",))
    values = {name: TEXTS[number % len(TEXTS)][:9] for number, name in enumerate(selected.shown)}
    with sa.create_engine("sqlite://").begin() as conn:
        wide.create(conn)
        conn.execute(sa.insert(wide), [values, values])
        made = json_pages.fetch(conn, json_pages.select(wide, selected, "sqlite"), selected, wide)

    assert made is not None
    assert made.needed == [[1], [2]]
    assert orjson.loads(b"[%b]" % b"".join(made.pieces([b'"end":1'] * 2))) == [{**values, "end": 1}] * 2


@pytest.mark.parametrize("dialect", databases.KINDS)
def test_a_column_without_a_form_in_json_is_refused(dialect: str) -> None:
    odd = sa.Table("odd", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("blob", sa.LargeBinary))

    with pytest.raises(TypeError, match=r"odd\.blob"):
        json_pages.select(odd, Selected(("blob",), ("id",)), dialect)
