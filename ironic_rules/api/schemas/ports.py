"""Bodies of requests on ports."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import schema
from ironic_rules.api.schemas.nodes import LogicalName
from ironic_rules.models import node_fields

#: Every field that a PATCH may write. ``null`` stands for the field's default.
FIELDS: dict[str, schema.Schema] = {
    "address": schema.Mac(),
    "node_uuid": schema.Uuid(),
    "portgroup_uuid": schema.Uuid(nullable=True),
    "extra": schema.Map(nullable=True),
    "local_link_connection": schema.Map(nullable=True),
    "pxe_enabled": schema.Boolean(nullable=True),
    "is_smartnic": schema.Boolean(nullable=True),
    "physical_network": schema.Text(node_fields.PORT_MAX_LENGTHS["physical_network"], min_length=1, nullable=True),
    "name": LogicalName(),
}
DEFAULTS: dict[str, Any] = {"extra": {}, "local_link_connection": {}, "pxe_enabled": True, "is_smartnic": False}

CREATE = schema.Object(
    {**FIELDS, "uuid": schema.Uuid(nullable=True), "node_ident": schema.Text(255, min_length=1)}, required=("address",))
