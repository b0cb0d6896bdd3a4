"""``redfish`` management: boot device, boot mode, the BMC's clock, MAC addresses."""

from __future__ import annotations

import datetime
import re
from typing import Any

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware.base import ManagementInterface
from ironic_rules.hardware.redfish import inventory
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.hardware.steps import deploy_step
from ironic_rules.models.task import Task

_DEVICES = {"pxe": "Pxe", "disk": "Hdd", "cdrom": "Cd", "bios": "BiosSetup"}
_NAMES = {**{value: name for name, value in _DEVICES.items()}, "UsbCd": "cdrom"}
_MODES = {"uefi": "UEFI", "bios": "Legacy"}
_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")


class RedfishManagement(RedfishInterface, ManagementInterface):
    """Writes the boot override of the system."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(_DEVICES)

    def get_boot_device(self, task: Task) -> dict[str, Any]:
        with self.system(task) as system:
            boot = system.boot
            target, enabled = (getattr(value, "value", value) for value in (boot.target, boot.enabled))
        if enabled == "Disabled" or target not in _NAMES:
            return {"boot_device": None, "persistent": None}
        return {"boot_device": _NAMES[target], "persistent": None if enabled is None else enabled == "Continuous"}

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in _DEVICES:
            raise InvalidParameterValue(f"Unknown boot device '{device}'. Valid: {', '.join(_DEVICES)}.")
        often = self.sushy.BootSourceOverrideEnabled("Continuous" if persistent else "Once")
        with self.system(task) as system:
            system.set_system_boot_options(self.sushy.BootSource(_DEVICES[device]), enabled=often)

    def get_supported_boot_modes(self, task: Task) -> list[str]:
        return list(_MODES)

    def get_boot_mode(self, task: Task) -> str | None:
        with self.system(task) as system:
            return inventory.boot_mode(system)

    @deploy_step(priority=0, argsinfo={"mode": {"description": "uefi or bios.", "required": True}}, rerunnable=True)
    def set_boot_mode(self, task: Task, mode: str) -> None:
        if mode not in _MODES:
            raise InvalidParameterValue(f"Unknown boot mode '{mode}'. Valid: {', '.join(_MODES)}.")
        with self.system(task) as system:
            if inventory.boot_mode(system) != mode:
                system.set_system_boot_options(mode=self.sushy.BootSourceOverrideMode(_MODES[mode]))

    @deploy_step(priority=0, argsinfo={
        "target_datetime": {"description": "The time to set, such as 2026-11-21T12:00:00+00:00. Default: now."},
        "datetime_local_offset": {"description": "The offset of the BMC's time zone, such as +01:00."},
    }, rerunnable=True)
    def set_bmc_clock(self, task: Task, target_datetime: Any = None, datetime_local_offset: Any = None) -> None:
        """Set the clock of the BMC."""
        offset = datetime_local_offset
        if offset is not None and (not isinstance(offset, str) or not _OFFSET.fullmatch(offset)):
            raise InvalidParameterValue("/args/datetime_local_offset: must be an offset such as +01:00")
        wanted = _time(target_datetime)
        with self.system(task) as system:
            managers = system.managers
            if not managers:
                raise BMCError(node=task.node.uuid, reason="it does not tell which manager the system has.")
            managers[0].set_datetime(wanted, offset)

    def get_mac_addresses(self, task: Task) -> list[str]:
        with self.system(task) as system:
            return [interface["mac_address"] for interface in inventory.interfaces(system)]


def _time(text: Any) -> str:
    """Return a time as Redfish writes it; the present one for None.

    :raises InvalidParameterValue: it is none, or has no offset
    """
    if text is None:
        return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        found = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidParameterValue("/args/target_datetime: must be a time with an offset, such as "
                                    "2026-11-21T12:00:00+00:00")
    return found.isoformat(timespec="seconds")
