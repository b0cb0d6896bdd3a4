"""``accelerators``: store GPUs, FPGAs and similar devices in a property of the node."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import pci
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.documents import clone
from ironic_rules.models.task import Task
from ironic_rules.rules import strict_yaml
from ironic_rules.text import printable

OPTION = "[inspector]known_accelerators"
#: Maximum number that is stored; a machine has some dozens, or hundreds with virtual functions.
MAX_ACCELERATORS = 512

Known = dict[tuple[str, str], dict[str, Any]]


class AcceleratorsHook(InspectionHook):
    """Sets ``properties/accelerators`` to those of the PCI devices in ``pci_devices`` that are known accelerators.

    The value is a list of ``{vendor_id, device_id, type, device_info, pci_address}``, empty if there are none: the
    fields of the known accelerator, and the device's address on the bus. Known accelerators are those of a list in this
    package, or of the YAML file in ``[inspector]known_accelerators``: ``pci_devices``, a list of objects with at least
    ``vendor_id`` and ``device_id``. The ramdisk must run the collector ``pci-devices``; a report without
    ``pci_devices`` changes nothing and causes a warning.
    """

    _known: Known

    def configure(self, settings: HookSettings) -> None:
        """:raises ConfigurationError: the file cannot be read, or an entry is malformed"""
        super().configure(settings)
        path = settings.known_accelerators
        file = Path(path) if path else resources.files("ironic_rules.inspection") / "known_accelerators.yaml"
        where = f"{OPTION}: {printable(path or 'the list of this package')}"
        try:
            document = strict_yaml.load(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise ConfigurationError(f"{where} cannot be read: {printable(exc)}.") from exc
        self._known = _parse(document, where)

    def __call__(self, task: Task, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
        devices = pci.devices(task, inventory, plugin_data)
        if devices is None:
            return
        found = [device for device in devices if device.ids in self._known]
        if len(found) > MAX_ACCELERATORS:
            warn(task, f"only {MAX_ACCELERATORS} of {len(found)} accelerators are stored")
        task.node.properties["accelerators"] = [
            {**clone(self._known[device.ids]), "pci_address": device.address} for device in found[:MAX_ACCELERATORS]]


def _parse(document: Any, where: str) -> Known:
    listed = document.get("pci_devices") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ConfigurationError(f"{where}: /pci_devices is not a list.")
    known: Known = {}
    for index, entry in enumerate(listed):
        place = f"{where}: /pci_devices/{index}"
        if not isinstance(entry, dict):
            raise ConfigurationError(f"{place} is not an object.")
        vendor, device = pci.parse_id(entry.get("vendor_id")), pci.parse_id(entry.get("device_id"))
        if vendor is None or device is None:
            # Unquoted, 1020 is a number in YAML, but 0b2b is not.
            raise ConfigurationError(
                f"{place}: vendor_id and device_id are texts of four hexadecimal digits; put quotes around them.")
        if (vendor, device) in known:
            raise ConfigurationError(f"{place}: an earlier entry has the same vendor_id and device_id.")
        known[vendor, device] = {**entry, "vendor_id": vendor, "device_id": device}
    return known
