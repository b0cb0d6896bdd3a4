"""Bodies of requests on volume connectors and targets."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.models.fields import Fields
from ironic_rules.models.resources import VOLUME_CONNECTOR, VOLUME_TARGET

_SPECIAL = {"boot_index": schema.Integer(0, 2**31 - 1)}


def _create(table: Fields) -> schema.Object:
    return schema.Object(
        schema.of(table, table.where(lambda entry: entry.create), _SPECIAL), required=table.required)


CREATE_CONNECTOR, CREATE_TARGET = _create(VOLUME_CONNECTOR), _create(VOLUME_TARGET)
#: Every field that a PATCH may write. ``null`` means the field's default.
PATCHED_CONNECTOR = schema.Object(schema.of(VOLUME_CONNECTOR, VOLUME_CONNECTOR.patchable))
PATCHED_TARGET = schema.Object(schema.of(VOLUME_TARGET, VOLUME_TARGET.patchable, _SPECIAL))
