"""The data of the PXE filter: ports, nodes on inspection, and the list of changed ports.

A transaction that creates, deletes or moves a port, or changes its address, also adds the node's id to
``pxe_filter_changes``. Rows are only inserted: writers do not wait for each other, as they would for a counter.

Provision states are not in the list. The nodes that boot a ramdisk are few and found by an index, so all of them are
read each time, which cannot miss one.
"""

from __future__ import annotations

import collections
import operator
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db.prepared import PreparedChange
from ironic_rules.db.tables import nodes, ports, pxe_filter_changes
from ironic_rules.models import states

#: The states in which a node is on inspection.
STATES = (states.INSPECTWAIT, states.INSPECTING)
#: The states in which a node may boot a ramdisk, or runs one, in another procedure.
RAMDISK_STATES = (states.CLEANING, states.CLEANWAIT, states.CLEANHOLD, states.DEPLOYING, states.DEPLOYWAIT,
                  states.DEPLOYHOLD, states.RESCUING, states.RESCUEWAIT, states.SERVICING, states.SERVICEWAIT,
                  states.SERVICEHOLD)

#: Number of rows of the list that are kept, enough that no reader misses one; older ones are deleted from time to time.
KEEP = 100_000
_PRUNE_EVERY = 1000
#: Seconds after which a transaction that has added a row has certainly ended. Rows do not become visible in the order
#: of their ids, so readers query them again for that long.
SETTLED_S = 600.0
#: With more unsettled rows than this, reading all ports is not slower.
LIMIT = 10_000
#: Maximum number of rows before the last one that may have become visible after it.
_LOOK_BACK = LIMIT // 2
_PAGE = 10_000
_CHUNK = 500

#: Names in ``extra`` of a port that tell how its client identifies itself instead of by its address: the client
#: identifier of DHCPv4, as Ironic and the agent know it of InfiniBand, and the DUID of DHCPv6.
IDENTIFIERS = ("client-id", "duid")
#: Fields of a port whose changes filters have to know.
OF_PORTS = frozenset({"address", "node_id", "physical_network", "extra"})

_NOTE = PreparedChange(sa.insert(pxe_filter_changes))
_PORTS = sa.select(ports.c.id, ports.c.address, ports.c.node_id).where(
    ports.c.id > sa.bindparam("after")).order_by(ports.c.id).limit(_PAGE)
_ADDRESS, _NODE_ID = operator.itemgetter(1), operator.itemgetter(2)
#: Columns by which a scope decides.
_PLACE = (ports.c.physical_network, nodes.c.conductor_group)
_PORTS_OF = sa.select(ports.c.address, ports.c.node_id, *_PLACE, ports.c.extra).join(nodes).where(
    ports.c.node_id.in_(sa.bindparam("node_ids", expanding=True)))
_EXTRA = sa.type_coerce(ports.c.extra, sa.Text)
_IDENTIFIED = sa.select(ports.c.node_id, *_PLACE, ports.c.extra).join(nodes).where(
    # Most ports have none, and the first condition costs half as much as the second.
    _EXTRA != "{}", sa.or_(*(_EXTRA.like(f'%"{name}"%') for name in IDENTIFIERS)))
_NODES = sa.select(nodes.c.id, nodes.c.uuid, nodes.c.provision_state, nodes.c.inspect_interface,
                   nodes.c.conductor_group)
_NODES_BY_ID = _NODES.where(nodes.c.id.in_(sa.bindparam("node_ids", expanding=True)))
_IN_STATES = _NODES.where(nodes.c.provision_state.in_(sa.bindparam("states", expanding=True)))
_LAST = sa.select(pxe_filter_changes.c.id).order_by(pxe_filter_changes.c.id.desc()).limit(_LOOK_BACK)
_AFTER = sa.select(pxe_filter_changes.c.id, pxe_filter_changes.c.node_id).where(
    pxe_filter_changes.c.id > sa.bindparam("floor")).limit(LIMIT + 1)


#: Addresses, and for each the id of the node whose port has it.
Columns = tuple[Sequence[str], Sequence[int]]


class Scope(NamedTuple):
    """The nodes and ports that a filter is for; an empty set does not restrict them."""

    conductor_groups: frozenset[str] = frozenset()
    physical_networks: frozenset[str] = frozenset()

    def has(self, physical_network: str | None, conductor_group: str | None) -> bool:
        """Return whether a port is in the scope, by its physical network and the conductor group of its node."""
        return ((not self.physical_networks or physical_network in self.physical_networks)
                and self.has_group(conductor_group))

    def has_group(self, conductor_group: str | None) -> bool:
        """Return whether a node is in the scope."""
        return not self.conductor_groups or (conductor_group or "").lower() in self.conductor_groups

    def of_nodes(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions for nodes."""
        return [nodes.c.conductor_group.in_(sorted(self.conductor_groups))] if self.conductor_groups else []

    def of_ports(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions for ports."""
        conditions: list[sa.ColumnElement[bool]] = []
        if self.physical_networks:
            conditions.append(ports.c.physical_network.in_(sorted(self.physical_networks)))
        if self.conductor_groups:
            conditions.append(ports.c.node_id.in_(sa.select(nodes.c.id).where(*self.of_nodes())))
        return conditions


EVERYTHING = Scope()


def union(scopes: Collection[Scope]) -> Scope:
    """Return a scope that has at least the nodes and ports of each: what is to be read for all of them."""
    groups, networks = ([getattr(scope, name) for scope in scopes] for name in Scope._fields)
    return Scope(*(frozenset().union(*parts) if all(parts) else frozenset() for parts in (groups, networks)))


class Node(NamedTuple):
    """The fields of a node that the filter needs."""

    id: int
    uuid: str
    provision_state: str
    inspect_interface: str | None
    conductor_group: str | None


class Port(NamedTuple):
    """A port for the filter, with the columns by which scopes decide. ``identifiers``: of its client, not checked."""

    address: str
    node_id: int
    physical_network: str | None
    conductor_group: str | None
    identifiers: tuple[Any, ...]


def note(conn: sa.Connection, *node_ids: int) -> None:
    """Record in the list that ports of these nodes were created, deleted or moved, or got another address."""
    for node_id in node_ids:
        number = _NOTE.inserted(conn, {"node_id": node_id})
        if number % _PRUNE_EVERY == 0:
            conn.execute(sa.delete(pxe_filter_changes).where(pxe_filter_changes.c.id <= number - KEEP))


def served(conn: sa.Connection, interfaces: Collection[str], scope: Scope = EVERYTHING, *,
           all_ramdisks: bool = False) -> dict[int, Node]:
    """Return the nodes on inspection whose inspect interface is one of ``interfaces``, by id.

    :param all_ramdisks: also return those that may boot a ramdisk in another procedure
    """
    in_states = (*STATES, *RAMDISK_STATES) if all_ramdisks else STATES
    rows = conn.execute(_IN_STATES.where(*scope.of_nodes()), {"states": in_states})
    return {row.id: Node(*row) for row in rows
            if row.provision_state in RAMDISK_STATES or row.inspect_interface in interfaces}


def nodes_by_id(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, Node]:
    """Return those of the nodes that exist, by id."""
    rows = (row for chunk in _chunks(node_ids) for row in conn.execute(_NODES_BY_ID, {"node_ids": chunk}))
    return {row.id: Node(*row) for row in rows}


def all_ports(conn: sa.Connection, scopes: Sequence[Scope] = (EVERYTHING,)) -> Iterator[list[Columns]]:
    """Yield the ports in pages: for each scope, in their order, the ports that it has of the page.

    A port that changes during the reading may be read before or after its change; the list of changes has its node.
    """
    whole = union(scopes)
    query = _PORTS.where(*whole.of_ports())
    if set(scopes) == {whole}:
        for page in _pages(conn, query):
            yield [(list(map(_ADDRESS, page)), list(map(_NODE_ID, page)))] * len(scopes)
        return
    query = query.add_columns(*_PLACE).join(nodes, nodes.c.id == ports.c.node_id)
    for page in _pages(conn, query):
        yield [_within(page, scope) for scope in scopes]


def _within(page: Iterable[Any], scope: Scope) -> Columns:
    pairs = [(address, node_id) for _, address, node_id, *place in page if scope.has(*place)]
    return [address for address, _ in pairs], [node_id for _, node_id in pairs]


def _pages(conn: sa.Connection, query: sa.Select[Any]) -> Iterator[list[Any]]:
    after = 0
    while page := _raw(conn, query, after):
        yield page
        after = page[-1][0]


def _raw(conn: sa.Connection, query: sa.Select[Any], after: int) -> list[Any]:
    with conn.execute(query, {"after": after}) as result:
        # Plain tuples: creating Row objects would take as long as the query.
        return list(result.cursor.fetchall())  # type: ignore[attr-defined]


def identified(conn: sa.Connection, scopes: Sequence[Scope] = (EVERYTHING,)) -> list[list[tuple[Any, int]]]:
    """Return for each scope, in their order, the (identifier, node id) pairs of its ports. They are not checked."""
    pairs_of: list[list[tuple[Any, int]]] = [[] for _ in scopes]
    for row in conn.execute(_IDENTIFIED.where(*union(scopes).of_ports())):
        for scope, pairs in zip(scopes, pairs_of, strict=True):
            if scope.has(row.physical_network, row.conductor_group):
                pairs += [(identifier, row.node_id) for identifier in _identifiers(row.extra)]
    return pairs_of


def ports_of(conn: sa.Connection, node_ids: Collection[int], scope: Scope = EVERYTHING) -> list[Port]:
    """Return every port of these nodes in the scope."""
    query = _PORTS_OF.where(*scope.of_ports())
    return [Port(*row[:-1], _identifiers(row.extra)) for chunk in _chunks(node_ids)
            for row in conn.execute(query, {"node_ids": chunk})]


def _identifiers(extra: object) -> tuple[Any, ...]:
    if not isinstance(extra, dict):
        return ()
    return tuple(extra[name] for name in IDENTIFIERS if extra.get(name) is not None)


class ChangeReader:
    """Reads the list of changes since the last call.

    Ids are assigned when a row is inserted, and rows become visible when their transaction commits: 7 may be visible
    before 6. So the reader remembers the ids that it has seen, and queries all rows above ``floor``: the highest id
    that it saw ``SETTLED_S`` seconds ago. Rows up to that id have been committed since, or never will be. Galera, whose
    members use interleaved ids, makes the order worse but not beyond that. Changes that this misses (a transaction that
    takes longer, rows changed manually) are found when all ports are read.

    :param clock: returns seconds from any starting point (for tests)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._floor = 0
        self._seen: set[int] = set()
        self._marks: collections.deque[tuple[float, int]] = collections.deque()

    def begin(self, conn: sa.Connection) -> None:
        """Skip the changes so far. To be called before all ports are read."""
        last = list(conn.scalars(_LAST))
        self._seen = set(last)
        self._floor = last[-1] - 1 if len(last) == _LOOK_BACK else 0
        self._marks = collections.deque([(self._clock(), last[0] if last else 0)])

    def changed(self, conn: sa.Connection) -> set[int] | None:
        """Return the ids of nodes whose ports have changed since the last call.

        None if that is unknown: there are too many, or the list is not the one that was read before.
        """
        rows = conn.execute(_AFTER, {"floor": self._floor}).all()
        ids = {row.id for row in rows}
        if len(rows) > LIMIT or not self._seen <= ids:
            return None
        new = {row.node_id for row in rows if row.id not in self._seen}
        self._seen = ids
        self._settle(max(ids, default=self._floor))
        return new

    def _settle(self, highest: int) -> None:
        now = self._clock()
        if now - self._marks[-1][0] >= 1:
            self._marks.append((now, highest))
        while len(self._marks) > 1 and self._marks[1][0] <= now - SETTLED_S:
            self._marks.popleft()
        when, number = self._marks[0]
        if when <= now - SETTLED_S and number > self._floor:
            self._floor = number
            self._seen = {change for change in self._seen if change > number}


def _chunks(values: Collection[int]) -> Iterator[list[int]]:
    ordered = sorted(values)
    return (ordered[start:start + _CHUNK] for start in range(0, len(ordered), _CHUNK))
