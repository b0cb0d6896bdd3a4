"""Bodies of requests on runbooks."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.api.schemas.nodes import Trait
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.resources import MAX_RUNBOOK_STEPS, RUNBOOK
from ironic_rules.models.steps import MAX_PRIORITY, MAX_STEP_NAME, STEP_INTERFACES


class _Step(schema.Object):
    """A step of a runbook. Without ``args`` it has none."""

    def convert(self, value: JSON, where: str, problems: schema.Problems) -> JSONObject:
        loaded = super().convert(value, where, problems)
        return {"args": {}, **loaded}


_STEP = _Step({
    "interface": schema.Enum(*STEP_INTERFACES), "step": schema.Text(MAX_STEP_NAME, min_length=1), "args": schema.Map(),
    "order": schema.Integer(0, MAX_PRIORITY),
}, required=("interface", "step", "order"))
_SPECIAL = {"name": Trait(), "steps": schema.List(_STEP, min_items=1, max_items=MAX_RUNBOOK_STEPS)}

CREATE = schema.Object(
    schema.of(RUNBOOK, RUNBOOK.where(lambda entry: entry.create), _SPECIAL), required=RUNBOOK.required)
#: Every field that a PATCH may write. ``null`` means the field's default.
PATCHED = schema.Object(schema.of(RUNBOOK, RUNBOOK.patchable, _SPECIAL))
