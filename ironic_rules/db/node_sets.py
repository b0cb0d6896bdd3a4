"""Sets of strings that belong to a node (traits, BMC addresses): a table of (node_id, string) each.

A writer that adds to a set locks the node's row, so that two replacements never result in the union of both, and
missing values can be inserted without a conflict. (An upsert would not need the lock, but in InnoDB it locks the gaps
to the sets of neighbouring nodes, and their writers deadlock.)
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.tables import nodes
from ironic_rules.exceptions import NodeNotFound

_NODE = Prepared(sa.select(nodes.c.id).where(nodes.c.id == sa.bindparam("of_node")))


def replace(conn: sa.Connection, column: sa.Column[Any], node_id: int, values: Collection[str]) -> None:
    """Replace the node's set by ``values``; rows that remain are not touched.

    :raises NodeNotFound: 404
    """
    table, present = column.table, _present(conn, column, node_id)
    surplus = present.difference(values)
    if surplus:
        conn.execute(sa.delete(table).where(table.c.node_id == node_id, column.in_(sorted(surplus))))
    _insert(conn, column, node_id, set(values) - present)


def add(conn: sa.Connection, column: sa.Column[Any], node_id: int, value: str) -> None:
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
