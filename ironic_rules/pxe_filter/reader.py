"""Reads the data of the plans from the database: everything, or what has changed since the last reading.

One reading is for several plans, each of which has a scope.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

import sqlalchemy as sa

from ironic_rules.db import pxe_filter as records
from ironic_rules.pxe_filter import plan


class Everything(NamedTuple):
    """All that was read for one plan.

    :param inspecting: ids of the nodes whose addresses are allowed: those on inspection, and with
        ``[pxe_filter]allow_all_ramdisks`` those in other procedures
    :param files: the files whose addresses differ from the plan, complete
    :param on_inspection: number of those on inspection, because of which unknown machines are expected
    :param rivals: the identifiers that ports of several nodes have
    """

    inspecting: frozenset[int]
    files: plan.Files
    on_inspection: int
    rivals: plan.Rivals


class Changes(NamedTuple):
    """The data that were read of some nodes for one plan.

    :param inspecting: ids of all nodes whose addresses are allowed
    :param changed: ids of the nodes whose ports may have changed
    :param ports: (address or identifier, node id) of the ports of these, of the nodes whose inspection has begun or
        ended, and of other nodes to check
    :param node_ids: ids of all those nodes
    :param on_inspection: as of Everything
    """

    inspecting: frozenset[int]
    changed: Collection[int]
    ports: Sequence[tuple[str, int]]
    node_ids: Collection[int]
    on_inspection: int


class _Nodes(NamedTuple):
    """Ids of the nodes whose addresses are allowed, and how many of these are on inspection."""

    ids: frozenset[int]
    on_inspection: int


class Comparable(Protocol):
    """A plan, or what has one."""

    def compare(self, refused: set[str]) -> plan.Comparison:
        """Return a comparison of the plan with all ports."""


class Reader:
    """Reads for plans with these scopes, in their order; invalid addresses are added to ``refused``.

    :param interfaces: the inspect interfaces whose nodes need the DHCP server
    :param all_ramdisks: whether nodes need it that boot a ramdisk in another procedure
    """

    def __init__(self, scopes: Sequence[records.Scope], interfaces: Collection[str], *,
                 all_ramdisks: bool = False) -> None:
        self._all_ramdisks = all_ramdisks
        self._scopes = scopes
        self._whole = records.union(scopes)
        self._interfaces = interfaces
        self._list = records.ChangeReader()

    def read_everything(self, conn: sa.Connection, plans: Sequence[Comparable], refused: set[str]) -> list[Everything]:
        """Read all ports, again if one plan has to compare them again."""
        self._list.begin(conn)
        inspecting = self._inspecting(conn)
        comparisons = [comparable.compare(refused) for comparable in plans]
        claims_of_plans = [plan.claims(plan.keys(pairs, refused)) for pairs in records.identified(conn, self._scopes)]
        keys = [[(key, min(node_ids)) for key, node_ids in claims.items()] for claims in claims_of_plans]
        self._compare(conn, comparisons, keys)
        again = [comparison.needs_again() for comparison in comparisons]
        if any(again):
            self._compare(conn, comparisons, keys)
        return [Everything(nodes.ids, comparison.different, nodes.on_inspection,
                           {key: node_ids for key, node_ids in claims.items() if len(node_ids) > 1})
                for nodes, comparison, claims in zip(inspecting, comparisons, claims_of_plans, strict=True)]

    def _compare(self, conn: sa.Connection, comparisons: Sequence[plan.Comparison],
                 keys: Sequence[list[tuple[str, int]]]) -> None:
        for comparison, pairs in zip(comparisons, keys, strict=True):
            comparison.take(((), ()), pairs)
        for page in records.all_ports(conn, self._scopes):
            for comparison, ports in zip(comparisons, page, strict=True):
                comparison.take(ports)

    def read_changes(self, conn: sa.Connection, before: Sequence[frozenset[int]], unsure: Collection[int],
                     refused: set[str]) -> list[Changes] | None:
        """Read what has changed since the last reading; None if that is unknown, and everything must be read.

        :param before: by plan, ids of the nodes that were on inspection
        :param unsure: ids of nodes to read as well
        """
        changed = self._list.changed(conn)
        if changed is None:
            return None
        inspecting = self._inspecting(conn)
        node_ids = changed.union(unsure, *(ids ^ now.ids for ids, now in zip(before, inspecting, strict=True)))
        ports = records.ports_of(conn, node_ids, self._whole)
        return [Changes(nodes.ids, changed, _pairs(ports, scope, refused), node_ids, nodes.on_inspection)
                for nodes, scope in zip(inspecting, self._scopes, strict=True)]

    def _inspecting(self, conn: sa.Connection) -> list[_Nodes]:
        served = records.served(conn, self._interfaces, self._whole, all_ramdisks=self._all_ramdisks)
        by_scope = []
        for scope in self._scopes:
            mine = [node for node in served.values() if scope.has_group(node.conductor_group)]
            by_scope.append(_Nodes(frozenset(node.id for node in mine),
                                   sum(node.provision_state in records.STATES for node in mine)))
        return by_scope


def _pairs(ports: Sequence[records.Port], scope: records.Scope, refused: set[str]) -> list[tuple[str, int]]:
    """Return (address or identifier, node id) of the ports in a scope."""
    mine = [port for port in ports if scope.has(port.physical_network, port.conductor_group)]
    return [*((port.address, port.node_id) for port in mine),
            *plan.keys(((identifier, port.node_id) for port in mine for identifier in port.identifiers), refused)]
