"""Writes an inspection's changes of a node's ports, with one statement for each kind of change."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, identity, pxe_filter
from ironic_rules.db.errors import duplicates, references
from ironic_rules.db.prepared import PreparedChange
from ironic_rules.db.tables import ports
from ironic_rules.exceptions import DuplicatePortName, MACAlreadyExists, NodeNotFound, PortAlreadyExists
from ironic_rules.models.ports import PORT
from ironic_rules.models.task import PortChanges

#: Columns besides the UUID whose values no two ports have in common.
_UNIQUE = ("address", "name")
_GENERATED = ("id", "uuid", "node_id", "created_at", "updated_at")
#: Values of a created port for missing fields; all rows of one INSERT have the same columns.
_DEFAULTS = {name: PORT[name].initial() for name in PORT.where(lambda entry: entry.column) if name not in _GENERATED}

_INSERT = PreparedChange(sa.insert(ports))


def apply_changes(conn: sa.Connection, node_id: int, changes: PortChanges) -> None:
    """Delete, update and create the ports of a node, in this order, so that an address can move from one to another.

    Fields without a column are ignored. Ports of other nodes are never touched.

    :raises NodeNotFound: 404
    :raises MACAlreadyExists, DuplicatePortName, PortAlreadyExists: 409
    """
    if changes.deleted:
        conn.execute(sa.delete(ports).where(ports.c.node_id == node_id, ports.c.id.in_(changes.deleted)))
    for columns, rows in _by_columns(changes.updated):
        _update(conn, node_id, columns, rows)
    if changes.created:
        _create(conn, node_id, changes.created)
    if changes.deleted or changes.created or any(
            not pxe_filter.OF_PORTS.isdisjoint(values) for values in changes.updated.values()):
        pxe_filter.note(conn, node_id)


def _by_columns(updated: Mapping[int, Mapping[str, Any]]) -> list[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    """Group the updates by the columns that they write: a few statements for any number of ports."""
    def columns(item: tuple[int, Mapping[str, Any]]) -> tuple[str, ...]:
        return tuple(sorted(item[1].keys() & _DEFAULTS.keys()))

    def row(port_id: int, values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
        return {"port_id": port_id, **{f"new_{name}": values[name] for name in names}}

    groups = itertools.groupby(sorted(updated.items(), key=columns), columns)
    return [(names, [row(*item, names) for item in group]) for names, group in groups if names]


def _update(conn: sa.Connection, node_id: int, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    statement = sa.update(ports).where(ports.c.id == sa.bindparam("port_id"), ports.c.node_id == node_id).values(
        {**{name: sa.bindparam(f"new_{name}") for name in columns}, "updated_at": clock.now()})
    written = {name: {row[f"new_{name}"]: row["port_id"] for row in rows} for name in _UNIQUE if name in columns}
    with _taken(conn, written, ports.c.id):
        conn.execute(statement, rows)


def _create(conn: sa.Connection, node_id: int, created: list[dict[str, Any]]) -> None:
    now = clock.now()
    rows = [{**_DEFAULTS, **{name: value for name, value in values.items() if name in _DEFAULTS},
             "uuid": identity.assigned(values), "node_id": node_id, "created_at": now} for values in created]
    written = {name: {row[name]: row["uuid"] for row in rows} for name in _UNIQUE}
    with _taken(conn, written, ports.c.uuid), references(lambda key: NodeNotFound(node=node_id)):
        _INSERT.insert_all(conn, rows)


def _taken(conn: sa.Connection, written: Mapping[str, Mapping[Any, Any]], own: sa.Column[Any]) -> Any:
    """Return a context that raises the error for a value of another port.

    :param written: the values of each column, and which ports they are for, by the column ``own``
    """
    def which(column: str, value: str | None) -> str | None:
        # SQLite does not report which value it was, but allows a query.
        return value or _taken_value(conn, ports.c[column], written.get(column, {}), own)

    return duplicates(
        address=lambda value: MACAlreadyExists(mac=which("address", value)),
        name=lambda value: DuplicatePortName(name=which("name", value)),
        other=lambda value: PortAlreadyExists("A port with this UUID already exists."))


def _taken_value(conn: sa.Connection, column: sa.Column[Any], written: Mapping[Any, Any],
                 own: sa.Column[Any]) -> str | None:
    query = sa.select(column).where(column.in_(list(written)), own.not_in(list(written.values())))
    found: str | None = conn.scalars(query.limit(1)).one_or_none()
    return found or next(iter(written), None)
