"""The SQL expressions of the rows of a table as JSON texts, in the languages of the databases.

All write the text that orjson does, but MariaDB \\u001F for \\u001f. SQLite has a function for a whole object. On
servers the text is put together from the names, as literals with what is between the values, and the text of each
value: their own functions for objects write spaces, and that for rows takes PostgreSQL half as long again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.types import UTCDateTime

#: An empty name and 0 are a hole. No other member has this text: in values, quotes are escaped.
HOLE = '"":0'
#: Between stored JSON texts, in which control characters are escaped.
BETWEEN = "\x01"
#: Arguments of one call: the least that databases allow by default.
_MOST_ARGUMENTS = {"sqlite": 126, "mysql": 100, "postgresql": 100}
#: The members of an object: a name, and the column of its value, or None for a hole.
Members = Sequence[tuple[str, sa.Column[Any] | None]]

#: The expression of a value as JSON, by its type: for SQLite as an argument of json_object(), for servers as text.
_VALUES = {
    "sqlite": {
        sa.Boolean: "CASE {} WHEN 1 THEN json('true') WHEN 0 THEN json('false') END",
        # It is stored as 2026-11-26 08:40:56.555726.
        UTCDateTime: "replace(replace({},' ','T'),'.000000','')||'+00:00'",
        sa.String: "{}",
        sa.Integer: "{}"},
    "mysql": {
        sa.Boolean: "CASE {} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END",
        UTCDateTime: """CONCAT('"',REPLACE(REPLACE({},' ','T'),'.000000',''),'+00:00"')""",
        sa.String: "JSON_QUOTE({})",
        sa.Integer: "{}"},
    "postgresql": {
        sa.Boolean: "{}::text",
        UTCDateTime: """'"'||replace(to_char({},'YYYY-MM-DD"T"HH24:MI:SS.US'),'.000000','')||'+00:00"'""",
        sa.String: "to_json({})::text",
        sa.Integer: "{}::text"},
}


def members(shown: Members, dialect: str) -> str:
    """Return the expression of an object.

    :param dialect: ``sqlite``, ``mysql`` or ``postgresql``
    :raises TypeError: there is no JSON of such a column
    """
    if dialect == "sqlite":
        return f"CAST({_object_of_sqlite(shown)} AS BLOB)"
    parts: list[str] = []
    literal = "{"
    for name, column in shown:
        if column is None:
            literal += HOLE
        else:
            parts += f"'{literal}\"{name}\":'", _text(column, dialect)
            literal = ""
        literal += ","
    return _joined([*parts, f"'{literal[:-1]}}}'"], dialect)


def beside(stored: Iterable[sa.Column[Any]], needed: Iterable[sa.Column[Any]], dialect: str) -> str:
    """Return the expression of the stored texts and, as a list, of the values of further columns."""
    texts = [str(column) for column in stored]
    if dialect == "sqlite":
        form = BETWEEN.join(["%s"] * (len(texts) + 1))
        values = ",".join([*texts, f"json_array({','.join(map(str, needed))})"])
        return f"CAST(printf('{form}',{values}) AS BLOB)"
    parts = [part for text in texts for part in (text, f"'{BETWEEN}'")]
    for place, column in enumerate(needed):
        parts += "','" if place else "'['", _text(column, dialect)
    return _joined([*parts, "']'"], dialect)


def _object_of_sqlite(shown: Members) -> str:
    found = ["'',0" if column is None else f"'{name}',{_value(column, 'sqlite')}" for name, column in shown]
    calls = [f"json_object({','.join(some)})" for some in _batches(found, _MOST_ARGUMENTS["sqlite"] // 2)]
    if len(calls) == 1:
        return calls[0]
    # No value ends or begins with a brace.
    inner = "||','||".join(f"trim({call},'{{}}')" for call in calls)
    return f"'{{'||{inner}||'}}'"


def _value(column: sa.Column[Any], dialect: str) -> str:
    for kind, form in _VALUES[dialect].items():
        if isinstance(column.type, kind):
            return form.format(column)
    raise TypeError(f"{column} is a {column.type!r}")


def _text(column: sa.Column[Any], dialect: str) -> str:
    text = _value(column, dialect)
    return f"COALESCE({text},'null')" if column.nullable else text


def _joined(parts: Sequence[str], dialect: str) -> str:
    """Return the expression of the texts of a server one after the other: bytes on MariaDB and MySQL."""
    calls = [f"concat({','.join(some)})" for some in _batches(parts, _MOST_ARGUMENTS[dialect])]
    text = calls[0] if len(calls) == 1 else f"concat({','.join(calls)})"
    # The driver would decode the text.
    return f"CAST({text} AS BINARY)" if dialect == "mysql" else text


def _batches(parts: Sequence[str], most: int) -> list[Sequence[str]]:
    return [parts[first:first + most] for first in range(0, len(parts), most)]
