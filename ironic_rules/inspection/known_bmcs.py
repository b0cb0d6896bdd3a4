"""Synchronize the table of BMC addresses with ``driver_info`` of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import node_sets
from ironic_rules.models import addresses


def follow(conn: sa.Connection, node_id: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Write the node's BMC addresses after its ``driver_info`` has changed from ``old`` to ``new``.

    IP addresses are written as they are. Names are resolved by manage and when an inspection starts, never here,
    because a name server must not delay a transaction. Until then a node that has only names keeps its addresses.

    :raises NodeNotFound: 404
    """
    hosts = addresses.hosts(new)
    if hosts == addresses.hosts(old):
        return
    literals = addresses.literals(new)
    if literals or not hosts:
        node_sets.set_bmc_addresses(conn, node_id, literals)


def resolved(conn: sa.Connection, node_id: int, driver_info: Mapping[str, Any], bmc_addresses: list[str]) -> None:
    """Write the node's BMC addresses when its names have been resolved: by manage, and when a ramdisk is expected.

    Lookups and discovery compare only with these addresses.

    A node without a BMC in ``driver_info`` keeps the addresses from its discovery. A node none of whose names can be
    resolved keeps its addresses as well: while a name server is unavailable, a known machine must not become unknown.

    :param bmc_addresses: the addresses of the names in ``driver_info``, in addition to the addresses in it
    :raises NodeNotFound: 404
    """
    together = sorted({*bmc_addresses, *addresses.literals(driver_info)})
    if together:
        node_sets.set_bmc_addresses(conn, node_id, together)
