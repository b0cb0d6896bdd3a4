"""Hooks that store facts of the machine in properties and capabilities of the node.

====================  ====================================
``architecture``      processor architecture
``memory``            amount of memory
``boot-mode``         boot mode
``cpu-capabilities``  CPU flags
``cpus``              number of logical processors
====================  ====================================
"""

from __future__ import annotations

from ironic_rules.exceptions import ConfigurationError, InvalidInventory
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.text import printable


class ArchitectureHook(InspectionHook):
    """Sets ``properties/cpu_arch`` from ``inventory.cpu.architecture``, e.g. ``x86_64``.

    Null, which an out-of-band inspection writes if the BMC does not report the architecture, and a value that is no
    name leave the property unchanged and cause a warning. A report without the field fails the inspection.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        architecture = _required(task, inventory, "cpu", "architecture")
        if not architecture or not isinstance(architecture, str):
            warn(task, "cpu_arch is not set: /cpu/architecture is unknown")
        else:
            task.node.properties["cpu_arch"] = architecture


def _required(task: Task, inventory: JSONObject, part: str, name: str) -> JSON:
    """Return a field of a part of the inventory; None if the machine does not know it, or sent something else.

    :raises InvalidInventory: the ramdisk did not send the field
    """
    if part not in inventory:
        raise InvalidInventory(node=task.node.uuid, where=f"/{part} is missing")
    section = inventory[part]
    if not isinstance(section, dict):
        return None
    if name not in section:
        raise InvalidInventory(node=task.node.uuid, where=f"/{part}/{name} is missing")
    return section[name]


class MemoryHook(InspectionHook):
    """Sets ``properties/memory_mb``, an integer, from ``inventory.memory.physical_mb`` (MiB).

    0 and null, which a ramdisk sends if it could not determine the amount, and what is not a whole number leave the
    property unchanged and cause a warning. An inventory without the field fails the inspection.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        size_mb = _required(task, inventory, "memory", "physical_mb")
        if size_mb is None or (size_mb == 0 and size_mb is not False):
            warn(task, "memory_mb is not set: the ramdisk could not determine the amount of memory")
        elif isinstance(size_mb, bool) or not isinstance(size_mb, int) or size_mb < 0:
            warn(task, "memory_mb is not set: /memory/physical_mb is not a whole number of MiB")
        else:
            task.node.properties["memory_mb"] = size_mb


_MODES = ("bios", "uefi")


class BootModeHook(InspectionHook):
    """Sets the capability ``boot_mode`` from ``inventory.boot.current_boot_mode``: ``bios`` or ``uefi``.

    Any other value is ignored with a warning, because no deployment could use it.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        boot = inventory.get("boot")
        mode = boot.get("current_boot_mode") if isinstance(boot, dict) else None
        if not isinstance(mode, str) or mode not in _MODES:
            reason = "is missing" if mode is None else "is neither bios nor uefi"
            warn(task, f"the capability boot_mode is not set: /boot/current_boot_mode {reason}")
            return
        properties = task.node.properties
        properties["capabilities"] = capabilities.put(properties.get("capabilities"), "boot_mode", mode)


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

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        cpu = inventory.get("cpu")
        flags = cpu.get("flags") if isinstance(cpu, dict) else None
        if not isinstance(flags, list) or not flags:
            warn(task, "no capability is set from CPU flags: /cpu/flags is missing, empty or not a list")
            return
        present = {flag for flag in flags if isinstance(flag, str)}
        supported = {name for flag, name in self.settings.cpu_capabilities.items() if flag in present}
        properties = task.node.properties
        stored = properties.get("capabilities")
        for name in dict.fromkeys(self.settings.cpu_capabilities.values()):
            if name in supported:
                stored = capabilities.put(stored, name, "true")
            elif str(capabilities.get(stored, name)).lower() == "true":
                stored = capabilities.remove(stored, name)
        if stored != properties.get("capabilities"):
            properties["capabilities"] = stored


class CPUsHook(InspectionHook):
    """Sets ``properties/cpus``, an integer, from ``inventory.cpu.count``.

    For rules and scripts that come from ironic-inspector; not enabled by default, because Nova no longer reads the
    property. 0, null, a missing number, and what is not a whole number leave the property unchanged and cause a
    warning.
    """

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        cpu = inventory.get("cpu")
        count = cpu.get("count") if isinstance(cpu, dict) else None
        if count is None or (count == 0 and count is not False):
            warn(task, "cpus is not set: the number of processors is unknown")
        elif isinstance(count, bool) or not isinstance(count, int) or count < 0:
            warn(task, "cpus is not set: /cpu/count is not a whole number")
        else:
            task.node.properties["cpus"] = count
