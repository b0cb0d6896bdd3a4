"""Port groups as JSON."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ironic_rules.api.views.rows import RowView
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.ports import PORT_GROUP


class PortgroupView(RowView):
    """The representation of port groups in one version of the API with one set of fields."""

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        wanted = PORT_GROUP.shown - PORT_GROUP.hidden(minor)
        if fields is not None:
            wanted &= set(fields)
        super().__init__(PORT_GROUP, "portgroups", wanted, sub_resources=("ports",) if "ports" in wanted else ())

    def render(self, rows: Sequence[Any], url: str) -> list[JSONObject]:
        """Return the JSON objects of ``rows``."""
        return [group for _, group in self.objects(rows, url)]


@functools.lru_cache(maxsize=256)
def view(minor: int, fields: tuple[str, ...] | None) -> PortgroupView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return PortgroupView(minor, fields)
