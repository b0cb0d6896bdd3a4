"""Bodies of requests on ports."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.models.ports import PORT

#: Every field that a PATCH may write. ``null`` means the field's default.
FIELDS = schema.of(PORT, PORT.patchable)
#: The node is named by ``node_uuid`` or, since API 1.94, by ``node_ident``; one of them is required.
CREATE = schema.Object(
    {**schema.of(PORT, PORT.where(lambda entry: entry.create)), "node_ident": schema.Text(255, min_length=1)},
    required=("address",))
