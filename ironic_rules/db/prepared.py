"""Statements that most requests execute: on SQLite that is done without SQLAlchemy.

SQLite is in the process, and a small query takes it 3 us of processor time; SQLAlchemy takes 35 us more to have it
executed, and 80 us or more if other code was in the caches. Of an inspection that was a third. On servers, where a
statement is a round trip, and while anything listens to the engine or logs its statements, SQLAlchemy executes all.

Whatever fails is executed once more by SQLAlchemy: it meets the same error, and oslo.db converts that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import result_tuple

from ironic_rules.db.projection import Row
from ironic_rules.db.types import Json

_Convert = Callable[[Any], Any] | None
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
    fixed: dict[str, Any]

    def of(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the parameters in order."""
        known = {**self.fixed, **given} if self.fixed else given
        values: list[Any] = []
        for name, convert in self.names:
            value = known[name]
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


def _is_direct(conn: sa.Connection) -> bool:
    # Where SQLAlchemy has no such attributes, it executes everything.
    return conn.dialect.name == "sqlite" and not getattr(conn, "_echo", True) and not any(
        getattr(each, "_has_events", True) for each in (conn, conn.engine))


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


class Prepared:
    """A query. The values of expanding parameters are lists of what SQLite takes as it is."""

    def __init__(self, query: sa.Select[Any]) -> None:
        self.query = query
        selected = query.selected_columns
        self._types = [column.type for column in selected]
        self._make: Callable[[Sequence[Any]], Row] = result_tuple([column.name for column in selected])
        #: by the lengths of the lists; with what converts columns, and their places
        self._plans: dict[tuple[int, ...], tuple[_Parameters, list[tuple[int, Callable[[Any], Any]]]]] = {}

    def all(self, conn: sa.Connection, parameters: Mapping[str, Any]) -> Sequence[Row]:
        """Return all rows."""
        lengths = tuple(len(value) for value in parameters.values() if value.__class__ is list)
        if _is_direct(conn) and max(lengths, default=0) <= _LONGEST_LIST:
            with _repeatable(conn.connection.dbapi_connection):
                return self._rows(conn, parameters, lengths)
        return conn.execute(self.query, parameters).all()

    def one_or_none(self, conn: sa.Connection, parameters: Mapping[str, Any], *, for_update: bool = False) -> Any:
        """Return the only row, None if there is none.

        :param for_update: lock the row until the transaction ends, which SQLite does with the whole database
        :raises MultipleResultsFound: there are several
        """
        if for_update and conn.dialect.name != "sqlite":
            return conn.execute(self.query.with_for_update(), parameters).one_or_none()
        rows = self.all(conn, parameters)
        if len(rows) > 1:
            raise sa.exc.MultipleResultsFound(f"{len(rows)} rows were found when one or none was required")
        return rows[0] if rows else None

    def one(self, conn: sa.Connection, parameters: Mapping[str, Any]) -> Any:
        """Return the only row.

        :raises NoResultFound, MultipleResultsFound: there is none, or are several
        """
        row = self.one_or_none(conn, parameters)
        if row is None:
            raise sa.exc.NoResultFound("No row was found when one was required")
        return row

    def _rows(self, conn: sa.Connection, parameters: Mapping[str, Any], lengths: tuple[int, ...]) -> list[Row]:
        prepared, converted = self._plans.get(lengths) or self._plan(conn.dialect, parameters, lengths)
        connection: Any = conn.connection.dbapi_connection
        found = []
        for row in connection.execute(prepared.text, prepared.of(parameters)).fetchall():
            columns = list(row)
            for place, convert in converted:
                columns[place] = convert(columns[place])
            found.append(self._make(columns))
        return found

    def _plan(self, dialect: sa.Dialect, parameters: Mapping[str, Any], lengths: tuple[int, ...]) -> Any:
        compiled: Any = self.query.compile(dialect=dialect)
        text = compiled.construct_expanded_state(parameters).statement
        converters = (each.dialect_impl(dialect).result_processor(dialect, None) for each in self._types)
        plan = self._plans[lengths] = _parameters(compiled, text, dialect), [
            (place, convert) for place, convert in enumerate(converters) if convert is not None]
        return plan


class PreparedChange:
    """An INSERT or UPDATE. The values of columns are passed as parameters with the names of the columns."""

    def __init__(self, statement: sa.Insert | sa.Update) -> None:
        self._statement = statement
        #: by the names of the parameters; None: SQLAlchemy executes it
        self._plans: dict[tuple[str, ...], _Parameters | None] = {}

    def matched(self, conn: sa.Connection, parameters: Mapping[str, Any]) -> int:
        """Return the number of rows."""
        done = self._execute(conn, parameters) or conn.execute(self._statement, parameters)
        return int(done.rowcount)

    def inserted(self, conn: sa.Connection, parameters: Mapping[str, Any]) -> int:
        """Return the key of the new row."""
        cursor = self._execute(conn, parameters)
        if cursor is not None:
            return int(cursor.lastrowid)
        key: Any = conn.execute(self._statement, parameters).inserted_primary_key
        return int(key[0])

    def insert_all(self, conn: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows with the same columns."""
        for place, row in enumerate(rows):
            # One by one: rows before one that fails are there, and must not be inserted once more.
            if self._execute(conn, row) is None:
                conn.execute(self._statement, rows[place:])
                break

    def _execute(self, conn: sa.Connection, parameters: Mapping[str, Any]) -> Any:
        """Return the cursor; None: SQLAlchemy has to execute the statement."""
        if not _is_direct(conn):
            return None
        connection: Any = conn.connection.dbapi_connection
        with _repeatable(connection):
            names = tuple(parameters)
            prepared = self._plans[names] if names in self._plans else self._plan(conn.dialect, names)
            if prepared is not None:
                return connection.execute(prepared.text, prepared.of(parameters))
        return None

    def _plan(self, dialect: sa.Dialect, names: tuple[str, ...]) -> _Parameters | None:
        compiled: Any = self._statement.compile(dialect=dialect, column_keys=sorted(names))
        text = str(compiled)
        defaults = [*compiled.insert_prefetch, *compiled.update_prefetch]
        is_known = "POSTCOMPILE" not in text and all(
            column.default.is_scalar or isinstance(column.type, Json) for column in defaults)
        if len(self._plans) >= _MOST_TEXTS:
            self._plans.clear()
        plan = self._plans[names] = _parameters(compiled, text, dialect) if is_known else None
        if plan is not None:
            # Those of JSON are empty objects and lists, made by functions that SQLAlchemy calls with a context.
            plan.fixed.update((column.key, column.default.arg if column.default.is_scalar else column.default.arg(None))
                              for column in defaults)
        return plan
