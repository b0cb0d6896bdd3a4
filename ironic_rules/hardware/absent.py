"""Interfaces without a function: the ``no-*`` interfaces refuse every operation, the ``noop`` interfaces do nothing."""

from __future__ import annotations

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
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task


class Absent(Interface):
    """Mix-in of the ``no-*`` interfaces: the node does not support this kind, and validation reports that."""

    def validate(self, task: Task) -> None:
        raise self.refuse(task, f"{self.kind} (disabled or not implemented)")


class NoBIOS(Absent, BIOSInterface):
    """BIOS settings are not supported."""


class NoConsole(Absent, ConsoleInterface):
    """The console is not supported."""


class NoFirmware(Absent, FirmwareInterface):
    """Firmware updates are not supported."""


class NoInspect(Absent, InspectInterface):
    """Inspection is not supported."""

    def inspect_hardware(self, task: Task) -> InspectionData | None:
        raise self.refuse(task)


class NoRAID(Absent, RAIDInterface):
    """RAID configuration is not supported."""


class NoRescue(Absent, RescueInterface):
    """Rescue is not supported."""

    def rescue(self, task: Task) -> None:
        raise self.refuse(task)

    def unrescue(self, task: Task) -> None:
        raise self.refuse(task)


class NoVendor(Absent, VendorInterface):
    """Vendor-specific functions are not supported."""


class NoopManagement(ManagementInterface):
    """Accepts every boot device and ignores it; the current one is unknown."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return []

    def get_boot_device(self, task: Task) -> JSONObject:
        return {"boot_device": None, "persistent": None}

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        pass


class NoopNetwork(NetworkInterface):
    """Does not change the network."""


class NoopStorage(StorageInterface):
    """Attaches no volumes."""
