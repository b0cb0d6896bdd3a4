"""Bodies of requests on port groups."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.models.ports import PORT_GROUP

#: Every field that a PATCH may write. ``null`` means the field's default.
FIELDS = schema.of(PORT_GROUP, PORT_GROUP.patchable)
CREATE = schema.Object(
    schema.of(PORT_GROUP, PORT_GROUP.where(lambda entry: entry.create)), required=("node_uuid",))
