"""Rows of discovery except the nodes that it creates, and the nodes that machines are known by.

One row of ``revisions`` serializes the discoveries of all processes: a transaction that has updated it sees every node
that was discovered before. When a report is rejected, log and journal name the nodes with data that the machine sent.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlalchemy as sa

from ironic_rules.db import clock, identity, outbox
from ironic_rules.db import nodes as nodes_db
from ironic_rules.db import tables as t
from ironic_rules.db.errors import duplicates
from ironic_rules.db.ports import IS_SHARED_DISCOVERY
from ironic_rules.db.tables import node_bmc_addresses, nodes, ports
from ironic_rules.exceptions import MACAlreadyExists, NodeNotFound
from ironic_rules.models import states

TURN = "auto_discovery"
_NEXT = sa.update(t.revisions).where(t.revisions.c.name == TURN).values(revision=t.revisions.c.revision + 1)
_OWNERS = sa.select(t.discovered_macs.c.node_id).where(
    t.discovered_macs.c.address.in_(sa.bindparam("macs", expanding=True)), sa.not_(IS_SHARED_DISCOVERY))
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


def bytes_since(conn: sa.Connection, since: datetime.datetime) -> int:
    """Return the size of the reports that discovered the unclaimed nodes since ``since``."""
    table = t.unclaimed_discoveries
    return int(conn.scalar(sa.select(sa.func.sum(table.c.size)).where(table.c.created_at > since)) or 0)


def unclaimed(conn: sa.Connection) -> int:
    """Return how many discovered nodes no operator has claimed."""
    return int(conn.scalar(sa.select(sa.func.count()).select_from(t.unclaimed_discoveries)) or 0)


def claim(conn: sa.Connection, node_id: int) -> None:
    """Record that an operator has requested a provision state for the node: it is as any other."""
    conn.execute(sa.delete(t.unclaimed_discoveries).where(t.unclaimed_discoveries.c.node_id == node_id))


def unclaimed_since(conn: sa.Connection, before: datetime.datetime, most: int, node_id: int | None = None) -> list[int]:
    """Return the ids of up to ``most`` unclaimed nodes that were created, and last changed, before ``before``.

    Nodes that are locked, in maintenance, protected, or have an instance are claimed in their own way.

    :param node_id: only this node
    """
    node, table = t.nodes.c, t.unclaimed_discoveries
    query = sa.select(node.id).join(table, table.c.node_id == node.id).where(
        table.c.created_at < before, sa.or_(node.updated_at.is_(None), node.updated_at < before),
        node.provision_state.in_((states.ENROLL, states.INSPECTFAIL)), node.reservation.is_(None),
        node.maintenance.is_(False), node.protected.is_(False), node.instance_uuid.is_(None))
    if node_id is not None:
        query = query.where(node.id == node_id)
    return list(conn.scalars(query.order_by(node.id).limit(most)))


def remove_unclaimed(conn: sa.Connection, node_id: int, before: datetime.datetime) -> str | None:
    """Delete a node that :func:`unclaimed_since` returns; return its UUID, or None if it no longer would."""
    try:
        node = nodes_db.get_by_id(conn, node_id, for_update=True)
    except NodeNotFound:
        return None
    if not unclaimed_since(conn, before, 1, node_id):
        return None
    outbox.note(conn, "node", "delete", node)
    nodes_db.destroy(conn, node_id)
    return node.uuid


def node_ids(conn: sa.Connection, macs: Collection[str]) -> set[int]:
    """Return the ids of discovered nodes that have any of ``macs`` without a port; not by addresses that are shared."""
    return set(conn.scalars(_OWNERS, {"macs": list(macs)}))


def begin(conn: sa.Connection, node_id: int, macs: Collection[str], size: int = 0) -> None:
    """Record that the node was created for a machine whose data no conductor has accepted yet.

    :param macs: the machine's addresses that have no port
    :param size: of its report in bytes
    :raises MACAlreadyExists: 409
    """
    conn.execute(sa.insert(t.pending_discoveries).values(node_id=node_id, created_at=clock.now()))
    conn.execute(sa.insert(t.unclaimed_discoveries).values(node_id=node_id, created_at=clock.now(), size=size))
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
        node = nodes_db.get_by_id(conn, node_id, for_update=True)
    except NodeNotFound:
        return False
    if not is_pending(conn, node_id):
        return False
    if node.reservation is not None or node.provision_state != states.ENROLL or node.revision != 1:
        accept(conn, node_id)
        return False
    outbox.note(conn, "node", "delete", node)
    nodes_db.destroy(conn, node_id)
    return True


#: Maximum number of rows of each query: a BMC address can be that of a thousand nodes.
_MOST = 64
#: Maximum number of addresses of machines that are looked for together.
_MOST_TOGETHER = 2000
#: Identification that a machine sent: the UUID by which it names itself, MAC addresses, BMC addresses.
Sent: TypeAlias = tuple[str | None, Collection[str], Collection[str]]
_NODE = (nodes.c.uuid, nodes.c.provision_state)
_BY_UUID = sa.select(*_NODE).where(nodes.c.uuid == sa.bindparam("node_uuid"))
_BY_UUIDS = sa.select(*_NODE).where(nodes.c.uuid.in_(sa.bindparam("found", expanding=True)))
_BY_MAC = sa.select(ports.c.address, *_NODE).join(nodes, ports.c.node_id == nodes.c.id).where(
    ports.c.address.in_(sa.bindparam("found", expanding=True))).limit(_MOST)
_BY_BMC = sa.select(node_bmc_addresses.c.address, *_NODE).join(
    nodes, node_bmc_addresses.c.node_id == nodes.c.id).where(
    node_bmc_addresses.c.address.in_(sa.bindparam("found", expanding=True))).limit(_MOST)


@dataclass(slots=True)
class Match:
    """A node, its provision state, and what it has of what the machine sent."""

    uuid: str
    state: str
    has_uuid: bool = False
    macs: list[str] = field(default_factory=list)
    bmc_addresses: list[str] = field(default_factory=list)


def find_matches(conn: sa.Connection, node_uuid: str | None, macs: Collection[str],
                 addresses: Collection[str]) -> list[Match]:
    """Return the nodes that have the UUID, or any of the addresses. The same queries, whatever was sent."""
    matches: dict[str, Match] = {}
    row: Any
    for row in conn.execute(_BY_UUID, {"node_uuid": identity.canonical(node_uuid or "") or ""}).all():
        matches.setdefault(row.uuid, Match(row.uuid, row.provision_state)).has_uuid = True
    for row in conn.execute(_BY_MAC, {"found": list(macs)}).all():
        matches.setdefault(row.uuid, Match(row.uuid, row.provision_state)).macs.append(row.address)
    for row in conn.execute(_BY_BMC, {"found": list(addresses)}).all():
        matches.setdefault(row.uuid, Match(row.uuid, row.provision_state)).bmc_addresses.append(row.address)
    return list(matches.values())


def find_all_matches(conn: sa.Connection, machines: Sequence[Sent]) -> list[list[Match]]:
    """Return for each of the machines what :func:`find` does, with three queries for all of them, if these suffice."""
    macs = {address for _, sent, _ in machines for address in sent}
    addresses = {address for _, _, sent in machines for address in sent}
    uuids = {uuid for sent, _, _ in machines if sent and (uuid := identity.canonical(sent))}
    rows: list[Sequence[Any]] = []
    for query, sought in ((_BY_UUIDS, uuids), (_BY_MAC, macs), (_BY_BMC, addresses)):
        rows.append(conn.execute(query, {"found": sorted(sought)}).all() if 0 < len(sought) <= _MOST_TOGETHER else [])
        if len(sought) > _MOST_TOGETHER or (query is not _BY_UUIDS and len(rows[-1]) >= _MOST):
            # Each machine alone gets the nodes of its own addresses, if not all.
            return [find_matches(conn, *machine) for machine in machines]
    named = {row.uuid: row for row in rows[0]}
    owners: list[defaultdict[str, list[Any]]] = [defaultdict(list), defaultdict(list)]
    for of_kind, rows_of_kind in zip(owners, rows[1:], strict=True):
        for row in rows_of_kind:
            of_kind[row.address].append(row)
    return [_matches(machine, named, *owners) for machine in machines]


def _matches(machine: Sent, named: Mapping[str, Any], by_mac: Mapping[str, list[Any]],
             by_bmc: Mapping[str, list[Any]]) -> list[Match]:
    """Return the matches of a machine among rows for several."""
    sent, macs, addresses = machine
    matches: dict[str, Match] = {}
    if sent and (row := named.get(identity.canonical(sent) or "")) is not None:
        matches.setdefault(row.uuid, Match(row.uuid, row.provision_state)).has_uuid = True
    for address in macs:
        for row in by_mac.get(address, ()):
            matches.setdefault(row.uuid, Match(row.uuid, row.provision_state)).macs.append(address)
    for address in addresses:
        for row in by_bmc.get(address, ()):
            matches.setdefault(row.uuid, Match(row.uuid, row.provision_state)).bmc_addresses.append(address)
    return list(matches.values())
