"""Bodies of requests on chassis."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.models.resources import CHASSIS

#: Every field that a PATCH may write. ``null`` means the field's default.
FIELDS = schema.of(CHASSIS, CHASSIS.patchable)
CREATE = schema.Object(schema.of(CHASSIS, CHASSIS.where(lambda entry: entry.create)))
PATCHED = schema.Object(FIELDS)
