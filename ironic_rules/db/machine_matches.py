"""Which nodes have what a machine sent about itself: for the log, when its callback is refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import identity
from ironic_rules.db.tables import node_bmc_addresses, nodes, ports

#: Maximum number of rows of each query: a BMC address can be that of a thousand nodes.
_MOST = 64
_NODE = (nodes.c.uuid, nodes.c.provision_state)
_BY_UUID = sa.select(*_NODE).where(nodes.c.uuid == sa.bindparam("node_uuid"))
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


def find(conn: sa.Connection, node_uuid: str | None, macs: Collection[str],
         addresses: Collection[str]) -> list[Match]:
    """Return the nodes that have the UUID, or any of the addresses. The same queries, whatever was sent."""
    found: dict[str, Match] = {}
    row: Any
    for row in conn.execute(_BY_UUID, {"node_uuid": identity.canonical(node_uuid or "") or ""}).all():
        found.setdefault(row.uuid, Match(row.uuid, row.provision_state)).has_uuid = True
    for row in conn.execute(_BY_MAC, {"found": list(macs)}).all():
        found.setdefault(row.uuid, Match(row.uuid, row.provision_state)).macs.append(row.address)
    for row in conn.execute(_BY_BMC, {"found": list(addresses)}).all():
        found.setdefault(row.uuid, Match(row.uuid, row.provision_state)).bmc_addresses.append(row.address)
    return list(found.values())
