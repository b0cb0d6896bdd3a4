"""Upgrades of databases that are in use: rows of every table, inserted at every revision, survive each later one."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from ironic_rules.db import inspection_rules, migration, nodes
from ironic_rules.db.tables import metadata
from tests.functional import databases

#: As the databases have it: without a zone.
NOW = datetime.datetime(2026, 3, 1, 12, 30, 15, 123456)  # noqa: DTZ001
REVISIONS = [script.revision for script in ScriptDirectory(str(migration._SCRIPTS)).walk_revisions()][::-1]
#: Columns with a JSON value; the databases have them as text.
JSON = {(table.name, column.name): column for table in metadata.sorted_tables for column in table.columns
        if type(column.type).__name__ == "Json"}
#: Meaning of the text of a column for the migrations.
TEXTS = {("node_inventory", "status"): "processed", ("inspection_rules", "phase"): "main",
         ("nodes", "provision_state"): "manageable", ("nodes", "reservation_purpose"): "provision: manage"}

Row = dict[str, Any]


class Filler:
    """Inserts a row with a value in every column, whatever columns the tables have at that revision."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1000)

    def fill(self, conn: sa.Connection, tables: sa.MetaData, revision: str) -> dict[str, Row]:
        """Insert a row into every table; return the rows by table."""
        rows: dict[str, Row] = {}
        for table in tables.sorted_tables:
            if table.name == "alembic_version":
                continue
            row = {column.name: self._value(column, rows, revision) for column in table.columns}
            conn.execute(sa.insert(table).values(row))
            rows[table.name] = row
        return rows

    def _value(self, column: sa.Column[Any], rows: dict[str, Row], revision: str) -> Any:
        for key in column.foreign_keys:
            return rows[key.column.table.name][key.column.name]
        place = (column.table.name, column.name)
        kind = column.type
        # SQLite and MariaDB have no type of their own for true and false.
        if isinstance(kind, sa.Boolean) or isinstance(metadata.tables[place[0]].c[place[1]].type, sa.Boolean):
            return True
        if isinstance(kind, sa.Integer):
            return next(self._numbers)
        if isinstance(kind, (sa.Float, sa.Numeric)):
            return 1.5
        if isinstance(kind, sa.DateTime):
            return NOW
        if place in JSON:
            return "[]" if place[1] in ("conditions", "actions") else '{"é": [1, null, "😀"]}'
        text = TEXTS.get(place, f"{revision} {next(self._numbers)} é")
        return text[:kind.length] if getattr(kind, "length", None) else text


def stored(conn: sa.Connection, tables: sa.MetaData) -> dict[str, list[Row]]:
    return {table.name: [dict(row._mapping) for row in conn.execute(sa.select(table))]
            for table in tables.sorted_tables}


def contains(found: Row, row: Row) -> bool:
    return all(found[name] == value for name, value in row.items())


@pytest.mark.parametrize("kind", [
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers),
    pytest.param("postgresql", marks=pytest.mark.servers)])
def test_rows_of_every_revision_survive_every_upgrade(kind: str) -> None:
    with databases.temporary_database(kind) as url:
        database = databases.open_database(url)
        engine, filler, inserted = database.engine, Filler(), []
        try:
            for revision in REVISIONS:
                migration.upgrade(engine, revision)
                assert migration.version(engine) == revision
                with engine.begin() as conn:
                    tables = sa.MetaData()
                    tables.reflect(conn)
                    now = stored(conn, tables)
                    lost = [(origin, table) for origin, rows in inserted for table, row in rows.items()
                            if not any(contains(found, row) for found in now[table])]
                    assert lost == [], f"after the upgrade to {revision}"
                    inserted.append((revision, filler.fill(conn, tables, revision)))
            filled = inserted[-1][1]
            assert migration.is_current(engine)
            assert filled.keys() == metadata.tables.keys()
            with database.reader() as conn:
                # They can be used, too: the newest code reads the oldest rows.
                for _, rows in inserted:
                    assert nodes.get_by_id(conn, rows["nodes"]["id"]).properties == {"é": [1, None, "😀"]}
                assert {rows["inspection_rules"]["uuid"] for _, rows in inserted} == inspection_rules.uuids(conn)
                assert len(inspection_rules.all_rules(conn)) == len(REVISIONS)
        finally:
            database.dispose()
