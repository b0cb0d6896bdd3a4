"""Steps, the actions of a node's interfaces in a deployment, and deploy templates (document 003).

A template is a trait, and the deploy steps that run on nodes with that trait.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, Text, field, record

#: The kinds of interfaces that have steps. Of steps with the same priority, those of an earlier kind run first.
STEP_INTERFACES = ("vendor", "power", "management", "firmware", "deploy", "bios", "raid")
#: Names of a step's fields, in the order in which it is shown.
STEP_FIELDS = ("interface", "step", "args", "priority")
MAX_STEP_NAME = 255
#: The maximum of an INTEGER in every supported database.
MAX_PRIORITY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NamedStep:
    """A step by its name: ``step`` is that among the steps of the interface."""

    interface: str
    step: str

    @property
    def name(self) -> str:
        """The name as in options and messages, e.g. ``raid.create_configuration``."""
        return f"{self.interface}.{self.step}"

    @property
    def key(self) -> tuple[str, str]:
        """The identifier of this step: interface and step."""
        return self.interface, self.step


@dataclass(frozen=True, slots=True)
class Step(NamedStep):
    """One step as it is requested."""

    args: Mapping[str, Any]
    priority: int

    def to_wire(self) -> JSONObject:
        """Return the step as in the API, including its secrets."""
        return {"interface": self.interface, "step": self.step, "args": dict(self.args), "priority": self.priority}


MAX_TEMPLATE_STEPS = 256


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


DEPLOY_TEMPLATE = Fields.of(DeployTemplate, computed={"links": 1})
