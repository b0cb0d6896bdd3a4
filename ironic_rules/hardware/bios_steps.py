"""The steps of BIOS interfaces: requested settings are checked here, an interface writes them."""

from __future__ import annotations

import abc
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import BIOSInterface
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.steps.declaration import requested_step

_SETTINGS = {
    "description": "a list of one or more objects", "type": "array", "minItems": 1,
    "items": {
        "description": "an object with name and value", "type": "object",
        "required": ["name", "value"], "additionalProperties": False,
        "properties": {
            "name": {"description": "a text that no other setting has", "type": "string", "minLength": 1},
            "value": {"description": "a text, a number, true, false or null",
                      "type": ["string", "number", "boolean", "null"]},
        },
    },
}


class BIOSSteps(BIOSInterface, abc.ABC):
    """Mix-in of the interfaces that can write BIOS settings."""

    @abc.abstractmethod
    def write_settings(self, task: Task, settings: dict[str, Any]) -> str | None:
        """Set the settings to these values, or begin to; return as a step does. Safe to repeat."""

    @abc.abstractmethod
    def reset_settings(self, task: Task) -> str | None:
        """Reset all settings to factory defaults, or begin to; return as a step does. Safe to repeat."""

    @requested_step({
        "settings": {"description": "The settings, a list of objects with name and value.", "required": True,
                     "schema": _SETTINGS},
    }, rerunnable=True, abortable=True)
    def apply_configuration(self, task: Task, settings: Any) -> str | None:
        """Write BIOS settings."""
        return self.write_settings(task, checked(settings))

    @requested_step(rerunnable=True, abortable=True)
    def factory_reset(self, task: Task) -> str | None:
        """Reset all BIOS settings to factory defaults."""
        return self.reset_settings(task)


def checked(settings: list[dict[str, Any]]) -> JSONObject:
    """Return settings that are valid against the step's schema as names and values.

    :raises InvalidParameterValue: one occurs twice; the text has its location
    """
    found: JSONObject = {}
    for index, setting in enumerate(settings):
        if setting["name"] in found:
            raise InvalidParameterValue(f"/args/settings/{index}/name: must be a text that no other setting has")
        found[setting["name"]] = setting["value"]
    return found
