"""Ports, and an inspection's changes of a node's ports: one statement for each kind of change.

Rows have ``node_uuid`` and ``portgroup_uuid`` in addition to the table's columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db import clock, identity, inspection_rules, node_queries, outbox, pxe_filter
from ironic_rules.db.errors import duplicates, references
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.tables import discovered_macs, nodes, portgroups, ports, revisions, shared_macs
from ironic_rules.exceptions import (
    Conflict,
    DuplicatePortName,
    IronicRulesError,
    MACAlreadyExists,
    NodeNotFound,
    port_already_exists,
    port_not_found,
    portgroup_not_found,
)
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import Sharing
from ironic_rules.models.ports import PORT, Port
from ironic_rules.models.task import PortChanges

#: Columns, except the UUID, whose values no two ports have in common.
_UNIQUE = ("address", "name")
_GENERATED = ("id", "uuid", "node_id", "created_at", "updated_at")
#: Values of a created port for missing fields; all rows of one INSERT have the same columns.
_DEFAULTS = {name: PORT[name].initial() for name in PORT.where(lambda entry: entry.column) if name not in _GENERATED}

_INSERT_PORT = PreparedChange(sa.insert(ports))


def apply_changes(conn: sa.Connection, node_id: int, changes: PortChanges) -> None:
    """Delete, update and create the ports of a node, in this order, so that an address can move from one to another.

    Fields without a column are ignored. Ports of other nodes are never touched.

    :raises NodeNotFound: 404
    :raises MACAlreadyExists, DuplicatePortName, port_already_exists: 409
    """
    noted = outbox.wanted(conn) is not None
    before = for_node(conn, node_id) if noted else ()
    if changes.deleted:
        conn.execute(sa.delete(ports).where(ports.c.node_id == node_id, ports.c.id.in_(changes.deleted)))
    for columns, rows in _by_columns(changes.updated):
        _update_ports(conn, node_id, columns, rows)
    if changes.created:
        _create_ports(conn, node_id, changes.created)
    if changes.deleted or changes.created or any(
            not pxe_filter.OF_PORTS.isdisjoint(values) for values in changes.updated.values()):
        pxe_filter.note(conn, node_id)
    if noted:
        _note_changes(conn, {port.id: port for port in before}, {port.id: port for port in for_node(conn, node_id)})


def _note_changes(conn: sa.Connection, before: Mapping[int, Port], after: Mapping[int, Port]) -> None:
    for port_id in sorted(before.keys() | after.keys()):
        if port_id not in after:
            outbox.note(conn, "port", "delete", before[port_id])
        elif before.get(port_id) != after[port_id]:
            outbox.note(conn, "port", "update" if port_id in before else "create", after[port_id])


def _by_columns(updated: Mapping[int, Mapping[str, Any]]) -> list[tuple[tuple[str, ...], list[JSONObject]]]:
    """Group the updates by the columns that they write: a few statements for any number of ports."""
    def columns(item: tuple[int, Mapping[str, Any]]) -> tuple[str, ...]:
        return tuple(sorted(item[1].keys() & _DEFAULTS.keys()))

    def row(port_id: int, values: Mapping[str, object], names: tuple[str, ...]) -> JSONObject:
        return {"port_id": port_id, **{f"new_{name}": values[name] for name in names}}

    groups = itertools.groupby(sorted(updated.items(), key=columns), columns)
    return [(names, [row(*item, names) for item in group]) for names, group in groups if names]


def _update_ports(conn: sa.Connection, node_id: int, columns: tuple[str, ...], rows: list[JSONObject]) -> None:
    statement = sa.update(ports).where(ports.c.id == sa.bindparam("port_id"), ports.c.node_id == node_id).values(
        {**{name: sa.bindparam(f"new_{name}") for name in columns}, "updated_at": clock.now()})
    written = {name: {row[f"new_{name}"]: row["port_id"] for row in rows} for name in _UNIQUE if name in columns}
    with _taken_by_changes(conn, written, ports.c.id):
        conn.execute(statement, rows)


def _create_ports(conn: sa.Connection, node_id: int, created: list[JSONObject]) -> None:
    now = clock.now()
    rows = [{**_DEFAULTS, **{name: value for name, value in values.items() if name in _DEFAULTS},
             "uuid": identity.assigned(values), "node_id": node_id, "created_at": now} for values in created]
    written = {name: {row[name]: row["uuid"] for row in rows} for name in _UNIQUE}
    with _taken_by_changes(conn, written, ports.c.uuid), references(lambda key: NodeNotFound(node=node_id)):
        _INSERT_PORT.insert_all(conn, rows)


def _taken_by_changes(conn: sa.Connection, written: Mapping[str, Mapping[Any, Any]], own: sa.Column[Any]) -> Any:
    """Return a context that raises the error for a value of another port.

    :param written: the values of each column, and which ports they are for, by the column ``own``
    """
    def which(column: str, value: str | None) -> str | None:
        # SQLite does not report which value it was, but allows a query.
        return value or _taken_value(conn, ports.c[column], written.get(column, {}), own)

    return duplicates(
        address=lambda value: MACAlreadyExists(mac=which("address", value)),
        name=lambda value: DuplicatePortName(name=which("name", value)),
        other=lambda value: Conflict("A port with this UUID already exists."))


def _taken_value(conn: sa.Connection, column: sa.Column[Any], written: Mapping[Any, Any],
                 own: sa.Column[Any]) -> str | None:
    query = sa.select(column).where(column.in_(list(written)), own.not_in(list(written.values())))
    value: str | None = conn.scalars(query.limit(1)).one_or_none()
    return value or next(iter(written), None)


_JOINED = {"node_uuid": nodes.c.uuid.label("node_uuid"), "portgroup_uuid": portgroups.c.uuid.label("portgroup_uuid")}


def _select(columns: Iterable[str] | None = None, *, raw_json: bool = False, with_node: bool = False) -> sa.Select[Any]:
    names = None if columns is None else list(columns)
    joined = [name for name in _JOINED if names is None or name in names]
    own = columns_of(ports, None if names is None else [name for name in names if name not in _JOINED],
                     raw_json=raw_json)
    source: Any = ports
    if with_node or "node_uuid" in joined:
        # Each port has a node. With an inner join, MariaDB may begin with the nodes, and sort the ports of all of them.
        source = source.outerjoin(nodes, ports.c.node_id == nodes.c.id)
    if "portgroup_uuid" in joined:
        source = source.outerjoin(portgroups, ports.c.portgroup_id == portgroups.c.id)
    return sa.select(*own, *(_JOINED[name] for name in joined)).select_from(source)


_ALL = _select()
_OF_NODE = Prepared(_ALL.where(ports.c.node_id == sa.bindparam("node_id")).order_by(ports.c.id))
_BY_ID = Prepared(_ALL.where(ports.c.id == sa.bindparam("port_id")))
_INSERT = PreparedChange(sa.insert(ports))
_OWNER = sa.select(ports.c.node_id).where(ports.c.id == sa.bindparam("port_id"))
_IS_ONE_OF = ports.c.address.in_(sa.bindparam("macs", expanding=True))
_OWNERS = Prepared(sa.select(ports.c.address, ports.c.node_id).where(_IS_ONE_OF))

def _is_shared(table: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether a machine of another node than that of the row has reported the row's address, too."""
    return sa.exists().where(shared_macs.c.address == table.c.address, shared_macs.c.node_id != table.c.node_id)


_MACS: sa.BindParameter[str] = sa.bindparam("macs", expanding=True)
_OF_OTHERS = Prepared(sa.union_all(  # type: ignore[arg-type]
    sa.select(ports.c.address, ports.c.node_id, sa.literal_column("1").label("is_port")).where(
        ports.c.address.in_(_MACS)),
    sa.select(shared_macs.c.address, shared_macs.c.node_id, sa.literal_column("0").label("is_port")).where(sa.or_(
        shared_macs.c.address.in_(_MACS), shared_macs.c.node_id == sa.bindparam("of_node")))))
IS_SHARED = _is_shared(ports)
IS_SHARED_DISCOVERY = _is_shared(discovered_macs)
_OWNERS_AND_REVISION = Prepared(sa.select(
    revisions.c.revision, ports.c.address, ports.c.node_id, IS_SHARED.label("is_shared")).select_from(
    revisions.outerjoin(ports, _IS_ONE_OF)).where(revisions.c.name == inspection_rules.RULE_SET))


def get(conn: sa.Connection, ident: str) -> Port:
    """Return the port with the UUID, MAC address or name ``ident``.

    :raises port_not_found: 404
    """
    by_address = addresses.is_mac(ident)
    condition = ports.c.address == addresses.normalize_mac(ident) if by_address else identity.is_called(ports, ident)
    return _one(conn, condition, ident)


def physical_networks(conn: sa.Connection, portgroup_id: int, *, but: int | None = None) -> set[str | None]:
    """Return the physical networks of the ports of a port group, not counting the port ``but``."""
    query = sa.select(ports.c.physical_network).where(ports.c.portgroup_id == portgroup_id)
    return set(conn.scalars(query if but is None else query.where(ports.c.id != but)))


def list_ports(conn: sa.Connection, filters: Mapping[str, object], page: Page, columns: Iterable[str] | None = None, *,
               raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` ports that pass all ``filters``.

    :param filters: ``node_id``, ``node_uuid``, ``address``, ``portgroup_id``, ``project``, and lists of the
        node's ``shard`` and ``conductor_groups`` (in any case)
    :param columns: names of the columns of the rows, which may include ``node_uuid`` and ``portgroup_uuid``
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    of_node = not filters.keys().isdisjoint(("node_uuid", "shard", "conductor_groups", "project"))
    query = _select(columns, raw_json=raw_json, with_node=of_node)
    for name, value in filters.items():
        query = query.where(node_queries.part_condition(ports, name, value))
    marker = marker_row(conn, ports, page, among=node_queries.of_caller(filters, ports))
    return rows_of(conn, paginate(query, ports, page, marker))


def for_node(conn: sa.Connection, node_id: int) -> Sequence[Port]:
    """Return all ports of a node, oldest first."""
    return _OF_NODE.all(conn, {"node_id": node_id})


def for_nodes(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, list[Port]]:
    """Return what :func:`for_node` returns for each of these nodes."""
    ports_of: dict[int, list[Port]] = {node_id: [] for node_id in node_ids}
    for row in conn.execute(_ALL.where(ports.c.node_id.in_(node_ids)).order_by(ports.c.id)).all():
        ports_of[row.node_id].append(row)
    return ports_of


def create(conn: sa.Connection, values: Mapping[str, Any]) -> Port:
    """Store a new port and return it; ``uuid`` and ``created_at`` have defaults.

    :raises NodeNotFound, portgroup_not_found: 404, ``node_id`` or ``portgroup_id``
    :raises MACAlreadyExists, port_already_exists, DuplicatePortName: 409
    """
    row = {"created_at": clock.now(), **values, "uuid": identity.assigned(values)}
    with _taken(row), references(lambda key: _missing(conn, key, row)):
        port_id = _INSERT.inserted(conn, row)
    pxe_filter.note(conn, row["node_id"])
    return _BY_ID.one(conn, {"port_id": port_id})


def update(conn: sa.Connection, port_id: int, values: Mapping[str, object]) -> Port:
    """Write ``values`` and return the port.

    :raises port_not_found, NodeNotFound, portgroup_not_found: 404
    :raises MACAlreadyExists, port_already_exists, DuplicatePortName: 409
    """
    statement = sa.update(ports).where(ports.c.id == port_id).values({**values, "updated_at": clock.now()})
    moves = not pxe_filter.OF_PORTS.isdisjoint(values)
    owners = set(conn.scalars(_OWNER, {"port_id": port_id})) if moves else set()
    with _taken(values), references(lambda key: _missing(conn, key, values)):
        conn.execute(statement)
    row = _one(conn, ports.c.id == port_id, port_id)
    if moves:
        pxe_filter.note(conn, *sorted({*owners, row.node_id}))
    return row


def destroy(conn: sa.Connection, port_id: int) -> None:
    """Delete the port.

    :raises port_not_found: 404
    """
    owners = set(conn.scalars(_OWNER, {"port_id": port_id}))
    if conn.execute(sa.delete(ports).where(ports.c.id == port_id)).rowcount == 0:
        raise port_not_found(port=port_id)
    pxe_filter.note(conn, *owners)


def node_ids_by_addresses(conn: sa.Connection, macs: Collection[str]) -> dict[str, int]:
    """Return the node ids by MAC address for ``macs`` (normalized); addresses without a port are missing."""
    return {row.address: row.node_id for row in _OWNERS.all(conn, {"macs": list(macs)})}


def of_other_machines(conn: sa.Connection, node_id: int, macs: Collection[str]) -> tuple[set[str], Sharing]:
    """Return which of ``macs`` are ports of other nodes, and what ``node_sets.sharing`` does, with one query."""
    rows = _OF_OTHERS.all(conn, {"macs": list(macs), "of_node": node_id})
    addresses: list[set[str]] = [set(), set(), set()]
    for row in rows:
        if not row.is_port:
            addresses[1 if row.node_id != node_id else 2].add(row.address)
        elif row.node_id != node_id:
            addresses[0].add(row.address)
    return addresses[0], Sharing(frozenset(addresses[1]), frozenset(addresses[2]))


class Owner(NamedTuple):
    """The port that a MAC address has. ``is_shared``: machines of other nodes have reported it, too."""

    address: str
    node_id: int
    is_shared: bool


def owners_and_rules_revision(conn: sa.Connection, macs: Collection[str]) -> tuple[list[Owner], int]:
    """Return the ports that have any of ``macs``, and the revision of the set of inspection rules."""
    rows = _OWNERS_AND_REVISION.all(conn, {"macs": list(macs)})
    return [Owner(row.address, row.node_id, bool(row.is_shared)) for row in rows if row.node_id is not None], (
        rows[0].revision)


def _one(conn: sa.Connection, condition: sa.ColumnElement[bool], ident: str | int) -> Port:
    row = conn.execute(_ALL.where(condition)).one_or_none()
    if row is None:
        raise port_not_found(port=ident)
    return row


def _taken(values: Mapping[str, object]) -> Any:
    return duplicates(
        uuid=lambda value: port_already_exists(uuid=values.get("uuid")),
        address=lambda value: MACAlreadyExists(mac=values.get("address")),
        name=lambda value: DuplicatePortName(name=values.get("name")))


def _missing(conn: sa.Connection, key: str | None, values: Mapping[str, object]) -> IronicRulesError:
    node_id = values.get("node_id")
    if key is None and node_id is not None:
        # SQLite does not report which reference it was, but allows a query.
        node = conn.execute(sa.select(nodes.c.id).where(nodes.c.id == node_id)).one_or_none()
        key = "portgroup_id" if node else "node_id"
    if key == "node_id":
        return NodeNotFound(node=node_id)
    return portgroup_not_found(portgroup=values.get("portgroup_id"))
