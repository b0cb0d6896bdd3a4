"""Deploy templates: a trait, and the deploy steps that run on nodes with that trait (document 003)."""

from __future__ import annotations

import datetime

from ironic_rules.models.fields import Fields, Text, field, record
from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.steps import Step

MAX_STEPS = 256


@record
class DeployTemplate:
    """A stored template with its steps, in the order in which they were given; ``name`` is a trait.

    ``revision`` counts the changes of the template.
    """

    id: int = field(shown=False)
    revision: int = field(shown=False)

    uuid: str = field(create=True, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field(default=None)
    name: str = field(patch=True, required=True, summary=True)
    description: str | None = field(patch=True, text=Text.LINES, default=None)
    extra: JSONObject = field(patch=True, default_factory=dict)
    steps: tuple[Step, ...] = field(patch=True, required=True, column=False, default=())


DEPLOY_TEMPLATE = Fields.of(DeployTemplate, made={"links": 1})
