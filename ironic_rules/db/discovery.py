"""What discovery stores in addition to the nodes that it creates.

One row of ``revisions`` serialises the discoveries of all processes: a transaction that has updated it sees every node
that was discovered before.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection

import sqlalchemy as sa

from ironic_rules.db import clock, nodes
from ironic_rules.db import tables as t
from ironic_rules.db.errors import duplicates
from ironic_rules.exceptions import MACAlreadyExists, NodeNotFound
from ironic_rules.models import states

TURN = "auto_discovery"
_NEXT = sa.update(t.revisions).where(t.revisions.c.name == TURN).values(revision=t.revisions.c.revision + 1)
_OWNERS = sa.select(t.discovered_macs.c.node_id).where(
    t.discovered_macs.c.address.in_(sa.bindparam("macs", expanding=True)))
_PENDING = sa.select(t.pending_discoveries.c.node_id).where(
    t.pending_discoveries.c.node_id == sa.bindparam("node_id"))


def take_turn(conn: sa.Connection) -> None:
    """Wait for concurrent discoveries to end; others wait for the end of this transaction."""
    if conn.execute(_NEXT).rowcount == 0:
        conn.execute(sa.insert(t.revisions).values(name=TURN, revision=1))


def created_since(conn: sa.Connection, since: datetime.datetime) -> int:
    """Return how many nodes were discovered since ``since``."""
    query = sa.select(sa.func.count()).select_from(t.nodes).where(
        t.nodes.c.auto_discovered.is_(True), t.nodes.c.created_at > since)
    return int(conn.scalar(query) or 0)


def node_ids(conn: sa.Connection, macs: Collection[str]) -> set[int]:
    """Return the ids of discovered nodes that have any of ``macs`` without a port."""
    return set(conn.scalars(_OWNERS, {"macs": list(macs)}))


def begin(conn: sa.Connection, node_id: int, macs: Collection[str]) -> None:
    """Record that the node was created for a machine whose data no conductor has accepted yet.

    :param macs: the machine's addresses that have no port
    :raises MACAlreadyExists: 409
    """
    conn.execute(sa.insert(t.pending_discoveries).values(node_id=node_id, created_at=clock.now()))
    if macs:
        with duplicates(other=lambda value: MACAlreadyExists(mac=value)):
            conn.execute(sa.insert(t.discovered_macs), [{"address": mac, "node_id": node_id} for mac in macs])


def is_pending(conn: sa.Connection, node_id: int) -> bool:
    """Return whether the node was created by discovery and its data are not accepted yet."""
    return conn.scalar(_PENDING, {"node_id": node_id}) is not None


def accept(conn: sa.Connection, node_id: int) -> bool:
    """Record that the data of the node are accepted; False if they already were. Only one caller gets True."""
    statement = sa.delete(t.pending_discoveries).where(t.pending_discoveries.c.node_id == node_id)
    return conn.execute(statement).rowcount == 1


def abandoned(conn: sa.Connection, before: datetime.datetime) -> list[int]:
    """Return the ids of nodes that were created before ``before`` and whose data no conductor has accepted."""
    table = t.pending_discoveries
    return list(conn.scalars(sa.select(table.c.node_id).where(table.c.created_at < before)))


def withdraw(conn: sa.Connection, node_id: int) -> bool:
    """Delete a node whose data no conductor has accepted, with all its data; return whether it was deleted.

    A node that a user has changed, or that is locked, is kept and no longer pending.
    """
    try:
        node = nodes.get_by_id(conn, node_id, for_update=True)
    except NodeNotFound:
        return False
    if not is_pending(conn, node_id):
        return False
    if node.reservation is not None or node.provision_state != states.ENROLL or node.revision != 1:
        accept(conn, node_id)
        return False
    nodes.destroy(conn, node_id)
    return True
