"""Bodies of requests on deploy templates."""

from __future__ import annotations

from typing import Any

from ironic_rules.api import schema
from ironic_rules.api.schemas.nodes import Trait
from ironic_rules.models.deploy_templates import INTERFACES, MAX_PRIORITY, MAX_STEP_NAME, MAX_STEPS, STEP_FIELDS

_STEP = schema.Object({
    "interface": schema.Enum(*INTERFACES), "step": schema.Text(MAX_STEP_NAME, min_length=1), "args": schema.Map(),
    "priority": schema.Integer(0, MAX_PRIORITY),
}, required=STEP_FIELDS)

#: Every field that a PATCH may write. ``null`` stands for the field's default.
FIELDS: dict[str, schema.Schema] = {
    "name": Trait(),
    "steps": schema.List(_STEP, min_items=1, max_items=MAX_STEPS),
    "extra": schema.Map(nullable=True),
}
DEFAULTS: dict[str, Any] = {"extra": {}}
REQUIRED = ("name", "steps")

CREATE = schema.Object({**FIELDS, "uuid": schema.Uuid(nullable=True)}, required=REQUIRED)
PATCHED = schema.Object(FIELDS, required=REQUIRED)
