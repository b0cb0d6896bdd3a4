"""Resources that are the rows of one table as JSON objects, many at a time.

The needs of one (version, set of fields) are computed once; then a row needs no function call per field. JSON columns
are embedded as the text that is in the database, unless they may contain secrets.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson

from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields

#: Rows that are made objects at once: all values of a page are some megabytes, which the system would have to provide.
_ROWS = 30
#: Text that no JSON text has.
_UUID = "\0"


class RowView:
    """The representation of the rows of one table with one set of fields.

    :ivar columns: the columns to select, in this order
    """

    def __init__(self, table: Fields, collection: str, names: Collection[str], *,
                 sub_resources: Sequence[str] = (), needed: Iterable[str] = ()) -> None:
        """Create the view.

        :param collection: the last part of the collection's URL
        :param names: the fields of the reply
        :param sub_resources: fields that are links below the resource
        :param needed: further columns to select
        """
        self._collection = collection
        self._shown = tuple(name for name in table.columns if name in names)
        # By position: a page has tens of thousands of such values.
        self._json = [(place, _without_secrets if name in table.secret else _embedded)
                      for place, name in enumerate(self._shown) if name in table.json]
        self._links = [("links", ""), *((name, f"/{name}") for name in sub_resources)]
        self.columns = (*self._shown, *(name for name in ("uuid", *needed) if name not in self._shown))
        # attrgetter() of a single name does not return a tuple.
        self._pick = operator.attrgetter(*self._shown, "uuid")

    def objects(self, rows: Sequence[Any], url: str) -> Iterator[tuple[Any, JSONObject]]:
        """Yield each row with its JSON object.

        :param rows: have at least ``self.columns``; fastest if they begin with them, in that order
        :param url: the public URL of the API, without a trailing slash
        """
        if not rows:
            return
        in_order = tuple(rows[0]._fields[:len(self._shown)]) == self._shown
        names, links = (*self._shown, "links"), self._template(url)
        for first in range(0, len(rows), _ROWS):
            some = rows[first:first + _ROWS]
            # Column by column: a function call for each value takes longer than everything else.
            columns: list[Sequence[Any]] = [*zip(*(some if in_order else map(self._pick, some)), strict=True)]
            columns[len(self._shown):] = [[orjson.Fragment(links.replace(_UUID, row.uuid)) for row in some]]
            for place, form in self._json:
                columns[place] = form(columns[place])
            for row, values in zip(some, zip(*columns, strict=True), strict=True):
                yield row, dict(zip(names, values, strict=True))

    def _template(self, url: str) -> str:
        """Return the value of ``links``, and with it the members of the object that follow: those of sub-resources.

        All links of a row are one text, with ``_UUID`` in place of the row's: to make one for each takes a tenth of the
        time of a page.
        """
        base = orjson.dumps(url).decode()[1:-1]
        values = [(name, f'[{{"href":"{base}/v1/{self._collection}/{_UUID}{below}","rel":"self"}},'
                         f'{{"href":"{base}/{self._collection}/{_UUID}{below}","rel":"bookmark"}}]')
                  for name, below in self._links]
        return ",".join(text if name == "links" else f'"{name}":{text}' for name, text in values)


def _embedded(values: Sequence[object]) -> Sequence[Any]:
    """Return JSON values, of which some may be texts, for a reply."""
    return [orjson.Fragment(value) if type(value) is str else value for value in values]


def _without_secrets(values: Sequence[Any]) -> Sequence[Any]:
    """Return what :func:`_embedded` does of objects, each with its secrets masked; None is an empty object."""
    # One search for all rows takes a fifteenth of the time of one for each of them.
    if all(type(value) is str for value in values) and secrets.json_is_free("\n".join(values).encode()):
        return _embedded(values)
    return [secrets.mask(orjson.loads(value) if type(value) is str else value or {}) for value in values]


class Views:
    """The representations of a resource, each made once: by version and set of fields."""

    def __init__(self, table: Fields, path: str, sub_resources: Sequence[str] = ()) -> None:
        """Describe the resource.

        :param path: of the collection, below ``/v1/``
        :param sub_resources: fields that are links below a resource
        """
        self._table, self._path, self._below = table, path, tuple(sub_resources)
        self.view = functools.lru_cache(maxsize=64)(self._view)

    def _view(self, minor: int, fields: tuple[str, ...] | None) -> RowView:
        names = self._table.shown - self._table.hidden(minor)
        if fields is not None:
            names &= set(fields)
        return RowView(self._table, self._path, names,
                       sub_resources=tuple(name for name in self._below if name in names))

    def render(self, rows: Sequence[object], minor: int, fields: tuple[str, ...] | None, url: str) -> list[JSONObject]:
        """Return the JSON objects of ``rows``.

        :param fields: None: all that version ``minor`` has
        :param url: the public URL of the API
        """
        return [shown for _, shown in self.view(minor, fields).objects(rows, url)]
