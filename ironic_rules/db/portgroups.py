"""Port groups. Rows have ``node_uuid`` in addition to the table's columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, identity, node_queries
from ironic_rules.db.errors import duplicates, references
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.tables import nodes, portgroups
from ironic_rules.exceptions import (
    NodeNotFound,
    duplicate_portgroup_name,
    portgroup_already_exists,
    portgroup_mac_already_exists,
    portgroup_not_empty,
    portgroup_not_found,
)
from ironic_rules.models.ports import PORT_GROUP, PortGroup

_NODE_UUID = nodes.c.uuid.label("node_uuid")


def _select(columns: Iterable[str] | None = None, *, raw_json: bool = False) -> sa.Select[Any]:
    names = None if columns is None else [name for name in columns if name != "node_uuid"]
    own = columns_of(portgroups, names, raw_json=raw_json)
    return sa.select(*own, _NODE_UUID).select_from(portgroups.join(nodes, portgroups.c.node_id == nodes.c.id))


_ALL = _select()
_OF_NODE = _ALL.where(portgroups.c.node_id == sa.bindparam("node_id")).order_by(portgroups.c.id)


def get(conn: sa.Connection, ident: str) -> PortGroup:
    """Return the port group with the UUID or name ``ident``.

    :raises portgroup_not_found: 404
    """
    return _one(conn, identity.is_called(portgroups, ident), ident)


def list_portgroups(conn: sa.Connection, filters: Mapping[str, object], page: Page,
                    columns: Iterable[str] | None = None, *, raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` port groups that pass all ``filters``; every row has ``node_uuid``.

    :param filters: ``node_id``, ``node_uuid``, ``address``, the node's ``shard`` (list), ``project``
    :param columns: names of the columns of the rows; None: all columns
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = _select(columns, raw_json=raw_json).where(*(
        node_queries.part_condition(portgroups, name, value) for name, value in filters.items()))
    marker = marker_row(conn, portgroups, page, among=node_queries.of_caller(filters, portgroups))
    return rows_of(conn, paginate(query, portgroups, page, marker))


def for_node(conn: sa.Connection, node_id: int) -> Sequence[PortGroup]:
    """Return all port groups of a node, oldest first."""
    return conn.execute(_OF_NODE, {"node_id": node_id}).all()


def for_nodes(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, list[PortGroup]]:
    """Return what :func:`for_node` returns for each of these nodes."""
    groups: dict[int, list[PortGroup]] = {node_id: [] for node_id in node_ids}
    for row in conn.execute(_ALL.where(portgroups.c.node_id.in_(node_ids)).order_by(portgroups.c.id)).all():
        groups[row.node_id].append(row)
    return groups


def create(conn: sa.Connection, values: Mapping[str, object]) -> PortGroup:
    """Store a new port group and return it; ``uuid``, ``created_at`` and ``mode`` have defaults.

    :raises NodeNotFound: 404
    :raises portgroup_already_exists, duplicate_portgroup_name, portgroup_mac_already_exists: 409
    """
    row = {"created_at": clock.now(), "mode": PORT_GROUP["mode"].default, **values, "uuid": identity.assigned(values)}
    with _taken(row), references(lambda key: NodeNotFound(node=row.get("node_id"))):
        inserted = conn.execute(sa.insert(portgroups).values(row)).inserted_primary_key
    return _one(conn, portgroups.c.id == inserted[0], row["uuid"])  # type: ignore[index]


def update(conn: sa.Connection, portgroup_id: int, values: Mapping[str, object]) -> PortGroup:
    """Write ``values`` and return the port group.

    :raises portgroup_not_found, NodeNotFound: 404
    :raises portgroup_already_exists, duplicate_portgroup_name, portgroup_mac_already_exists: 409
    """
    statement = sa.update(portgroups).where(portgroups.c.id == portgroup_id)
    with _taken(values), references(lambda key: NodeNotFound(node=values.get("node_id"))):
        conn.execute(statement.values({**values, "updated_at": clock.now()}))
    return _one(conn, portgroups.c.id == portgroup_id, portgroup_id)


def destroy(conn: sa.Connection, portgroup_id: int) -> None:
    """Delete the port group.

    :raises portgroup_not_found: 404
    :raises portgroup_not_empty: 400
    """
    uuid = conn.scalar(sa.select(portgroups.c.uuid).where(portgroups.c.id == portgroup_id))
    if uuid is None:
        raise portgroup_not_found(portgroup=portgroup_id)
    with references(lambda key: portgroup_not_empty(portgroup=uuid)):
        conn.execute(sa.delete(portgroups).where(portgroups.c.id == portgroup_id))


def _one(conn: sa.Connection, condition: sa.ColumnElement[bool], ident: str | int) -> PortGroup:
    row = conn.execute(_ALL.where(condition)).one_or_none()
    if row is None:
        raise portgroup_not_found(portgroup=ident)
    return row


def _taken(values: Mapping[str, object]) -> Any:
    return duplicates(
        uuid=lambda value: portgroup_already_exists(uuid=values.get("uuid")),
        name=lambda value: duplicate_portgroup_name(name=values.get("name")),
        address=lambda value: portgroup_mac_already_exists(mac=values.get("address")))
