"""Serial numbers and UUIDs of machines, by which discovery recognises a known machine (``models.machine_ids``)."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from ironic_rules.db import node_sets
from ironic_rules.db.tables import node_machine_ids as table

#: A value that more nodes share identifies none of them; the number is not needed.
MAX_SHARING = 100
_OWNERS = sa.select(table.c.node_id).where(
    table.c.value.in_(sa.bindparam("ids", expanding=True))).limit(MAX_SHARING)


def set_for(conn: sa.Connection, node_id: int, ids: Collection[str]) -> None:
    """Replace what identifies the node's machine by ``ids``.

    :raises NodeNotFound: 404
    """
    node_sets.replace(conn, table.c.value, node_id, ids)


def node_ids(conn: sa.Connection, ids: Collection[str]) -> set[int]:
    """Return the ids of nodes, in any state, whose machine has any of ``ids``: at most :data:`MAX_SHARING`."""
    return set(conn.scalars(_OWNERS, {"ids": list(ids)})) if ids else set()
