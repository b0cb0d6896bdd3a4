"""Keeps the table of BMC addresses in step with what nodes have in ``driver_info``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import bmc_addresses
from ironic_rules.models import addresses


def follow(conn: sa.Connection, node_id: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Write the node's BMC addresses after its ``driver_info`` changed from ``old`` to ``new``.

    IP addresses are taken as they are. Names are resolved when an inspection starts, and never here: a name server must
    not hold up a transaction. Until then a node with nothing but names keeps what it had.

    :raises NodeNotFound: 404
    """
    hosts = addresses.hosts(new)
    if hosts == addresses.hosts(old):
        return
    found = addresses.literals(new)
    if found or not hosts:
        bmc_addresses.set_for(conn, node_id, found)


def resolved(conn: sa.Connection, node_id: int, driver_info: Mapping[str, Any], found: list[str]) -> None:
    """Write the node's BMC addresses when a ramdisk is expected, by which alone a lookup compares.

    A node whose ``driver_info`` names no BMC keeps what discovery learned of its machine. So does one of whose names
    none resolves: while a name server is away, a known machine must not become one that nobody knows.

    :param found: what the names in ``driver_info`` resolve to, besides the addresses in it
    :raises NodeNotFound: 404
    """
    known = sorted({*found, *addresses.literals(driver_info)})
    if known:
        bmc_addresses.set_for(conn, node_id, known)
