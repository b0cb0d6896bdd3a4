"""Sets that belong to a node: traits, BMC addresses, machine identifiers (a row of node and text each), and VIFs.

A writer that adds to a set locks the node's row, so that two replacements never result in the union of both, and
missing values can be inserted without a conflict. (An upsert would not need the lock, but in InnoDB it locks the gaps
to the sets of neighbouring nodes, and their writers deadlock.)

BMC addresses, normalized by the caller, find the node of a ramdisk's report and known machines, in any state; so do
serial numbers and UUIDs of machines (``models.machine_ids``).

A virtual interface (VIF) is a key in the ``internal_info`` of the port or port group that it is attached to. The
network interface ``noop`` takes any number of them; those for which the node has no port are a list in its
``driver_internal_info``.

MAC addresses that machines of several nodes have reported identify none of them. Each node has those that its own
machine has reported, so that no inspection waits for the lock of another node. A report of one node does not change a
port of another: the port stays, and finds its node if nothing else does (``inspection.lookup``).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, portgroups, ports
from ironic_rules.db import nodes as nodes_db
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.tables import (
    discovered_macs,
    node_bmc_addresses,
    node_machine_ids,
    node_traits,
    nodes,
    shared_macs,
)
from ironic_rules.db.tables import ports as ports_table
from ironic_rules.exceptions import NodeNotFound, trait_not_found
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import VIFS_WITHOUT_PORT
from ironic_rules.models.inventories import Sharing
from ironic_rules.models.nodes import Node
from ironic_rules.models.ports import VIF

_NODE = Prepared(sa.select(nodes.c.id).where(nodes.c.id == sa.bindparam("of_node")))


def replace_set(conn: sa.Connection, column: sa.Column[Any], node_id: int, values: Collection[str]) -> None:
    """Replace the node's set by ``values``; rows that remain are not touched.

    :raises NodeNotFound: 404
    """
    table, present = column.table, _present(conn, column, node_id)
    surplus = present.difference(values)
    if surplus:
        conn.execute(sa.delete(table).where(table.c.node_id == node_id, column.in_(sorted(surplus))))
    _insert(conn, column, node_id, set(values) - present)


def add_to_set(conn: sa.Connection, column: sa.Column[Any], node_id: int, value: str) -> None:
    """Add ``value`` to the node's set if it is not in it.

    :raises NodeNotFound: 404
    """
    _insert(conn, column, node_id, {value} - _present(conn, column, node_id))


def _present(conn: sa.Connection, column: sa.Column[Any], node_id: int) -> set[str]:
    if _NODE.one_or_none(conn, {"of_node": node_id}, for_update=True) is None:
        raise NodeNotFound(node=node_id)
    return {row[0] for row in _of_node(column).all(conn, {"of_node": node_id})}


@functools.cache  # two columns: to build the statement takes longer than to execute it
def _of_node(column: sa.Column[Any]) -> Prepared:
    return Prepared(sa.select(column).where(column.table.c.node_id == sa.bindparam("of_node")))


def _insert(conn: sa.Connection, column: sa.Column[Any], node_id: int, values: set[str]) -> None:
    if values:
        rows = [{"node_id": node_id, column.name: value} for value in sorted(values)]
        _insertion(column).insert_all(conn, rows)


@functools.cache
def _insertion(column: sa.Column[Any]) -> PreparedChange:
    return PreparedChange(sa.insert(column.table))  # type: ignore[arg-type]


_TRAITS = sa.select(node_traits.c.node_id, node_traits.c.trait)
_TRAITS_OF_NODES = _TRAITS.where(node_traits.c.node_id.in_(sa.bindparam("node_ids", expanding=True)))
_TRAITS_OF_RANGE = Prepared(_TRAITS.where(node_traits.c.node_id.between(sa.bindparam("first"), sa.bindparam("last"))))
#: Maximum number of ids in a range for each that is wanted.
_SPARSE = 4


def list_traits(conn: sa.Connection, node_ids: Iterable[int]) -> dict[int, list[str]]:
    """Return the sorted traits of each of ``node_ids``, in one query; an empty list for a node without any."""
    by_node: dict[int, list[str]] = {node_id: [] for node_id in node_ids}
    if by_node:
        first, last = min(by_node), max(by_node)
        # A page mostly has consecutive ids. A list of them in the statement is slower than a range.
        is_dense = last - first < _SPARSE * len(by_node)
        rows = _TRAITS_OF_RANGE.all(conn, {"first": first, "last": last}) if is_dense else (
            conn.execute(_TRAITS_OF_NODES, {"node_ids": list(by_node)}).all())
        for node_id, trait in rows:
            if node_id in by_node:
                by_node[node_id].append(trait)
    for traits in by_node.values():
        traits.sort()
    return by_node


def set_traits(conn: sa.Connection, node_id: int, traits: Collection[str]) -> None:
    """Replace the node's traits by ``traits``.

    :raises NodeNotFound: 404
    """
    replace_set(conn, node_traits.c.trait, node_id, traits)


def add_trait(conn: sa.Connection, node_id: int, trait: str) -> None:
    """Add a trait to the node; it may already have it.

    :raises NodeNotFound: 404
    """
    add_to_set(conn, node_traits.c.trait, node_id, trait)


def remove_trait(conn: sa.Connection, node_id: int, trait: str) -> None:
    """Remove a trait from the node.

    :raises NodeNotFound, trait_not_found: 404
    """
    statement = sa.delete(node_traits).where(node_traits.c.node_id == node_id, node_traits.c.trait == trait)
    if conn.execute(statement).rowcount == 0:
        uuid = conn.execute(sa.select(nodes.c.uuid).where(nodes.c.id == node_id)).scalar()
        raise NodeNotFound(node=node_id) if uuid is None else trait_not_found(node=uuid, trait=trait)


def remove_all_traits(conn: sa.Connection, node_id: int) -> None:
    """Remove all traits from the node."""
    conn.execute(sa.delete(node_traits).where(node_traits.c.node_id == node_id))


#: Key of ``internal_info``.
VIF_KEY = VIF


def vifs_without_port(node: Node) -> list[str]:
    """Return the VIFs of a node for which it has no port."""
    return list(node.driver_internal_info.get(VIFS_WITHOUT_PORT, ()))


def set_vifs_without_port(conn: sa.Connection, node: Node, vifs: list[str]) -> None:
    """Write the VIFs for which the node has no port."""
    others = {name: value for name, value in node.driver_internal_info.items() if name != VIFS_WITHOUT_PORT}
    nodes_db.update(conn, node.id, {"driver_internal_info": {**others, VIFS_WITHOUT_PORT: vifs} if vifs else others})


def detach_all_vifs(conn: sa.Connection, node_id: int) -> None:
    """Detach every VIF from the node's ports."""
    for table in (portgroups, ports):
        for place in table.for_node(conn, node_id):
            if VIF_KEY in place.internal_info:
                others = {name: value for name, value in place.internal_info.items() if name != VIF_KEY}
                table.update(conn, place.id, {"internal_info": others})


#: A value that more nodes share identifies none of them; the number is not needed.
MAX_SHARING = 100
_OWNERS_OF_IDS = sa.select(node_machine_ids.c.node_id).where(
    node_machine_ids.c.value.in_(sa.bindparam("ids", expanding=True))).limit(MAX_SHARING)


def set_machine_ids(conn: sa.Connection, node_id: int, ids: Collection[str]) -> None:
    """Replace what identifies the node's machine by ``ids``.

    :raises NodeNotFound: 404
    """
    replace_set(conn, node_machine_ids.c.value, node_id, ids)


def nodes_of_machine_ids(conn: sa.Connection, ids: Collection[str]) -> set[int]:
    """Return the ids of nodes, in any state, whose machine has any of ``ids``: at most :data:`MAX_SHARING`."""
    return set(conn.scalars(_OWNERS_OF_IDS, {"ids": list(ids)})) if ids else set()


def machine_ids_of(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, set[str]]:
    """Return what identifies the machines of these nodes, of each that has anything."""
    ids: defaultdict[int, set[str]] = defaultdict(set)
    for node_id, value in conn.execute(_IDS_OF_NODES, {"node_ids": list(node_ids)}):
        ids[node_id].add(value)
    return dict(ids)


_IDS_OF_NODES = sa.select(node_machine_ids.c.node_id, node_machine_ids.c.value).where(
    node_machine_ids.c.node_id.in_(sa.bindparam("node_ids", expanding=True)))
_OWNERS_OF_ADDRESSES = Prepared(sa.select(node_bmc_addresses.c.node_id, node_bmc_addresses.c.address).where(
    node_bmc_addresses.c.address.in_(sa.bindparam("addresses", expanding=True))))
_ADDRESSES_OF_NODE = Prepared(sa.select(node_bmc_addresses.c.address).where(
    node_bmc_addresses.c.node_id == sa.bindparam("of_node")))


def set_bmc_addresses(conn: sa.Connection, node_id: int, addresses: Collection[str]) -> None:
    """Replace the node's BMC addresses by ``addresses``.

    :raises NodeNotFound: 404
    """
    replace_set(conn, node_bmc_addresses.c.address, node_id, addresses)


def nodes_of_bmc_addresses(conn: sa.Connection, addresses: Collection[str]) -> set[int]:
    """Return the ids of the nodes, in any state, that have any of ``addresses``."""
    return {row.node_id for row in _OWNERS_OF_ADDRESSES.all(conn, {"addresses": list(addresses)})}


def nodes_by_bmc_address(conn: sa.Connection, addresses: Collection[str]) -> dict[str, set[int]]:
    """Return the ids of the nodes, in any state, that have each of ``addresses``; none for an unknown address."""
    node_ids: defaultdict[str, set[int]] = defaultdict(set)
    for row in _OWNERS_OF_ADDRESSES.all(conn, {"addresses": list(addresses)}):
        node_ids[row.address].add(row.node_id)
    return node_ids


def list_bmc_addresses(conn: sa.Connection, node_id: int) -> list[str]:
    """Return the node's BMC addresses, sorted."""
    return sorted(row.address for row in _ADDRESSES_OF_NODE.all(conn, {"of_node": node_id}))


_REPORTERS = Prepared(sa.select(shared_macs.c.address, shared_macs.c.node_id).where(sa.or_(
    shared_macs.c.address.in_(sa.bindparam("macs", expanding=True)), shared_macs.c.node_id == sa.bindparam("of_node"))))
_OF_PORTS = sa.select(ports_table.c.node_id, ports_table.c.address).where(
    ports_table.c.node_id.in_(sa.bindparam("node_ids", expanding=True)), sa.not_(ports.IS_SHARED))
_OF_DISCOVERIES = sa.select(discovered_macs.c.node_id, discovered_macs.c.address).where(
    discovered_macs.c.node_id.in_(sa.bindparam("node_ids", expanding=True)), sa.not_(ports.IS_SHARED_DISCOVERY))
_SHARED = sa.select(shared_macs.c.address, shared_macs.c.created_at, nodes.c.uuid.label("reporter")).join(
    nodes, nodes.c.id == shared_macs.c.node_id).order_by(shared_macs.c.address, shared_macs.c.created_at)
_WITH_PORTS = sa.select(ports_table.c.address, nodes.c.uuid).join(nodes, nodes.c.id == ports_table.c.node_id).where(
    ports_table.c.address.in_(sa.bindparam("macs", expanding=True)))


def sharing(conn: sa.Connection, node_id: int, macs: Collection[str]) -> Sharing:
    """Return which of ``macs`` the machines of other nodes have reported, and which are noted for this node."""
    rows = _REPORTERS.all(conn, {"macs": list(macs), "of_node": node_id})
    return Sharing(frozenset(row.address for row in rows if row.node_id != node_id),
                   frozenset(row.address for row in rows if row.node_id == node_id))


def reporters(conn: sa.Connection, macs: Collection[str]) -> dict[str, set[int]]:
    """Return the ids of the nodes whose machines have reported each of those of ``macs`` that are shared."""
    node_ids: defaultdict[str, set[int]] = defaultdict(set)
    for row in _REPORTERS.all(conn, {"macs": list(macs), "of_node": 0}):
        node_ids[row.address].add(row.node_id)
    return node_ids


def identifying_macs(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, set[str]]:
    """Return the MAC addresses of each of these nodes, of ports and discovery, without shared ones."""
    macs: dict[int, set[str]] = {node_id: set() for node_id in node_ids}
    for query in (_OF_PORTS, _OF_DISCOVERIES):
        for node_id, address in conn.execute(query, {"node_ids": sorted(node_ids)}):
            macs[node_id].add(address)
    return macs


def note_shared(conn: sa.Connection, node_id: int, sharing: Sharing, foreign: Collection[str],
                reported: Collection[str]) -> None:
    """Note which MAC addresses of an accepted report the machine shares with those of other nodes.

    A port of another node is shared only if that node keeps an address that the report does not have: no report can
    take the last one of a node, and a machine with all of its addresses is the node's.

    :param sharing: as from :func:`sharing`
    :param foreign: addresses of the report that other nodes have, as ports or by discovery
    :param reported: all MAC addresses of the report
    """
    shared = sharing.of_others | sharing.noted.intersection(reported) | _taken(conn, node_id, foreign, reported)
    if surplus := sharing.noted - shared:
        conn.execute(sa.delete(shared_macs).where(
            shared_macs.c.node_id == node_id, shared_macs.c.address.in_(sorted(surplus))))
    if missing := shared - sharing.noted:
        now = clock.now()
        conn.execute(sa.insert(shared_macs), [
            {"node_id": node_id, "address": address, "created_at": now} for address in sorted(missing)])


def _taken(conn: sa.Connection, node_id: int, foreign: Collection[str], reported: Collection[str]) -> set[str]:
    if not foreign:
        return set()
    owners = owners_of_macs(conn, foreign)
    identifying = identifying_macs(conn, {owner for of_mac in owners.values() for owner in of_mac} - {node_id})
    keeps_one = {owner for owner, macs in identifying.items() if not macs.issubset(reported)}
    return {address for address, of_mac in owners.items() if of_mac & keeps_one}


def owners_of_macs(conn: sa.Connection, macs: Collection[str]) -> dict[str, set[int]]:
    """Return the ids of the nodes that have each of ``macs``, as a port or by discovery; none for an unknown one."""
    owners: defaultdict[str, set[int]] = defaultdict(set)
    for address, owner in ports.node_ids_by_addresses(conn, macs).items():
        owners[address].add(owner)
    query = sa.select(discovered_macs.c.address, discovered_macs.c.node_id).where(
        discovered_macs.c.address.in_(list(macs)))
    for address, owner in conn.execute(query):
        owners[address].add(owner)
    return owners


def list_shared_macs(conn: sa.Connection) -> list[JSONObject]:
    """Return the shared MAC addresses, sorted: since when, the UUIDs of the nodes, and of the one that has the port."""
    shared: dict[str, JSONObject] = {}
    for row in conn.execute(_SHARED):
        entry = shared.setdefault(row.address, {
            "address": row.address, "created_at": row.created_at, "nodes": [], "port_of": None})
        entry["nodes"].append(row.reporter)
    for port in conn.execute(_WITH_PORTS, {"macs": list(shared)}):
        shared[port.address]["port_of"] = port.uuid
    return list(shared.values())


def forget_shared_mac(conn: sa.Connection, address: str) -> int:
    """Forget that ``address`` is shared; return how many nodes had reported it."""
    return conn.execute(sa.delete(shared_macs).where(shared_macs.c.address == address)).rowcount
