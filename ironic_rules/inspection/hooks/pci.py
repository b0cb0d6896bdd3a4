"""Hooks about PCI devices: ``pci-devices`` counts kinds of them, ``accelerators`` stores GPUs, FPGAs and similar ones.

The ramdisk's collector ``pci-devices`` sends the list ``pci_devices``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import orjson

from ironic_rules.exceptions import ConfigurationError
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks.base import InspectionHook, warn
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities, strict_yaml
from ironic_rules.text import enumeration, printable

_ID = re.compile(r"(?:0x)?([0-9a-f]{4})")
_ADDRESS = re.compile(r"[0-9A-Za-z:._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Device:
    """A PCI device.

    :ivar ids: those of vendor and product, four hexadecimal digits each, in lower case
    :ivar address: such as ``0000:17:00.0``; None if the report has none
    """

    ids: tuple[str, str]
    address: str | None


def parse_id(value: object) -> str | None:
    """Return a vendor's or product's id in its canonical form, ``10de``; None if ``value`` is not an id.

    ``10DE`` and ``0x10de`` are other notations of it.
    """
    match = _ID.fullmatch(value.lower()) if isinstance(value, str) else None
    return match[1] if match else None


def listed_devices(task: Task, inventory: JSONObject, plugin_data: JSONObject) -> list[Device] | None:
    """Return the devices of a report; None, and a warning, if it has no list of them.

    They are in the plugin data of a ramdisk, or in the inventory of a BMC. Malformed entries are left out; one warning
    lists them.
    """
    listed = plugin_data.get("pci_devices")
    if listed is None:
        listed = inventory.get("pci_devices")
    if not isinstance(listed, list):
        reason = "are missing; the ramdisk's collector pci-devices sends them" if listed is None else "are not a list"
        warn(task, f"PCI devices are not evaluated: pci_devices {reason}")
        return None
    devices: list[Device] = []
    malformed: list[str] = []
    for index, entry in enumerate(listed):
        device = _device(entry)
        if device is None:
            malformed.append(f"/pci_devices/{index}")
        else:
            devices.append(device)
    if malformed:
        warn(task, f"malformed PCI devices are ignored: {enumeration(malformed)}")
    return devices


def _device(entry: object) -> Device | None:
    if not isinstance(entry, dict):
        return None
    vendor, product, address = parse_id(entry.get("vendor_id")), parse_id(entry.get("product_id")), entry.get("bus")
    if vendor is None or product is None:
        return None
    is_address = isinstance(address, str) and _ADDRESS.fullmatch(address) is not None
    return Device((vendor, product), address if is_address else None)


ALIAS_OPTION = "[inspector]pci_device_alias"
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
            ids, name = _parse_alias(text)
            self._names.setdefault(ids, set()).add(name)

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        if not self._names:
            return
        devices = listed_devices(task, inventory, plugin_data)
        if devices is None:
            return
        counts = Counter(name for device in devices for name in self._names.get(device.ids, ()))
        properties = task.node.properties
        stored = properties.get("capabilities")
        for name in sorted(set().union(*self._names.values())):
            if counts[name]:
                stored = capabilities.put(stored, name, counts[name])
            elif capabilities.get(stored, name) is not None:
                stored = capabilities.remove(stored, name)
        if stored != properties.get("capabilities"):
            properties["capabilities"] = stored


def _parse_alias(text: str) -> tuple[tuple[str, str], str]:
    entry = f"{ALIAS_OPTION}: '{printable(text, 200)}'"
    try:
        alias = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise ConfigurationError(f"{entry} is not JSON: {exc}.") from exc
    if not isinstance(alias, dict) or set(alias) != _KEYS:
        raise ConfigurationError(f"{entry} is not an object with exactly vendor_id, product_id and name.")
    vendor, product = parse_id(alias["vendor_id"]), parse_id(alias["product_id"])
    if vendor is None or product is None:
        raise ConfigurationError(f"{entry}: vendor_id and product_id are texts of four hexadecimal digits.")
    if not capabilities.is_name(alias["name"]):
        raise ConfigurationError(f"{entry}: name is a capability, without colons, commas and blanks.")
    return (vendor, product), alias["name"]


ACCELERATORS_OPTION = "[inspector]known_accelerators"
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
        where = f"{ACCELERATORS_OPTION}: {printable(path or 'the list of this package')}"
        try:
            document = strict_yaml.load(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise ConfigurationError(f"{where} cannot be read: {printable(exc)}.") from exc
        self._known = _parse_accelerators(document, where)

    def __call__(self, task: Task, inventory: JSONObject, plugin_data: JSONObject) -> None:
        devices = listed_devices(task, inventory, plugin_data)
        if devices is None:
            return
        accelerators = [device for device in devices if device.ids in self._known]
        if len(accelerators) > MAX_ACCELERATORS:
            warn(task, f"only {MAX_ACCELERATORS} of {len(accelerators)} accelerators are stored")
        task.node.properties["accelerators"] = [
            {**clone(self._known[device.ids]), "pci_address": device.address}
            for device in accelerators[:MAX_ACCELERATORS]]


def _parse_accelerators(document: object, where: str) -> Known:
    listed = document.get("pci_devices") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ConfigurationError(f"{where}: /pci_devices is not a list.")
    accelerators: Known = {}
    for index, entry in enumerate(listed):
        place = f"{where}: /pci_devices/{index}"
        if not isinstance(entry, dict):
            raise ConfigurationError(f"{place} is not an object.")
        vendor, device = parse_id(entry.get("vendor_id")), parse_id(entry.get("device_id"))
        if vendor is None or device is None:
            # Unquoted, 1020 is a number in YAML, but 0b2b is not.
            raise ConfigurationError(
                f"{place}: vendor_id and device_id are texts of four hexadecimal digits; put quotes around them.")
        if (vendor, device) in accelerators:
            raise ConfigurationError(f"{place}: an earlier entry has the same vendor_id and device_id.")
        accelerators[vendor, device] = {**entry, "vendor_id": vendor, "device_id": device}
    return accelerators
