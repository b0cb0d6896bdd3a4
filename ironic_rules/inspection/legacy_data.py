"""Data for legacy rules in an inspection: the results of the hooks, also of those that are not enabled."""

from __future__ import annotations

from collections.abc import Mapping

from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.inspection.hooks.disks import RootDeviceHook
from ironic_rules.inspection.hooks.extra_hardware import ExtraHardwareHook
from ironic_rules.inspection.hooks.lldp import ParseLLDPHook
from ironic_rules.inspection.hooks.validate_interfaces import ValidateInterfacesHook
from ironic_rules.legacy import values
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.task import Task

#: Keys of the plug-in data that legacy rules read, each with the hook that writes it.
_HOOKS: Mapping[str, type[InspectionHook]] = {
    "all_interfaces": ValidateInterfacesHook, "local_gb": RootDeviceHook, "parsed_lldp": ParseLLDPHook,
    "extra": ExtraHardwareHook}


def processed(task: Task, inventory: Mapping[str, object], plugin_data: Mapping[str, object],
              settings: HookSettings | None = None) -> JSONObject:
    """Return the data for legacy rules. Nothing that is given is changed.

    :param plugin_data: as the enabled hooks have left them. The results of others are made for the rules alone; what
        they would warn of is not shown, and what they would fail at is missing
    """
    found: JSONObject = dict(plugin_data)
    missing = [hook for key, hook in _HOOKS.items() if key not in found]
    if missing:
        scratch, copied = task.copy(), clone(dict(inventory))
        found = clone(found)
        for kind in missing:
            hook = kind()
            hook.configure(settings or HookSettings())
            try:
                hook.preprocess(scratch, copied, found)
                hook(scratch, copied, found)
            except Exception:  # noqa: BLE001  (whatever a hook raises for unusual data)
                continue
    return values.processed(inventory, found, auto_discovered=bool(task.node.auto_discovered))
