"""The content of the database, to compare before and after."""

from __future__ import annotations

import sqlite3
import weakref
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata

#: Written beside requests, or by the first report of a database.
_BESIDE = {"digest_keys", "inspection_journal", "inspection_journal_keys"}
#: Text, because tests compare before and after thousands of requests: SQLAlchemy's results take fifteen times as long.
_QUERIES = {table.name: str(sa.select(table).order_by(*table.primary_key.columns))
            for table in metadata.sorted_tables if table.name not in _BESIDE}


class _Reader:
    """A connection that only reads. SQLite tells it whether another one has committed anything since."""

    def __init__(self, file: str) -> None:
        self.connection = sqlite3.connect(file, check_same_thread=False)
        self._version: int | None = None
        self._rows: dict[str, list[tuple[Any, ...]]] = {}

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        version, = self.connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            # Asked before: what is committed meanwhile is read again the next time.
            self._rows = {name: self.connection.execute(query).fetchall() for name, query in _QUERIES.items()}
            self._version = version
        return self._rows


_readers: weakref.WeakKeyDictionary[Database, _Reader] = weakref.WeakKeyDictionary()


def contents(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables but those that are written beside requests, as SQLite stores them.

    They are read only if the database has changed since the last call: 0.01 instead of 0.6 ms.
    """
    reader = _readers.get(db)
    if reader is None:
        reader = _readers[db] = _Reader(str(db.engine.url.database))
        weakref.finalize(db, reader.connection.close)
    return reader.rows()
