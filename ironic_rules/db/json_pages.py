"""Pages of a table whose rows the database writes as JSON text, for replies.

Each value that leaves SQLite is a call, and a page of 1,000 nodes in detail has 62,000. A server sends each of them,
and PyMySQL reads and converts them in Python. So the database puts the members of each row's object together, and what
it has written is only cut and joined. With SQLite, such a page takes the process 15 ms instead of 25. On cores half as
fast, it takes 16 instead of 70 with MariaDB, whose server takes 8 more, and 14 instead of 35 with PostgreSQL, whose
server takes 15 more.

The text of a row has holes. In JSON columns there may be secrets, so they are not in the text but beside it, each as
the stored text; and at the end of each object is a hole for what is not in the table.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from ironic_rules.db import json_expressions, sqlite
from ironic_rules.db.projection import Row
from ironic_rules.db.types import Json

#: Rows that are joined at once.
_ROWS = 30


class JsonPage:
    """The objects of a page, each with holes for its JSON columns, and one at its end.

    :ivar stored: the values of each JSON column, which may be replaced
    :ivar needed: the further columns of each row, as values
    """

    def __init__(self, names: tuple[str, ...], rows: Iterable[Row]) -> None:
        """Take the page apart.

        :param names: those of the JSON columns
        :param rows: as :func:`select` selects them
        """
        hole, between = json_expressions.HOLE.encode(), json_expressions.BETWEEN.encode()
        texts: list[bytes] = []
        holes: list[bytes] = []
        width = len(names) + 1
        for text, values in rows:
            texts += text.split(hole)
            holes += values.split(between)
        #: by column, what is before each hole
        self._before = [texts[place::width + 1] for place in range(width)]
        self.stored = {name: holes[place::width] for place, name in enumerate(names)}
        self.needed: list[list[Any]] = orjson.loads(b"[%b]" % b",".join(holes[width - 1::width]))

    def cut(self, rows: int) -> None:
        """Leave out all but the first rows."""
        del self.needed[rows:]
        for texts in (*self._before, *self.stored.values()):
            del texts[rows:]

    def pieces(self, endings: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the text of the page, with commas between the objects.

        All of it is some megabytes, which the system has to provide: the parts of a few rows are always in the same
        place, and to copy pieces into one text takes longer than to send them.

        :param endings: the last members of each object
        """
        columns: list[Iterable[bytes]] = []
        for texts, (name, values) in zip(self._before, self.stored.items(), strict=False):
            columns += texts, itertools.repeat(f'"{name}":'.encode()), values
        rows = zip(*columns, self._before[-1], endings, itertools.repeat(b"},"))
        for first in range(0, len(self.needed), _ROWS):
            parts = [*itertools.chain.from_iterable(itertools.islice(rows, _ROWS))]
            if first + _ROWS >= len(self.needed):
                parts[-1] = b"}"
            yield b"".join(parts)


class Selected(NamedTuple):
    """What to select of a table: the columns that are shown, in this order, and those that are needed besides."""

    shown: tuple[str, ...]
    needed: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def select(table: sa.Table, selected: Selected, dialect: str) -> sa.Select[Any]:
    """Return the query whose rows :func:`fetch` makes a page of.

    :param dialect: ``sqlite``, ``mysql`` or ``postgresql``
    :raises TypeError: there is no JSON of such a column
    """
    stored = _stored(table, selected)
    shown = [(name, None if name in stored else table.c[name]) for name in selected.shown]
    members = json_expressions.members([*shown, ("", None)], dialect)
    beside = json_expressions.beside(
        [table.c[name] for name in stored], [table.c[name] for name in selected.needed], dialect)
    texts: list[sa.ColumnElement[Any]] = [sa.literal_column(members), sa.literal_column(beside)]
    return sa.select(*texts).select_from(table)


def fetch(conn: sa.Connection, query: sa.Select[Any], selected: Selected, table: sa.Table) -> JsonPage | None:
    """Return the page of ``query``; None: a row is too large for MariaDB or MySQL to make one text of it."""
    # A few rows at a time, whose texts are always in the same place.
    rows: Iterable[Any] = conn.execute(query).yield_per(_ROWS)
    if conn.dialect.name == "mysql":
        rows = [*rows]
        # NULL instead of more than max_allowed_packet.
        if any(text is None or values is None for text, values in rows):
            return None
    elif conn.dialect.name == "postgresql":
        rows = ((text.encode(), values.encode()) for text, values in rows)
    return JsonPage(_stored(table, selected), rows)


def making(conn: sa.Connection) -> contextlib.AbstractContextManager[None]:
    """Let pages of SQLite be made in turn: it takes milliseconds of the interpreter.

    With a server, most of the time is the server's.
    """
    return sqlite.in_turn() if conn.dialect.name == "sqlite" else contextlib.nullcontext()


def _stored(table: sa.Table, selected: Selected) -> tuple[str, ...]:
    """Return the JSON columns that are shown."""
    return tuple(name for name in selected.shown if isinstance(table.c[name].type, Json))
