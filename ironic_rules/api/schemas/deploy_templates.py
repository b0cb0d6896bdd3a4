"""Bodies of requests on deploy templates."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.api.schemas.nodes import Trait
from ironic_rules.models.steps import (
    DEPLOY_TEMPLATE,
    MAX_PRIORITY,
    MAX_STEP_NAME,
    MAX_TEMPLATE_STEPS,
    STEP_FIELDS,
    STEP_INTERFACES,
)

_STEP = schema.Object({
    "interface": schema.Enum(*STEP_INTERFACES), "step": schema.Text(MAX_STEP_NAME, min_length=1), "args": schema.Map(),
    "priority": schema.Integer(0, MAX_PRIORITY),
}, required=STEP_FIELDS)

#: Every field that a PATCH may write. ``null`` means the field's default.
FIELDS = schema.of(DEPLOY_TEMPLATE, DEPLOY_TEMPLATE.patchable, {
    "name": Trait(), "steps": schema.List(_STEP, min_items=1, max_items=MAX_TEMPLATE_STEPS)})

CREATE = schema.Object({**FIELDS, "uuid": schema.Uuid(nullable=True)}, required=DEPLOY_TEMPLATE.required)
PATCHED = schema.Object(FIELDS, required=DEPLOY_TEMPLATE.required)
