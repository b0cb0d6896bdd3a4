"""Whether a text contains another one, character by character: the same on every database, which LIKE is not."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ironic_rules.db import sqlite


def contains(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Return the condition for rows whose text contains ``text``."""
    return _Contains(column, sa.literal(text))


def contains_without_case(column: sa.Column[Any], text: str) -> sa.ColumnElement[bool]:
    """Return the condition for rows whose text contains ``text`` if both are in lower case."""
    return _Contains(_Lower(column), _Lower(sa.literal(text)))


class _Contains(FunctionElement[bool]):
    """Whether the first text contains the second one, with case."""

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
