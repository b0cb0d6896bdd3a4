"""``boot-mode``: store the machine's boot mode in a capability of the node."""

from __future__ import annotations

from typing import Any

from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities

_MODES = ("bios", "uefi")


class BootModeHook(InspectionHook):
    """Sets the capability ``boot_mode`` from ``inventory.boot.current_boot_mode``: ``bios`` or ``uefi``.

    Any other value is ignored with a warning, because no deployment could use it.
    """

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        boot = inventory.get("boot")
        mode = boot.get("current_boot_mode") if isinstance(boot, dict) else None
        if mode not in _MODES:
            reason = "is missing" if mode is None else "is neither bios nor uefi"
            warn(task, f"the capability boot_mode is not set: /boot/current_boot_mode {reason}")
            return
        properties = task.node.properties
        properties["capabilities"] = capabilities.put(properties.get("capabilities"), "boot_mode", mode)
