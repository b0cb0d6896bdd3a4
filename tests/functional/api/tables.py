"""The content of the database, to compare before and after."""

from __future__ import annotations

import contextlib
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata

#: Written beside requests, or by the first report of a database.
_BESIDE = {"digest_keys", "inspection_journal", "inspection_journal_keys"}
#: Text, because tests compare before and after thousands of requests: SQLAlchemy's results take fifteen times as long.
_QUERIES = {table.name: str(sa.select(table).order_by(*table.primary_key.columns))
            for table in metadata.sorted_tables if table.name not in _BESIDE}


def contents(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables but those that are written beside requests, as SQLite stores them."""
    with db.reader() as conn, contextlib.closing(conn.connection.cursor()) as cursor:
        return {name: cursor.execute(query).fetchall() for name, query in _QUERIES.items()}
