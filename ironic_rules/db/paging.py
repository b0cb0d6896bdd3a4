"""Pages of a collection: sorted, and continued after the marker, in one query whose cost depends on the page only.

The order is (sort key, unique column), both in the same direction. NULL sorts before every value, and text sorts byte
by byte, on every database, so that following the markers returns each row exactly once everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ironic_rules.db import identity
from ironic_rules.db.projection import Row
from ironic_rules.db.types import Json
from ironic_rules.exceptions import Invalid, MarkerNotFound, Problem

#: Columns that only the service itself may read; sorting by them would reveal their order.
HIDDEN = frozenset({"agent_token_hash"})


@dataclass(frozen=True, slots=True)
class Page:
    """The requested part of a collection: ``limit`` rows after the one whose UUID is ``marker``.

    ``sort_key`` names a column (``id`` is the order of creation); ``sort_dir`` is ``asc`` or ``desc``.
    """

    limit: int
    marker: str | None = None
    sort_key: str = "id"
    sort_dir: str = "asc"


class _Bytewise(FunctionElement[str]):
    """A text column in the order of its bytes."""

    inherit_cache = True
    type = sa.String()


@compiles(_Bytewise)
def _plain(element: _Bytewise, compiler: SQLCompiler, **kwargs: Any) -> str:
    return compiler.process(element.clauses, **kwargs)


# By default it sorts by the locale of the database. SQLite and utf8mb4_bin sort by bytes anyway.
@compiles(_Bytewise, "postgresql")
def _collated(element: _Bytewise, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f'{compiler.process(element.clauses, **kwargs)} COLLATE "C"'


class _Ascending(FunctionElement[Any]):
    """A key of the order, NULL first, in a form that an index can serve."""

    inherit_cache = True


class _Descending(FunctionElement[Any]):
    """The reverse order: NULL last."""

    inherit_cache = True


@compiles(_Ascending)
def _nulls_are_least(element: _Ascending, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"{compiler.process(element.clauses, **kwargs)} ASC"


@compiles(_Descending)
def _nulls_are_still_least(element: _Descending, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"{compiler.process(element.clauses, **kwargs)} DESC"


# By default NULL is greater than every value.
@compiles(_Ascending, "postgresql")
def _nulls_first(element: _Ascending, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"{compiler.process(element.clauses, **kwargs)} ASC NULLS FIRST"


@compiles(_Descending, "postgresql")
def _nulls_last(element: _Descending, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"{compiler.process(element.clauses, **kwargs)} DESC NULLS LAST"


@functools.cache
def sort_keys(table: sa.Table) -> frozenset[str]:
    """Return the columns by which a collection may be sorted: all but JSON and hidden ones."""
    return frozenset(c.name for c in table.c if not isinstance(c.type, Json)) - HIDDEN


def marker_row(conn: sa.Connection, table: sa.Table, page: Page, unique: str = "id",
               among: Iterable[sa.ColumnElement[bool]] = ()) -> Row | None:
    """Return the marker's position in the order (sort key, then ``unique``), None without a marker.

    :param among: conditions for the rows that the caller may see: what follows another one would tell its values
    :raises MarkerNotFound: 404, none of these rows has the marker;  Invalid: 400, the sort key is invalid
    """
    column = _sort_column(table, page)
    if page.marker is None:
        return None
    query = sa.select(column.label("value"), table.c[unique].label("unique"))
    row = conn.execute(query.where(identity.has_uuid(table, page.marker), *among)).one_or_none()
    if row is None:
        raise MarkerNotFound(marker=page.marker)
    return row


def paginate(query: sa.Select[Any], table: sa.Table, page: Page, marker_row: Row | None,
             unique: str = "id") -> sa.Select[Any]:
    """Return ``query`` sorted, limited and starting after ``marker_row`` (from the function of that name).

    :raises Invalid: 400, the sort key or direction is invalid
    """
    column, last = _sort_column(table, page), table.c[unique]
    ascending = page.sort_dir == "asc"
    key = _Bytewise(column) if isinstance(column.type, (sa.String, sa.Text)) else column
    order: list[sa.ColumnElement[Any]] = [key, last] if column is not last else [last]
    if marker_row is not None:
        query = query.where(_after(column, key, last, marker_row, ascending))
    return query.order_by(*(_directed(part, ascending, column.nullable and part is key) for part in order)).limit(
        page.limit)


def _directed(part: sa.ColumnElement[Any], ascending: bool, nullable: bool | None) -> sa.ColumnElement[Any]:
    if nullable:
        return _Ascending(part) if ascending else _Descending(part)
    return part.asc() if ascending else part.desc()


def _sort_column(table: sa.Table, page: Page) -> sa.Column[Any]:
    if page.sort_dir not in ("asc", "desc"):
        raise Invalid(problems=[Problem("sort_dir", "expected asc or desc")])
    check_sort_key(page, sort_keys(table))
    return table.c[page.sort_key]


def check_sort_key(page: Page, keys: Collection[str]) -> None:
    """Check that a collection can be sorted by the key of the page.

    :raises Invalid: 400
    """
    if page.sort_key not in keys:
        raise Invalid(problems=[Problem("sort_key", f'"{page.sort_key}" is an invalid field for sorting')])


def _after(column: sa.Column[Any], key: sa.ColumnElement[Any], last: sa.Column[Any], marker: Row,
           ascending: bool) -> sa.ColumnElement[bool]:
    # literal(), because SQLAlchemy refuses < and > with the constants True and False.
    value, unique = sa.literal(marker.value, column.type), sa.literal(marker.unique, last.type)
    beyond = last > unique if ascending else last < unique
    if column is last:
        return beyond
    if marker.value is None:
        same = sa.and_(column.is_(None), beyond)
        return sa.or_(same, column.is_not(None)) if ascending else same
    # The first half is for the index.
    reached, farther = (key >= value, key > value) if ascending else (key <= value, key < value)
    place = sa.and_(reached, sa.or_(farther, beyond))
    return place if ascending or not column.nullable else sa.or_(place, column.is_(None))
