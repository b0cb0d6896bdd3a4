"""Bodies of requests on port groups."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import schema
from ironic_rules.api.schemas.nodes import LogicalName

#: Every field that a PATCH may write. ``null`` stands for the field's default.
FIELDS: dict[str, schema.Schema] = {
    "address": schema.Mac(nullable=True),
    "node_uuid": schema.Uuid(),
    "name": LogicalName(),
    "mode": schema.Text(255, min_length=1, nullable=True),
    "properties": schema.Map(nullable=True),
    "extra": schema.Map(nullable=True),
    "standalone_ports_supported": schema.Boolean(nullable=True),
}
DEFAULTS: dict[str, Any] = {
    "mode": "active-backup", "properties": {}, "extra": {}, "standalone_ports_supported": True,
}

CREATE = schema.Object({**FIELDS, "uuid": schema.Uuid(nullable=True)}, required=("node_uuid",))
