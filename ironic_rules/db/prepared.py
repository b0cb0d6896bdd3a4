"""Statements that most requests execute: executed without SQLAlchemy.

For a small query, SQLAlchemy needs far more processor time than SQLite, which is in the process; with a server it still
needs a good part of the time. While anything listens to the engine or logs its statements, SQLAlchemy executes all.

``exec_driver_sql()`` would need no private name of SQLAlchemy, but makes a new description of the columns each time,
which costs most of the gain. Where a private name is missing, SQLAlchemy executes everything.

A failed statement on SQLite is executed once more by SQLAlchemy: it meets the same error, and oslo.db converts that. On
a server an error can end the transaction: SQLAlchemy gets the error itself.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import result_tuple

from ironic_rules.db.projection import Row
from ironic_rules.db.types import Json
from ironic_rules.models.documents import JSONObject

_Convert = Callable[[Any], Any] | None
#: The drivers whose statements are executed so.
_DRIVERS = ("pysqlite", "pymysql", "psycopg")
#: The events of what they execute.
_EVENTS = ("before_execute", "after_execute", "before_cursor_execute", "after_cursor_execute")
#: Number of items of a list up to which the text of a query is kept: the interfaces of a large machine.
_LONGEST_LIST = 64
#: Number of texts of a statement that are kept.
_MOST_TEXTS = 200


class _Parameters(NamedTuple):
    """The text of a statement, and how values become its parameters."""

    text: str
    #: names in order, and what converts the values
    names: list[tuple[str, _Convert]]
    #: values that belong to the statement
    fixed: JSONObject

    def of(self, parameters: Mapping[str, object]) -> list[Any]:
        """Return the parameters in order."""
        every = {**self.fixed, **parameters} if self.fixed else parameters
        values: list[Any] = []
        for name, convert in self.names:
            value = every[name]
            if value.__class__ is list and convert is None:
                values += value
            else:
                values.append(value if convert is None else convert(value))
        return values


def _parameters(compiled: Any, text: str, dialect: sa.Dialect) -> _Parameters:
    binds = {name: bind for bind, name in compiled.bind_names.items()}
    return _Parameters(
        text, [(name, binds[name].type.dialect_impl(dialect).bind_processor(dialect)) for name in compiled.positiontup],
        {name: compiled.params[name] for name, bind in binds.items() if not bind.required})


def _positional(dialect: sa.Dialect) -> sa.Dialect:
    """Return the dialect for parameters in order, as all drivers take them: that is less work than by name."""
    if not dialect.positional:
        dialect = copy.copy(dialect)
        dialect.positional, dialect.paramstyle = True, "format"
    return dialect


def _is_direct(conn: sa.Connection) -> bool:
    # Where SQLAlchemy has no such attributes, it executes everything.
    if conn.dialect.driver not in _DRIVERS or getattr(conn, "_echo", True) or not hasattr(
            conn, "_handle_dbapi_exception"):
        return False
    # On servers, oslo.db listens to other events.
    return not any(getattr(target, "_has_events", True) for target in (conn, conn.engine)) or not any(
        getattr(conn.dispatch, name) for name in _EVENTS)


@contextlib.contextmanager
def _repeatable(connection: Any) -> Iterator[None]:
    """Suppress an error after which SQLAlchemy can execute the statement again.

    :raises OperationalError: the transaction has ended with it, as when the disk is full: what follows would be
        written without what was before
    """
    was_in_transaction = connection.in_transaction
    try:
        yield
    except Exception as exc:  # of SQLite, or of a value's conversion: SQLAlchemy meets the same
        if was_in_transaction and not connection.in_transaction:
            raise sa.exc.OperationalError(None, None, exc) from exc


@contextlib.contextmanager
def _executed(conn: sa.Connection, text: str, values: Sequence[object], *, many: bool = False) -> Iterator[Any]:
    """Yield the cursor of a statement that a server has executed.

    :param many: ``values`` are those of several rows
    :raises DBError: as SQLAlchemy and oslo.db make it of the driver's error; a lost connection is out of the pool then
    """
    dialect: Any = conn.dialect
    connection: Any = conn.connection
    cursor: Any = None
    try:
        cursor = connection.cursor()
        (dialect.do_executemany if many else dialect.do_execute)(cursor, text, values)
        yield cursor
    except BaseException as exc:  # also what ends the process: the connection is in the middle of something
        of_driver = isinstance(exc, dialect.loaded_dbapi.Error)
        conn._handle_dbapi_exception(exc, text if of_driver else None, values, cursor, None)
        raise
    finally:
        if cursor is not None:
            cursor.close()


class Prepared:
    """A query. The values of expanding parameters are lists of what the driver takes as it is."""

    def __init__(self, query: sa.Select[Any]) -> None:
        self.query = query
        selected = query.selected_columns
        self._types = [column.type for column in selected]
        self._make: Callable[[Sequence[Any]], Row] = result_tuple([column.name for column in selected])
        #: by the database, and the lengths of the lists; with what converts columns, and their places
        self._plans: dict[tuple[str, tuple[int, ...]], tuple[_Parameters, list[tuple[int, Callable[[Any], Any]]]]] = {}

    def all(self, conn: sa.Connection, parameters: Mapping[str, object]) -> Sequence[Row]:
        """Return all rows."""
        lengths = tuple(len(value) for value in parameters.values() if value.__class__ is list)
        if max(lengths, default=0) <= _LONGEST_LIST and _is_direct(conn):
            if conn.dialect.name == "sqlite":
                with _repeatable(conn.connection.dbapi_connection):
                    return self._rows(conn, parameters, lengths)
            elif (rows := self._rows_of_server(conn, parameters, lengths)) is not None:
                return rows
        return conn.execute(self.query, parameters).all()

    @functools.cached_property
    def _locking(self) -> Prepared:
        return Prepared(self.query.with_for_update())

    def one_or_none(self, conn: sa.Connection, parameters: Mapping[str, object], *, for_update: bool = False) -> Any:
        """Return the only row, None if there is none.

        :param for_update: lock the row until the transaction ends, which SQLite does with the whole database
        :raises MultipleResultsFound: there are several
        """
        if for_update and conn.dialect.name != "sqlite":
            return self._locking.one_or_none(conn, parameters)
        rows = self.all(conn, parameters)
        if len(rows) > 1:
            raise sa.exc.MultipleResultsFound(f"{len(rows)} rows were found when one or none was required")
        return rows[0] if rows else None

    def one(self, conn: sa.Connection, parameters: Mapping[str, object]) -> Any:
        """Return the only row.

        :raises NoResultFound, MultipleResultsFound: there is none, or are several
        """
        row = self.one_or_none(conn, parameters)
        if row is None:
            raise sa.exc.NoResultFound("No row was found when one was required")
        return row

    def _rows(self, conn: sa.Connection, parameters: Mapping[str, object], lengths: tuple[int, ...]) -> list[Row]:
        prepared, converters = self._plan(conn.dialect, parameters, lengths)
        connection: Any = conn.connection.dbapi_connection
        return self._converted(connection.execute(prepared.text, prepared.of(parameters)).fetchall(), converters)

    def _rows_of_server(self, conn: sa.Connection, parameters: Mapping[str, object],
                        lengths: tuple[int, ...]) -> list[Row] | None:
        try:
            prepared, converters = self._plan(conn.dialect, parameters, lengths)
            values = prepared.of(parameters)
        except Exception:  # noqa: BLE001  (of a value's conversion: SQLAlchemy meets the same)
            return None
        with _executed(conn, prepared.text, values) as cursor:
            rows = cursor.fetchall()
        return self._converted(rows, converters)

    def _converted(self, rows: Sequence[Sequence[Any]],
                   converters: Sequence[tuple[int, Callable[[Any], Any]]]) -> list[Row]:
        converted = []
        for row in rows:
            columns = list(row)
            for place, convert in converters:
                columns[place] = convert(columns[place])
            converted.append(self._make(columns))
        return converted

    def _plan(self, dialect: sa.Dialect, parameters: Mapping[str, object],
              lengths: tuple[int, ...]) -> tuple[_Parameters, list[tuple[int, Callable[[Any], Any]]]]:
        key = dialect.name, lengths
        if (existing := self._plans.get(key)) is not None:
            return existing
        dialect = _positional(dialect)
        compiled: Any = self.query.compile(dialect=dialect)
        text = compiled.construct_expanded_state(parameters).statement
        converters = (kind.dialect_impl(dialect).result_processor(dialect, None) for kind in self._types)
        plan = self._plans[key] = _parameters(compiled, text, dialect), [
            (place, convert) for place, convert in enumerate(converters) if convert is not None]
        return plan


class _Done(NamedTuple):
    """The result of a change: the number of rows, and the key of a new one."""

    rows: int
    key: Any


class PreparedChange:
    """An INSERT or UPDATE. The values of columns are passed as parameters with the names of the columns."""

    def __init__(self, statement: sa.Insert | sa.Update) -> None:
        self._statement = statement
        #: by the database, whether for several rows, and the names of the parameters; None: SQLAlchemy executes it
        self._plans: dict[tuple[str, bool, tuple[str, ...]], _Parameters | None] = {}

    def matched(self, conn: sa.Connection, parameters: Mapping[str, object]) -> int:
        """Return the number of rows."""
        result = self._execute(conn, parameters)
        return int(conn.execute(self._statement, parameters).rowcount if result is None else result.rows)

    def inserted(self, conn: sa.Connection, parameters: Mapping[str, object]) -> int:
        """Return the key of the new row."""
        result = self._execute(conn, parameters)
        if result is not None:
            return int(result.key)
        key: Any = conn.execute(self._statement, parameters).inserted_primary_key
        return int(key[0])

    def insert_all(self, conn: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows with the same columns."""
        if not rows:
            return
        if conn.dialect.name != "sqlite":
            if self._execute_on_server(conn, rows) is None:
                conn.execute(self._statement, rows)
            return
        for place, row in enumerate(rows):
            # One by one: rows before one that fails are there, and must not be inserted once more.
            if self._execute(conn, row) is None:
                conn.execute(self._statement, rows[place:])
                break

    def _execute(self, conn: sa.Connection, parameters: Mapping[str, object]) -> _Done | None:
        """Execute the statement; None: SQLAlchemy has to."""
        if conn.dialect.name != "sqlite":
            return self._execute_on_server(conn, [parameters])
        if not _is_direct(conn):
            return None
        connection: Any = conn.connection.dbapi_connection
        with _repeatable(connection):
            prepared = self._plan(conn.dialect, tuple(parameters))
            if prepared is not None:
                cursor = connection.execute(prepared.text, prepared.of(parameters))
                return _Done(cursor.rowcount, cursor.lastrowid)
        return None

    def _execute_on_server(self, conn: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> _Done | None:
        """Execute the statement with each of these parameters; None: SQLAlchemy has to."""
        if not _is_direct(conn):
            return None
        is_one = len(rows) == 1
        try:
            prepared = self._plan(conn.dialect, tuple(rows[0]), many=not is_one)
            values = [] if prepared is None else [prepared.of(row) for row in rows]
        except Exception:  # noqa: BLE001  (of a value's conversion: SQLAlchemy meets the same)
            return None
        if prepared is None:
            return None
        with _executed(conn, prepared.text, values[0] if is_one else values, many=not is_one) as cursor:
            # PostgreSQL returns the key as a row.
            return _Done(cursor.rowcount, cursor.fetchone()[0] if is_one and cursor.description else (
                getattr(cursor, "lastrowid", None)))

    def _plan(self, dialect: sa.Dialect, names: tuple[str, ...], *, many: bool = False) -> _Parameters | None:
        key = dialect.name, many, names
        if key in self._plans:
            return self._plans[key]
        dialect = _positional(dialect)
        compiled: Any = self._statement.compile(dialect=dialect, column_keys=sorted(names), for_executemany=many)
        text = str(compiled)
        defaults = [*compiled.insert_prefetch, *compiled.update_prefetch]
        is_known = "POSTCOMPILE" not in text and all(
            column.default.is_scalar or isinstance(column.type, Json) for column in defaults)
        if len(self._plans) >= _MOST_TEXTS:
            self._plans.clear()
        plan = self._plans[key] = _parameters(compiled, text, dialect) if is_known else None
        if plan is not None:
            # Defaults of JSON are empty objects and lists, made by functions that SQLAlchemy calls with a context.
            plan.fixed.update((column.key, column.default.arg if column.default.is_scalar else column.default.arg(None))
                              for column in defaults)
        return plan
