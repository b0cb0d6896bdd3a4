"""BMC addresses of nodes in any state, used to find the node of a ramdisk's callback, and known machines in discovery.

Addresses are stored as given by the caller, who passes normalised IP addresses.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from ironic_rules.db import node_sets
from ironic_rules.db.prepared import Prepared
from ironic_rules.db.tables import node_bmc_addresses as table

_OWNERS = Prepared(sa.select(table.c.node_id).where(table.c.address.in_(sa.bindparam("addresses", expanding=True))))
_OF_NODE = Prepared(sa.select(table.c.address).where(table.c.node_id == sa.bindparam("of_node")))


def set_for(conn: sa.Connection, node_id: int, addresses: Collection[str]) -> None:
    """Replace the node's BMC addresses by ``addresses``.

    :raises NodeNotFound: 404
    """
    node_sets.replace(conn, table.c.address, node_id, addresses)


def node_ids(conn: sa.Connection, addresses: Collection[str]) -> set[int]:
    """Return the ids of the nodes, in any state, that have any of ``addresses``."""
    return {row.node_id for row in _OWNERS.all(conn, {"addresses": list(addresses)})}


def list_for(conn: sa.Connection, node_id: int) -> list[str]:
    """Return the node's BMC addresses, sorted."""
    return sorted(row.address for row in _OF_NODE.all(conn, {"of_node": node_id}))
