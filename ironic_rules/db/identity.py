"""Identification of rows by name or UUID, and the comparison of texts character by character.

Clients may send a UUID in any form; it is compared in lower case with hyphens. Unlike LIKE, the search for a part of a
text is the same on every database.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ironic_rules.db import sqlite
from ironic_rules.text import is_storable


def canonical(ident: str) -> str | None:
    """Return the UUID ``ident`` in canonical form, None if it is not a UUID (then it may be a name)."""
    return str(uuid.UUID(ident)) if uuidutils.is_uuid_like(ident) else None


def has_uuid(table: sa.Table, ident: str) -> sa.ColumnElement[bool]:
    """Return the condition for the row with the UUID ``ident``; it matches no row if that is not a UUID."""
    return table.c.uuid == canonical(ident)


def is_called(table: sa.Table, ident: str) -> sa.ColumnElement[bool]:
    """Return the condition for the row with the UUID or name ``ident``."""
    column, value = searched(ident)
    return sa.false() if value is None else table.c[column] == value


def searched(ident: str) -> tuple[str, str | None]:
    """Return the column that has the UUID or name ``ident``, and its value there; None if no row can have it."""
    uuid = canonical(ident)
    if uuid is not None:
        return "uuid", uuid
    # PostgreSQL refuses the whole query for a character that it cannot store.
    return "name", ident if is_storable(ident) else None


def assigned(values: Mapping[str, Any]) -> str:
    """Return the UUID in ``values`` in canonical form, a new random one if there is none."""
    uuid = values.get("uuid")
    return uuidutils.generate_uuid() if uuid is None else canonical(uuid) or uuid


def contains(column: sa.ColumnElement[Any], text: str) -> sa.ColumnElement[bool]:
    """Return the condition for rows whose text contains ``text``."""
    return _Contains(column, sa.literal(text))


def contains_without_case(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Return the condition for rows whose text contains ``text`` if both are in lower case."""
    return _Contains(_Lower(column), _Lower(sa.literal(text)))


class _Contains(FunctionElement[bool]):
    """The condition that the first text contains the second one, with case."""

    inherit_cache = True
    type = sa.Boolean()


@compiles(_Contains)
def _instr(element: _Contains, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"instr({compiler.process(element.clauses, **kwargs)}) > 0"


@compiles(_Contains, "postgresql")
def _strpos(element: _Contains, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **kwargs)}) > 0"


class _Lower(FunctionElement[str]):
    """A text in lower case. SQLite's ``lower`` knows ASCII letters only."""

    inherit_cache = True
    type = sa.Text()


@compiles(_Lower)
def _lower(element: _Lower, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"lower({compiler.process(element.clauses, **kwargs)})"


@compiles(_Lower, "sqlite")
def _unicode_lower(element: _Lower, compiler: SQLCompiler, **kwargs: Any) -> str:
    return f"{sqlite.UNICODE_LOWER}({compiler.process(element.clauses, **kwargs)})"
