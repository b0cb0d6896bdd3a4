"""Resources that are the rows of one table, as JSON."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ironic_rules.api.views.rows import RowView
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields


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
        wanted = self._table.shown - self._table.hidden(minor)
        if fields is not None:
            wanted &= set(fields)
        return RowView(self._table, self._path, wanted,
                       sub_resources=tuple(name for name in self._below if name in wanted))

    def render(self, rows: Sequence[Any], minor: int, fields: tuple[str, ...] | None, url: str) -> list[JSONObject]:
        """Return the JSON objects of ``rows``.

        :param fields: None: all that version ``minor`` has
        :param url: the public URL of the API
        """
        return [shown for _, shown in self.view(minor, fields).objects(rows, url)]
