"""The deploy steps of BIOS interfaces: what is asked for is checked here, an interface writes it."""

from __future__ import annotations

import abc
from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import BIOSInterface
from ironic_rules.hardware.steps import deploy_step
from ironic_rules.models.task import Task


class BIOSSteps(BIOSInterface, abc.ABC):
    """Mix-in of the interfaces that can write settings."""

    @abc.abstractmethod
    def write_settings(self, task: Task, settings: dict[str, Any]) -> None:
        """Give the settings these values. Safe to repeat."""

    @abc.abstractmethod
    def reset_settings(self, task: Task) -> None:
        """Give all settings the values of the factory. Safe to repeat."""

    @deploy_step(priority=0, argsinfo={
        "settings": {"description": "The settings, a list of objects with name and value.", "required": True},
    }, rerunnable=True)
    def apply_configuration(self, task: Task, settings: Any) -> None:
        """Write settings of the firmware setup."""
        self.write_settings(task, checked(settings))

    @deploy_step(priority=0, rerunnable=True)
    def factory_reset(self, task: Task) -> None:
        """Give all settings of the firmware setup the values of the factory."""
        self.reset_settings(task)


def checked(settings: Any) -> dict[str, Any]:
    """Return a list of ``{"name": …, "value": …}`` as names and values.

    :raises InvalidParameterValue: it is none; the text has the place
    """
    if not isinstance(settings, list) or not settings:
        raise InvalidParameterValue("/args/settings: must be a list of one or more objects")
    found: dict[str, Any] = {}
    for index, setting in enumerate(settings):
        if not isinstance(setting, dict) or set(setting) != {"name", "value"}:
            raise InvalidParameterValue(f"/args/settings/{index}: must be an object with name and value")
        name, value = setting["name"], setting["value"]
        if not isinstance(name, str) or not name or name in found:
            raise InvalidParameterValue(f"/args/settings/{index}/name: must be a text that no other setting has")
        if isinstance(value, (dict, list)):
            raise InvalidParameterValue(f"/args/settings/{index}/value: must be a text, a number, true, false or null")
        found[name] = value
    return found
