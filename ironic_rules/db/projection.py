"""The columns that a query returns, and their form."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeAlias

import sqlalchemy as sa

from ironic_rules.db.types import Json

#: A row of any columns; an attribute is a column.
Row: TypeAlias = "sa.Row[*tuple[Any, ...]]"


def columns_of(table: sa.Table, names: Iterable[str] | None = None, *, raw_json: bool = False) -> tuple[Any, ...]:
    """Return what to SELECT: the columns ``names`` of ``table`` (None: all columns), under their own names.

    :param raw_json: leave JSON columns as the stored text, to be embedded in a reply without parsing and encoding it
    :raises ValueError: the table has no column of that name
    """
    return _columns(table, None if names is None else tuple(names), raw_json)


@functools.lru_cache(maxsize=256)
def _columns(table: sa.Table, names: tuple[str, ...] | None, raw_json: bool) -> tuple[Any, ...]:
    if names is None and not raw_json:
        return (table,)
    wanted = tuple(table.c.keys()) if names is None else names
    unknown = [name for name in wanted if name not in table.c]
    if unknown:
        raise ValueError(f"table {table.name} has no column {', '.join(unknown)}")
    return tuple(_as_text(table.c[name]) if raw_json and isinstance(table.c[name].type, Json) else table.c[name]
                 for name in wanted)


def _as_text(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    return sa.type_coerce(column, sa.Text).label(column.name)
