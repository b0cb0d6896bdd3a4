"""Rows of a table as JSON objects, many at a time.

What one (version, set of fields) needs is computed once; then a row needs no function call per field. JSON columns
are embedded as the text that is in the database, unless they may contain secrets.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson

from ironic_rules.db.json_pages import JsonPage, Selected
from ironic_rules.models import secrets
from ironic_rules.models.fields import Fields
from ironic_rules.models.json_values import JSONObject

_EMPTY: JSONObject = {}
#: What no JSON text has.
_UUID = "\0"


class RowView:
    """The representation of the rows of one table with one set of fields.

    :ivar columns: the columns to select, in this order
    :ivar selected: the same for a page as JSON
    """

    def __init__(self, table: Fields, collection: str, wanted: Collection[str], *,
                 sub_resources: Sequence[str] = (), needed: Iterable[str] = ()) -> None:
        """Create the view.

        :param collection: the last part of the collection's URL
        :param wanted: the fields of the reply
        :param sub_resources: fields that are links below the resource
        :param needed: further columns to select
        """
        self._collection = collection
        self._shown = tuple(name for name in table.columns if name in wanted)
        # By position: a page has tens of thousands of such values.
        self._json = [place for place, name in enumerate(self._shown)
                      if name in table.json and name not in table.secret]
        self._secret = [place for place, name in enumerate(self._shown) if name in table.secret]
        self._links = [("links", ""), *((name, f"/{name}") for name in sub_resources)]
        others = tuple(needed)
        self.columns = (*self._shown, *(name for name in ("uuid", *others) if name not in self._shown))
        self.selected = Selected(self._shown, ("uuid", *others))
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
        shown, count, fragment = self._shown, len(self._shown), orjson.Fragment
        links = self._template(url)
        for row in rows:
            values = list(row[:count] if in_order else self._pick(row)[:count])
            for place in self._json:
                value = values[place]
                if type(value) is str:
                    values[place] = fragment(value)
            for place in self._secret:
                value = values[place]
                if not value or value == "{}":
                    values[place] = _EMPTY
                elif type(value) is not str:
                    values[place] = secrets.mask(value)
                elif secrets.json_has_none(value):
                    values[place] = fragment(value)
                else:
                    values[place] = secrets.mask(orjson.loads(value))
            found = dict(zip(shown, values, strict=True))
            found["links"] = fragment(links.replace(_UUID, row.uuid))
            yield row, found

    def endings(self, page: JsonPage, url: str) -> Iterator[bytes]:
        """Return the last members of each object of a page of ``self.selected``: links."""
        first, *others = f'"links":{self._template(url)}'.encode().split(_UUID.encode())
        return (row[0].encode().join([first, *others]) for row in page.needed)

    def hide(self, page: JsonPage) -> None:
        """Hide the secrets of a page of ``self.selected``."""
        for place in self._secret:
            values = page.stored[self._shown[place]]
            # One search for all rows takes a fifteenth of the time of one for each of them.
            if not secrets.json_is_free(b"\n".join(values)):
                page.stored[self._shown[place]] = [
                    value if value == b"{}" else orjson.dumps(secrets.mask(orjson.loads(value))) for value in values]

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
