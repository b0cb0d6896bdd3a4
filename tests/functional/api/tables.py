"""The content of the database, to compare before and after."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata

#: Written beside requests, or by the first report of a database.
_BESIDE = {"digest_keys", "inspection_journal", "inspection_journal_keys"}


def contents(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables but those that are written beside requests."""
    with db.reader() as conn:
        return {table.name: [tuple(row) for row in conn.execute(sa.select(table).order_by(*table.primary_key.columns))]
                for table in metadata.sorted_tables if table.name not in _BESIDE}
