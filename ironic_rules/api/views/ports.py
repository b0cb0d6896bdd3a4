"""Ports as JSON."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ironic_rules.api.views.rows import RowView
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.ports import PORT


class PortView(RowView):
    """The representation of ports in one version of the API with one set of fields."""

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        wanted = PORT.shown - PORT.hidden(minor)
        if fields is not None:
            wanted &= set(fields)
        super().__init__(PORT, "ports", wanted)

    def render(self, rows: Sequence[Any], url: str) -> list[JSONObject]:
        """Return the JSON objects of ``rows``."""
        return [port for _, port in self.objects(rows, url)]


@functools.lru_cache(maxsize=256)
def view(minor: int, fields: tuple[str, ...] | None) -> PortView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return PortView(minor, fields)
