"""Reading rows of tables that have many rows for each node: its history, and its inspections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import identity
from ironic_rules.db.paging import Page, marker_row, paginate


def list_for(conn: sa.Connection, table: sa.Table, node_id: int, page: Page) -> Sequence[Any]:
    """Return at most ``page.limit`` rows of the node.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = sa.select(table).where(table.c.node_id == node_id)
    return conn.execute(paginate(query, table, page, marker_row(conn, table, page))).all()


def get(conn: sa.Connection, table: sa.Table, node_id: int, uuid: str) -> Any:
    """Return one row of the node; None if there is no such row."""
    query = sa.select(table).where(table.c.node_id == node_id, identity.has_uuid(table, uuid))
    return conn.execute(query).one_or_none()
