"""The history of nodes' inspections: one row each, written by the transaction that ends the inspection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, node_records
from ironic_rules.db.errors import references
from ironic_rules.db.paging import Page
from ironic_rules.db.prepared import PreparedChange
from ironic_rules.db.tables import node_inspections as table
from ironic_rules.exceptions import InspectionNotFound, NodeNotFound
from ironic_rules.models.inspections import InspectionEntry

#: Maximum numbers of characters that are kept of what others choose.
_MOST = {"user": 255, "source": 64}
_INSERT = PreparedChange(sa.insert(table))


def add(conn: sa.Connection, node_id: int, values: Mapping[str, Any]) -> str:
    """Add an inspection that has ended; return its UUID.

    :raises NodeNotFound: 404
    """
    uuid = uuidutils.generate_uuid()
    row = {"uuid": uuid, "node_id": node_id, "created_at": clock.now(), **values}
    row |= {name: row[name][:most] for name, most in _MOST.items() if row.get(name)}
    with references(lambda key: NodeNotFound(node=node_id)):
        _INSERT.inserted(conn, row)
    return uuid


def list_for(conn: sa.Connection, node_id: int, page: Page) -> Sequence[InspectionEntry]:
    """Return at most ``page.limit`` inspections of the node.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    return node_records.list_for(conn, table, node_id, page)


def get(conn: sa.Connection, node_id: int, uuid: str) -> InspectionEntry:
    """Return one inspection of the node.

    :raises InspectionNotFound: 404
    """
    row: InspectionEntry | None = node_records.get(conn, table, node_id, uuid)
    if row is None:
        raise InspectionNotFound(inspection=uuid, node=node_id)
    return row
