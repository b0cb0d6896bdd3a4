"""``cpu-capabilities``: store CPU flags in capabilities of the node."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.text import printable

OPTION = "[inspector]cpu_capabilities"


class CPUCapabilitiesHook(InspectionHook):
    """Sets capabilities to ``true`` from ``inventory.cpu.flags``, as ``[inspector]cpu_capabilities`` maps them.

    A capability of that option that is ``true`` and for which the machine no longer has a flag, because it was switched
    off in the BIOS settings, is removed; other values, such as an operator's ``false``, are unchanged. A report
    without flags changes nothing and causes a warning.
    """

    def configure(self, settings: HookSettings) -> None:
        """:raises ConfigurationError: an entry has no flag, or its name is not valid for a capability"""
        super().configure(settings)
        for flag, name in settings.cpu_capabilities.items():
            if not flag or not capabilities.is_name(name):
                raise ConfigurationError(
                    f"{OPTION}: '{printable(flag)}:{printable(name)}' is not FLAG:CAPABILITY, with a capability "
                    "without colons, commas and blanks.")

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        cpu = inventory.get("cpu")
        flags = cpu.get("flags") if isinstance(cpu, dict) else None
        if not isinstance(flags, list) or not flags:
            warn(task, "no capability is set from CPU flags: /cpu/flags is missing, empty or not a list")
            return
        present = {flag for flag in flags if isinstance(flag, str)}
        given = {name for flag, name in self.settings.cpu_capabilities.items() if flag in present}
        properties = task.node.properties
        found = properties.get("capabilities")
        for name in dict.fromkeys(self.settings.cpu_capabilities.values()):
            if name in given:
                found = capabilities.put(found, name, "true")
            elif str(capabilities.get(found, name)).lower() == "true":
                found = capabilities.remove(found, name)
        if found != properties.get("capabilities"):
            properties["capabilities"] = found
