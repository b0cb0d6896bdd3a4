"""Steps: actions of a node's interfaces in a deployment, as templates and requests specify them (document 003)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.models.json_values import JSONObject

#: The kinds of interfaces that have steps. Of steps with the same priority, those of an earlier kind run first.
STEP_INTERFACES = ("vendor", "power", "management", "firmware", "deploy", "bios", "raid")
#: Names of a step's fields, in the order in which it is shown.
STEP_FIELDS = ("interface", "step", "args", "priority")
MAX_STEP_NAME = 255
#: The maximum of an INTEGER in every supported database.
MAX_PRIORITY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Step:
    """One step as it is requested; ``step`` is its name among those of the interface."""

    interface: str
    step: str
    args: Mapping[str, Any]
    priority: int

    @property
    def name(self) -> str:
        """The name as in options and messages, e.g. ``raid.create_configuration``."""
        return f"{self.interface}.{self.step}"

    @property
    def key(self) -> tuple[str, str]:
        """What identifies this step: interface and step."""
        return self.interface, self.step

    def to_wire(self) -> JSONObject:
        """Return the step as in the API, including its secrets."""
        return {"interface": self.interface, "step": self.step, "args": dict(self.args), "priority": self.priority}
