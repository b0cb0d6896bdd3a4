"""Port groups as JSON."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ironic_rules.api import node_versions
from ironic_rules.api.views.rows import RowView

COLUMNS = (
    "uuid", "created_at", "updated_at", "address", "extra", "internal_info", "mode", "name", "properties",
    "standalone_ports_supported", "node_uuid",
)
FIELDS = frozenset((*COLUMNS, "links", "ports"))
DEFAULT = ("uuid", "address", "name")


class PortgroupView(RowView):
    """How port groups look in one version of the API with one set of fields."""

    def __init__(self, minor: int, fields: tuple[str, ...] | None) -> None:
        wanted = FIELDS - node_versions.PORTGROUP_FIELDS.hidden(minor)
        if fields is not None:
            wanted &= set(fields)
        super().__init__("portgroups", (name for name in COLUMNS if name in wanted),
                         json={"extra", "internal_info", "properties"}, secret={"internal_info"},
                         sub_resources=("ports",) if "ports" in wanted else ())

    def render(self, rows: Sequence[Any], url: str) -> list[dict[str, Any]]:
        """Return the JSON objects of ``rows``."""
        return [group for _, group in self.objects(rows, url)]


@functools.lru_cache(maxsize=256)
def view(minor: int, fields: tuple[str, ...] | None) -> PortgroupView:
    """Return the view of version ``minor`` with ``fields`` (None: all)."""
    return PortgroupView(minor, fields)
