"""The tables that have many rows for each node, its history and its inspections: reading them, deleting old rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import identity
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.prepared import Prepared
from ironic_rules.db.tables import node_history, node_inspections

_HISTORY_GONE = sa.select(node_history.c.id).where(
    node_history.c.node_id == sa.bindparam("of_node"),
    node_history.c.event_type == sa.bindparam("of_type")).order_by(node_history.c.id.desc()).offset(
        sa.bindparam("history", type_=sa.Integer)).limit(1)
_INSPECTIONS_GONE = sa.select(node_inspections.c.id).where(
    node_inspections.c.node_id == sa.bindparam("of_node")).order_by(node_inspections.c.id.desc()).offset(
        sa.bindparam("inspections", type_=sa.Integer)).limit(1)
#: By whether rows of the history, and of the inspections, are limited.
_GONE = {
    (of_history, of_inspections): Prepared(sa.select(
        (_HISTORY_GONE.scalar_subquery() if of_history else sa.null()).label("history"),
        (_INSPECTIONS_GONE.scalar_subquery() if of_inspections else sa.null()).label("inspections")))
    for of_history, of_inspections in ((True, False), (False, True), (True, True))
}


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


def prune(conn: sa.Connection, node_id: int, event_type: str = "", history: int | None = None,
          inspections: int | None = None) -> None:
    """Delete the oldest rows of the node.

    One query finds both, because each inspection adds a row to both tables.

    :param history: how many entries of the type ``event_type`` remain, whose number does not displace others; None: all
    :param inspections: how many inspections remain; None: all
    """
    limits = {name: keep for name, keep in (("history", history), ("inspections", inspections)) if keep is not None}
    if not limits:
        return
    query = _GONE["history" in limits, "inspections" in limits]
    parameters = {"of_node": node_id, **limits, **({"of_type": event_type} if "history" in limits else {})}
    history_gone, inspections_gone = query.one(conn, parameters)
    if history_gone is not None:
        conn.execute(sa.delete(node_history).where(
            node_history.c.node_id == node_id, node_history.c.event_type == event_type,
            node_history.c.id <= history_gone))
    if inspections_gone is not None:
        conn.execute(sa.delete(node_inspections).where(
            node_inspections.c.node_id == node_id, node_inspections.c.id <= inspections_gone))
