"""Deploy templates: a trait, and the deploy steps that a node gets with it (document 003)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: The kinds of interfaces that have deploy steps. Of steps with one priority, those of an earlier kind run first.
INTERFACES = ("vendor", "power", "management", "firmware", "deploy", "bios", "raid")
#: Names of a step's fields, in the order in which it is shown.
STEP_FIELDS = ("interface", "step", "args", "priority")
MAX_STEPS = 256
MAX_STEP_NAME = 255
#: What an INTEGER of every database holds.
MAX_PRIORITY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeployStep:
    """One step as a template asks for it; ``step`` is its name among those of the interface."""

    interface: str
    step: str
    args: Mapping[str, Any]
    priority: int

    @property
    def name(self) -> str:
        """The name as options and messages have it, e.g. ``raid.create_configuration``."""
        return f"{self.interface}.{self.step}"

    def to_wire(self) -> dict[str, Any]:
        """Return the step as the API has it, with its secrets."""
        return {"interface": self.interface, "step": self.step, "args": self.args, "priority": self.priority}


@dataclass(frozen=True, slots=True)
class DeployTemplate:
    """A stored template with its steps, in the order in which they were given.

    ``revision`` counts the changes of the template; ``name`` is a trait.
    """

    id: int
    uuid: str
    name: str
    revision: int
    created_at: datetime.datetime
    updated_at: datetime.datetime | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    steps: tuple[DeployStep, ...] = ()
