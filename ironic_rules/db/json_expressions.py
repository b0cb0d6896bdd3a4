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
#: Of one call: SQLite allows 127 by default, PostgreSQL 100.
_MOST_ARGUMENTS = 100
#: The members of an object: a name, and the column of its value, or None for a hole.
Members = Sequence[tuple[str, sa.Column[Any] | None]]


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
    found = ["'',0" if column is None else f"'{name}',{_value_of_sqlite(column)}" for name, column in shown]
    calls = [f"json_object({','.join(some)})" for some in _batches(found, _MOST_ARGUMENTS // 2)]
    if len(calls) == 1:
        return calls[0]
    # No value ends or begins with a brace.
    inner = "||','||".join(f"trim({call},'{{}}')" for call in calls)
    return f"'{{'||{inner}||'}}'"


def _value_of_sqlite(column: sa.Column[Any]) -> str:
    """Return the expression of what json_object() writes as orjson does."""
    if isinstance(column.type, sa.Boolean):
        return f"CASE {column} WHEN 1 THEN json('true') WHEN 0 THEN json('false') END"
    if isinstance(column.type, UTCDateTime):
        # It is stored as 2026-11-26 08:40:56.555726.
        moment = f"replace(replace({column},' ','T'),'.000000','')||'+00:00'"
        return f"CASE WHEN {column} IS NOT NULL THEN {moment} END" if column.nullable else moment
    if isinstance(column.type, (sa.String, sa.Integer)):
        return str(column)
    raise TypeError(f"{column} is a {column.type!r}")


def _text(column: sa.Column[Any], dialect: str) -> str:
    """Return the expression of the JSON text of a value for a server."""
    mysql = dialect == "mysql"
    if isinstance(column.type, sa.Boolean):
        text = f"CASE {column} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END" if mysql else f"{column}::text"
    elif isinstance(column.type, UTCDateTime):
        moment = f"REPLACE({column},' ','T')" if mysql else f"to_char({column},'YYYY-MM-DD\"T\"HH24:MI:SS.US')"
        quoted = "'\"'", f"REPLACE({moment},'.000000','')", "'+00:00\"'"
        text = f"CONCAT({','.join(quoted)})" if mysql else "||".join(quoted)
    elif isinstance(column.type, sa.String):
        text = f"JSON_QUOTE({column})" if mysql else f"to_json({column})::text"
    elif isinstance(column.type, sa.Integer):
        text = str(column) if mysql else f"{column}::text"
    else:
        raise TypeError(f"{column} is a {column.type!r}")
    return f"COALESCE({text},'null')" if column.nullable else text


def _joined(parts: Sequence[str], dialect: str) -> str:
    """Return the expression of the texts one after the other: bytes on MariaDB and MySQL, to which they are."""
    calls = [f"concat({','.join(some)})" for some in _batches(parts, _MOST_ARGUMENTS)]
    text = calls[0] if len(calls) == 1 else f"concat({','.join(calls)})"
    # The driver would decode the text.
    return f"CAST({text} AS BINARY)" if dialect == "mysql" else text


def _batches(parts: Sequence[str], most: int) -> list[Sequence[str]]:
    return [parts[first:first + most] for first in range(0, len(parts), most)]
