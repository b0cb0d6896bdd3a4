"""Errors of the database: violated constraints become the service's errors.

Rows are inserted without a check before; the constraint decides. After a violation, PostgreSQL refuses every further
statement of the transaction, so the message can contain only what the caller already has, and the transaction is over.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.exceptions import IronicRulesError

#: Creates the error for a violation, from the offending value if the database reports it (SQLite does not).
MakeError = Callable[[str | None], IronicRulesError]

#: Errors that are raised if the database is temporarily unavailable or overloaded.
DATABASE_AWAY = (db_exc.DBConnectionError, db_exc.DBDeadlock, sa.exc.TimeoutError)
#: Errors of databases that cannot write now: texts of SQLite, numbers of MariaDB, classes of SQLSTATE of PostgreSQL.
_SQLITE_REFUSALS = ("database or disk is full", "disk I/O error", "attempt to write a readonly database")
_MARIADB_REFUSALS = frozenset({1021, 1041, 1114, 1290, 1836})
_POSTGRESQL_LATER = ("starting up", "shutting down", "recovery", "too many", "remaining connection slots")
_POSTGRESQL_REFUSALS = ("53", "25006")
#: The user lacks a right.
_MARIADB_DENIED = frozenset({1044, 1142, 1143, 1227})
_POSTGRESQL_DENIED = "42501"
#: A table, column, key or constraint exists already, or does not exist any more.
_MARIADB_DONE_BEFORE = frozenset({1050, 1051, 1060, 1061, 1091, 1826})
#: The server has ended the connection.
_POSTGRESQL_ENDED = ("08", "57P", "25P03")
#: Statements that were cancelled, and waits for locks.
_MARIADB_TOO_LONG = frozenset({1205, 1969, 3024})
_POSTGRESQL_TOO_LONG = ("57014", "55P03")


class DatabaseFull(db_exc.DBConnectionError):  # type: ignore[misc]
    """The database cannot write: its disk is full or read-only. Callers treat it like an unavailable database."""


class DatabaseBusy(db_exc.DBConnectionError):  # type: ignore[misc]
    """A statement or a wait for a lock has taken too long. Callers treat it like an unavailable database."""


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Raise :class:`DatabaseFull` for the errors of a database that temporarily cannot write.

    Raise :class:`DatabaseBusy` for what took too long: waiting once more, as after a deadlock, would take longer still.
    Also raise ``DBConnectionError`` where oslo.db does not: when PostgreSQL cannot be reached, or ends a connection
    while that is being prepared.
    """
    try:
        yield
    except (sa.exc.DBAPIError, db_exc.DBError) as error:
        if _refuses_to_write(error):
            raise DatabaseFull(error) from error
        if _took_too_long(error):
            raise DatabaseBusy(error) from error
        if _has_no_connection(error):
            raise db_exc.DBConnectionError(error) from error
        raise


def _has_no_connection(error: Exception) -> bool:
    original = _original(error)
    if not type(original).__module__.startswith("psycopg"):
        return False
    if (state := getattr(original, "sqlstate", None)) is not None:
        return str(state).startswith(_POSTGRESQL_ENDED)
    # psycopg sets no SQLSTATE if it cannot connect.
    if not isinstance(getattr(error, "inner_exception", None) or error, sa.exc.OperationalError):
        return False
    # Not for errors that a retry does not solve, such as a wrong password.
    return "FATAL:" not in str(original) or any(text in str(original) for text in _POSTGRESQL_LATER)


def _original(error: Exception) -> Any:
    """Return the driver's error."""
    # oslo.db wraps the errors of statements, but not those of COMMIT.
    wrapped = getattr(error, "inner_exception", None) or error
    return getattr(wrapped, "orig", None)


def _took_too_long(error: Exception) -> bool:
    original = _original(error)
    if isinstance(original, sqlite3.Error):
        return is_busy(original)
    number = _number(original)
    return getattr(original, "sqlstate", None) in _POSTGRESQL_TOO_LONG if number is None else (
        number in _MARIADB_TOO_LONG)


def denial(error: Exception) -> str | None:
    """Return the server's text, of one line, if it refuses a statement because the user lacks a right."""
    original = _original(error)
    number = _number(original)
    if number is not None:
        return str(original.args[-1]) if number in _MARIADB_DENIED else None
    if getattr(original, "sqlstate", None) != _POSTGRESQL_DENIED:
        return None
    return str(original).partition("\n")[0]


def done_before(error: Exception) -> str | None:
    """Return the server's text if a statement of MariaDB or MySQL changes a schema that has been changed so before."""
    original = _original(error)
    return str(original.args[-1]) if _number(original) in _MARIADB_DONE_BEFORE else None


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether SQLite has waited for another process or thread that writes, longer than it may."""
    # Errors of the module itself have no code. The first byte is the kind, of which there are several.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _number(original: Any) -> int | None:
    """Return the number of an error of MariaDB. Its driver may have states of SQL, too, which say less."""
    number = original.args[0] if original is not None and original.args else None
    return number if isinstance(number, int) else None


def _refuses_to_write(error: Exception) -> bool:
    original = _original(error)
    if original is None:
        return False
    if (number := _number(original)) is not None:
        return number in _MARIADB_REFUSALS
    if (state := getattr(original, "sqlstate", None)) is not None:
        return str(state).startswith(_POSTGRESQL_REFUSALS)
    return type(original).__module__.startswith("sqlite3") and any(
        text in str(original) for text in _SQLITE_REFUSALS)


@contextlib.contextmanager
def duplicates(**by_column: MakeError) -> Iterator[None]:
    """Raise ``by_column[column]`` for a duplicate value of that column; ``other`` is for any other column.

    SQLite reports the columns, MariaDB and PostgreSQL the key, from whose name (``uniq_nodes0name``) oslo.db gets them.
    """
    try:
        yield
    except db_exc.DBDuplicateEntry as error:
        make = next((by_column[column] for column in error.columns if column in by_column), by_column.get("other"))
        if make is None:
            raise
        raise make(error.value) from error


@contextlib.contextmanager
def references(make: Callable[[str | None], IronicRulesError]) -> Iterator[None]:
    """Raise ``make(column)`` for a row that refers to a missing one, or that others refer to.

    ``column`` is the referring column, None if the database does not report it (SQLite, where queries are still
    possible).
    """
    try:
        yield
    except db_exc.DBReferenceError as error:
        raise make(error.key) from error
