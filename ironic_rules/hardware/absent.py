"""What is absent: the ``no-*`` interfaces refuse, the ``noop`` interfaces leave things as they are."""

from __future__ import annotations

from typing import Any

from ironic_rules.hardware.base import (
    BIOSInterface,
    ConsoleInterface,
    FirmwareInterface,
    InspectInterface,
    Interface,
    ManagementInterface,
    NetworkInterface,
    RAIDInterface,
    RescueInterface,
    StorageInterface,
    VendorInterface,
)
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task


class Absent(Interface):
    """Mix-in of the ``no-*`` interfaces: the node has nothing of this kind, and validation says so."""

    def validate(self, task: Task) -> None:
        raise self.refuse(task, f"{self.kind} (disabled or not implemented)")


class NoBIOS(Absent, BIOSInterface):
    """The firmware setup is out of reach."""


class NoConsole(Absent, ConsoleInterface):
    """There is no console."""


class NoFirmware(Absent, FirmwareInterface):
    """Firmware is out of reach."""


class NoInspect(Absent, InspectInterface):
    """The node cannot be inspected."""

    def inspect_hardware(self, task: Task) -> InspectionData | None:
        raise self.refuse(task)


class NoRAID(Absent, RAIDInterface):
    """There is no controller to configure."""


class NoRescue(Absent, RescueInterface):
    """There is no rescue system."""

    def rescue(self, task: Task) -> None:
        raise self.refuse(task)

    def unrescue(self, task: Task) -> None:
        raise self.refuse(task)


class NoVendor(Absent, VendorInterface):
    """There is nothing vendor-specific."""


class NoopManagement(ManagementInterface):
    """Knows no boot device and takes every one."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return []

    def get_boot_device(self, task: Task) -> dict[str, Any]:
        return {"boot_device": None, "persistent": None}

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        pass


class NoopNetwork(NetworkInterface):
    """Leaves the network as it is."""


class NoopStorage(StorageInterface):
    """Attaches no volumes."""
