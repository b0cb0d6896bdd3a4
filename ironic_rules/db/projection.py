"""The columns that a query returns, and their form."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import result_tuple

from ironic_rules.db.types import Json, UTCDateTime

#: A row of any columns; an attribute is a column.
Row: TypeAlias = "sa.Row[*tuple[Any, ...]]"
#: Types that JSON lacks, and what makes a value of its form there.
_FORMS: dict[type[Any], Callable[[Any], Any]] = {
    sa.Boolean: bool, Json: orjson.loads, UTCDateTime: lambda text: datetime.datetime.fromisoformat(f"{text}+00:00")}


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
    selected = tuple(table.c.keys()) if names is None else names
    unknown = [name for name in selected if name not in table.c]
    if unknown:
        raise ValueError(f"table {table.name} has no column {', '.join(unknown)}")
    return tuple(_as_text(table.c[name]) if raw_json and isinstance(table.c[name].type, Json) else table.c[name]
                 for name in selected)


def _as_text(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    return sa.type_coerce(column, sa.Text).label(column.name)


def rows_of(conn: sa.Connection, query: sa.Select[Any]) -> list[Row]:
    """Return the rows of a page of a list.

    PyMySQL reads each value in Python, 60,000 for a page of nodes in detail: of those that MariaDB and MySQL put
    together, it reads one for each row.
    """
    if conn.dialect.driver == "pymysql":
        columns = list(query.selected_columns)
        texts = conn.scalars(query.with_only_columns(
            sa.func.json_array(*columns, type_=sa.Text), maintain_column_froms=True)).all()
        # NULL instead of more than max_allowed_packet.
        if None not in texts:
            return _unpacked(texts, columns)
    return list(conn.execute(query).all())


def _unpacked(texts: Sequence[str], columns: Sequence[sa.ColumnElement[Any]]) -> list[Row]:
    """Return the rows of which the texts are the values as JSON."""
    columns_of_json = zip(*orjson.loads(f"[{','.join(texts)}]"), strict=True)
    values = [_converted(column.type, parsed) for column, parsed in zip(columns, columns_of_json, strict=False)]
    make = result_tuple([column.name for column in columns])
    return [make(row) for row in zip(*values, strict=True)]


def _converted(kind: sa.types.TypeEngine[Any], values: Sequence[object]) -> Sequence[Any]:
    """Return the values of a column whose type JSON lacks."""
    for form, convert in _FORMS.items():
        if isinstance(kind, form):
            return [None if value is None else convert(value) for value in values]
    return values
