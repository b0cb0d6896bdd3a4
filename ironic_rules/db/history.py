"""The history of nodes: entries per node, oldest first."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, node_records
from ironic_rules.db.errors import references
from ironic_rules.db.paging import Page
from ironic_rules.db.prepared import PreparedChange
from ironic_rules.db.tables import node_history as table
from ironic_rules.exceptions import HistoryNotFound, NodeNotFound
from ironic_rules.models.nodes import HistoryEntry

#: Maximum number of characters of a user that are kept: with basic authentication, their names may be longer.
MAX_USER = 64
_INSERT = PreparedChange(sa.insert(table))


def add(conn: sa.Connection, node_id: int, event_type: str, event: str, severity: str, conductor: str | None,
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
        _INSERT.inserted(conn, row)


def list_for(conn: sa.Connection, node_id: int, page: Page) -> Sequence[HistoryEntry]:
    """Return at most ``page.limit`` entries of the node.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    return node_records.list_for(conn, table, node_id, page)


def get(conn: sa.Connection, node_id: int, uuid: str) -> HistoryEntry:
    """Return one entry of the node.

    :raises HistoryNotFound: 404
    """
    row: HistoryEntry | None = node_records.get(conn, table, node_id, uuid)
    if row is None:
        raise HistoryNotFound(event=uuid, node=node_id)
    return row
