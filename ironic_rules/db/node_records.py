"""The tables that have many rows for each node, its history and its inspections: reading them, deleting old rows.

Entries of the history are oldest first. The transaction that ends an inspection writes the row of it.
"""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, identity
from ironic_rules.db.errors import references
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.tables import node_history, node_inspections
from ironic_rules.exceptions import NodeNotFound, history_not_found, inspection_not_found
from ironic_rules.models.inspections import InspectionEntry
from ironic_rules.models.nodes import HistoryEntry, Node

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


def list_records(conn: sa.Connection, table: sa.Table, node_id: int, page: Page) -> Sequence[Any]:
    """Return at most ``page.limit`` rows of the node.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = sa.select(table).where(table.c.node_id == node_id)
    return conn.execute(paginate(query, table, page, marker_row(conn, table, page))).all()


def get_record(conn: sa.Connection, table: sa.Table, node_id: int, uuid: str) -> Any:
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


#: Maximum number of characters of a user that are kept: with basic authentication, their names may be longer.
MAX_USER = 64
_INSERT_HISTORY = PreparedChange(sa.insert(node_history))


def add_history(conn: sa.Connection, node_id: int, event_type: str, event: str, severity: str, conductor: str | None,
                user: str | None = None, request_id: str | None = None, inspection: str | None = None) -> None:
    """Add an entry.

    :param event_type: the operation that was running, e.g. ``inspection``
    :param severity: ``ERROR`` or ``INFO``
    :param request_id: of the request that led to it
    :param inspection: the UUID of the inspection that it is about
    :raises NodeNotFound: 404
    """
    row = {"uuid": uuidutils.generate_uuid(), "node_id": node_id, "event_type": event_type, "event": event,
           "severity": severity, "conductor": conductor, "user": user and user[:MAX_USER], "request_id": request_id,
           "inspection_uuid": inspection,
           "created_at": clock.now()}
    with references(lambda key: NodeNotFound(node=node_id)):
        _INSERT_HISTORY.inserted(conn, row)


def list_history(conn: sa.Connection, node_id: int, page: Page) -> Sequence[HistoryEntry]:
    """Return at most ``page.limit`` entries of the node.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    return list_records(conn, node_history, node_id, page)


def get_history(conn: sa.Connection, node: Node, uuid: str) -> HistoryEntry:
    """Return one entry of the node.

    :raises history_not_found: 404
    """
    row: HistoryEntry | None = get_record(conn, node_history, node.id, uuid)
    if row is None:
        raise history_not_found(event=uuid, node=node.uuid)
    return row


#: Maximum numbers of characters that are kept of what others choose.
_MOST = {"user": 255, "source": 64}
_INSERT_INSPECTION = PreparedChange(sa.insert(node_inspections))


def add_inspection(conn: sa.Connection, node_id: int, values: Mapping[str, Any]) -> str:
    """Add an inspection that has ended; return its UUID.

    :raises NodeNotFound: 404
    """
    row = {"uuid": uuidutils.generate_uuid(), "node_id": node_id, "created_at": clock.now(), **values}
    row |= {name: row[name][:most] for name, most in _MOST.items() if row.get(name)}
    with references(lambda key: NodeNotFound(node=node_id)):
        _INSERT_INSPECTION.inserted(conn, row)
    return str(row["uuid"])


def inspection_outcomes(conn: sa.Connection, bounds: Sequence[datetime.datetime]) -> list[Counter[str]]:
    """Return the numbers of inspections that have ended between one bound and the next, by their outcomes.

    :param bounds: in ascending order
    """
    ended, outcome = node_inspections.c.created_at, node_inspections.c.outcome
    # Each is a range of the index. Literals are the same statement for each number of parts.
    parts = [sa.select(sa.literal_column(str(place)), outcome, sa.func.count()).where(
        ended >= begin, ended < end).group_by(outcome) for place, (begin, end) in enumerate(itertools.pairwise(bounds))]
    outcomes: list[Counter[str]] = [Counter() for _ in parts]
    for place, name, number in conn.execute(sa.union_all(*parts)):
        outcomes[place][name] += number
    return outcomes


def list_inspections(conn: sa.Connection, node_id: int, page: Page) -> Sequence[InspectionEntry]:
    """Return at most ``page.limit`` inspections of the node.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    return list_records(conn, node_inspections, node_id, page)


def get_inspection(conn: sa.Connection, node: Node, uuid: str) -> InspectionEntry:
    """Return one inspection of the node.

    :raises inspection_not_found: 404
    """
    row: InspectionEntry | None = get_record(conn, node_inspections, node.id, uuid)
    if row is None:
        raise inspection_not_found(inspection=uuid, node=node.uuid)
    return row
