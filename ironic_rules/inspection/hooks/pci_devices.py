"""``pci-devices``: store the number of PCI devices of a kind in a capability of the node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import pci
from ironic_rules.inspection.hooks.base import InspectionHook
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.text import printable

OPTION = "[inspector]pci_device_alias"
_KEYS = {"vendor_id", "product_id", "name"}


class PCIDevicesHook(InspectionHook):
    """Sets a capability per name in ``[inspector]pci_device_alias``: the number of its devices in ``pci_devices``.

    Several aliases of the same name are counted together. A capability of a name without devices is removed. The
    ramdisk must run the collector ``pci-devices``; a report without ``pci_devices`` changes nothing and causes a
    warning.
    """

    #: (vendor id, product id) -> names
    _names: dict[tuple[str, str], set[str]]

    def configure(self, settings: HookSettings) -> None:
        """:raises ConfigurationError: an entry is not in the format that the option's help describes"""
        super().configure(settings)
        self._names = {}
        for text in settings.pci_device_alias:
            ids, name = _parse(text)
            self._names.setdefault(ids, set()).add(name)

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        if not self._names:
            return
        devices = pci.devices(task, inventory, plugin_data)
        if devices is None:
            return
        counts = Counter(name for device in devices for name in self._names.get(device.ids, ()))
        properties = task.node.properties
        found = properties.get("capabilities")
        for name in sorted(set().union(*self._names.values())):
            if counts[name]:
                found = capabilities.put(found, name, counts[name])
            elif capabilities.get(found, name) is not None:
                found = capabilities.remove(found, name)
        if found != properties.get("capabilities"):
            properties["capabilities"] = found


def _parse(text: str) -> tuple[tuple[str, str], str]:
    entry = f"{OPTION}: '{printable(text, 200)}'"
    try:
        alias = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise ConfigurationError(f"{entry} is not JSON: {exc}.") from exc
    if not isinstance(alias, dict) or set(alias) != _KEYS:
        raise ConfigurationError(f"{entry} is not an object with exactly vendor_id, product_id and name.")
    vendor, product = pci.parse_id(alias["vendor_id"]), pci.parse_id(alias["product_id"])
    if vendor is None or product is None:
        raise ConfigurationError(f"{entry}: vendor_id and product_id are texts of four hexadecimal digits.")
    if not capabilities.is_name(alias["name"]):
        raise ConfigurationError(f"{entry}: name is a capability, without colons, commas and blanks.")
    return (vendor, product), alias["name"]
