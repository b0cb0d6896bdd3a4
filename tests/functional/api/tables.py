"""The content of the database, to compare before and after."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata


def contents(db: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables."""
    with db.reader() as conn:
        return {table.name: [tuple(row) for row in conn.execute(sa.select(table).order_by(*table.primary_key.columns))]
                for table in metadata.sorted_tables}
