"""Which nodes have what machines sent about themselves: for log and journal, when their callbacks are refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlalchemy as sa

from ironic_rules.db import identity
from ironic_rules.db.tables import node_bmc_addresses, nodes, ports

#: Maximum number of rows of each query: a BMC address can be that of a thousand nodes.
_MOST = 64
#: Maximum number of addresses of machines that are looked for together.
_MOST_TOGETHER = 2000
#: What a machine sent: the UUID by which it names itself, MAC addresses, BMC addresses.
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


def find_all(conn: sa.Connection, machines: Sequence[Sent]) -> list[list[Match]]:
    """Return for each of the machines what :func:`find` does, with three queries for all of them, if these suffice."""
    macs = {address for _, found, _ in machines for address in found}
    addresses = {address for _, _, found in machines for address in found}
    uuids = {uuid for sent, _, _ in machines if sent and (uuid := identity.canonical(sent))}
    rows: list[Sequence[Any]] = []
    for query, sought in ((_BY_UUIDS, uuids), (_BY_MAC, macs), (_BY_BMC, addresses)):
        rows.append(conn.execute(query, {"found": sorted(sought)}).all() if 0 < len(sought) <= _MOST_TOGETHER else [])
        if len(sought) > _MOST_TOGETHER or (query is not _BY_UUIDS and len(rows[-1]) >= _MOST):
            # Each machine alone gets the nodes of its own addresses, if not all.
            return [find(conn, *machine) for machine in machines]
    named = {row.uuid: row for row in rows[0]}
    owners: list[defaultdict[str, list[Any]]] = [defaultdict(list), defaultdict(list)]
    for of_kind, found in zip(owners, rows[1:], strict=True):
        for row in found:
            of_kind[row.address].append(row)
    return [_matches(machine, named, *owners) for machine in machines]


def _matches(machine: Sent, named: Mapping[str, Any], by_mac: Mapping[str, list[Any]],
             by_bmc: Mapping[str, list[Any]]) -> list[Match]:
    """Return the matches of a machine among rows for several."""
    sent, macs, addresses = machine
    found: dict[str, Match] = {}
    if sent and (row := named.get(identity.canonical(sent) or "")) is not None:
        found.setdefault(row.uuid, Match(row.uuid, row.provision_state)).has_uuid = True
    for address in macs:
        for row in by_mac.get(address, ()):
            found.setdefault(row.uuid, Match(row.uuid, row.provision_state)).macs.append(address)
    for address in addresses:
        for row in by_bmc.get(address, ()):
            found.setdefault(row.uuid, Match(row.uuid, row.provision_state)).bmc_addresses.append(address)
    return list(found.values())
