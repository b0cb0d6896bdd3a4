"""Ports as JSON."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ironic_rules.api import node_versions
from ironic_rules.api.views.rows import RowView
from ironic_rules.models import node_fields

COLUMNS = (
    "uuid", "created_at", "updated_at", "address", "extra", "internal_info", "is_smartnic", "local_link_connection",
    "physical_network", "pxe_enabled", "node_uuid", "name", "portgroup_uuid",
)
FIELDS = frozenset((*COLUMNS, "links"))
DEFAULT = ("uuid", "address")


class PortView(RowView):
    """How ports look in one version of the API with one set of fields."""

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        wanted = FIELDS - node_versions.PORT_FIELDS.hidden(minor)
        if fields is not None:
            wanted &= set(fields)
        super().__init__("ports", (name for name in COLUMNS if name in wanted), json=node_fields.PORT_JSON_FIELDS,
                         secret={"internal_info"})

    def render(self, rows: Sequence[Any], url: str) -> list[dict[str, Any]]:
        """Return the JSON objects of ``rows``."""
        return [port for _, port in self.objects(rows, url)]


@functools.lru_cache(maxsize=256)
def view(minor: int, fields: tuple[str, ...] | None) -> PortView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return PortView(minor, fields)
