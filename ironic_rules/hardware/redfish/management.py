"""``redfish`` management: boot device, boot mode, the BMC's clock, MAC addresses."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware.base import DEVICE_TYPES, ManagementInterface, boot_device_args
from ironic_rules.hardware.redfish import inspect, virtual_media
from ironic_rules.hardware.redfish.client import RedfishInterface
from ironic_rules.models import machine_ids
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration
from ironic_rules.steps.declaration import requested_step

LOG = log.getLogger(__name__)

_DEVICES = {"pxe": "Pxe", "disk": "Hdd", "cdrom": "Cd", "bios": "BiosSetup"}
_NAMES = {**{value: name for name, value in _DEVICES.items()}, "UsbCd": "cdrom"}
_MODES = {"uefi": "UEFI", "bios": "Legacy"}
_TIME = {"description": "a time with an offset, such as 2026-11-21T12:00:00+00:00", "type": ["string", "null"],
         "format": "date-time"}
#: The length excludes a trailing line feed, before which ``$`` also matches.
_OFFSET = {"description": "an offset such as +01:00", "type": ["string", "null"], "maxLength": 6,
           "pattern": "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$"}


class RedfishManagement(RedfishInterface, ManagementInterface):
    """Writes the boot override of the system."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(_DEVICES)

    def get_boot_device(self, task: Task) -> JSONObject:
        with self.system(task) as system:
            boot = system.boot
            target, enabled = (getattr(value, "value", value) for value in (boot.target, boot.enabled))
        if enabled == "Disabled" or target not in _NAMES:
            return {"boot_device": None, "persistent": None}
        return {"boot_device": _NAMES[target], "persistent": None if enabled is None else enabled == "Continuous"}

    @requested_step(boot_device_args(declaration.one_of(_DEVICES)), rerunnable=True)
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in _DEVICES:
            raise InvalidParameterValue(f"Unknown boot device '{device}'. Valid: {', '.join(_DEVICES)}.")
        often = self.sushy.BootSourceOverrideEnabled("Continuous" if persistent else "Once")
        with self.system(task) as system:
            system.set_system_boot_options(self.sushy.BootSource(_DEVICES[device]), enabled=often)

    def inject_nmi(self, task: Task) -> None:
        with self.system(task) as system:
            offered = {getattr(kind, "value", kind) for kind in system.get_allowed_reset_system_values()}
            if "Nmi" not in offered:
                raise BMCError(node=task.node.uuid, reason="it does not offer Nmi.")
            system.reset_system(self.sushy.ResetType.NMI)

    def get_virtual_media(self, task: Task) -> list[JSONObject]:
        with self.system(task) as system:
            return virtual_media.drives(system)

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str) -> None:
        with self.system(task) as system:
            virtual_media.insert(task, system, device_type, image_url)

    def detach_virtual_media(self, task: Task, device_types: Sequence[str] = ()) -> None:
        with self.system(task) as system:
            virtual_media.eject(system, device_types or DEVICE_TYPES)

    def get_secure_boot(self, task: Task) -> bool | None:
        with self.system(task) as system:
            if "SecureBoot" not in system.json:
                return None
            return None if system.secure_boot.enabled is None else bool(system.secure_boot.enabled)

    def set_secure_boot(self, task: Task, is_on: bool) -> None:
        with self.system(task) as system:
            if "SecureBoot" not in system.json:
                raise self.refuse(task, "set_secure_boot")
            system.secure_boot.set_enabled(is_on)

    def machine_ids(self, task: Task) -> set[str]:
        with self.system(task) as system:
            return machine_ids.of(system.serial_number, system.uuid)

    def get_mac_addresses(self, task: Task) -> list[str]:
        errors = self.sushy.exceptions
        with self.system(task) as system:
            try:
                # Interfaces with a health of OK: address -> state
                found = system.ethernet_interfaces.summary
            except (errors.ConnectionError, errors.AccessError, errors.MissingXAuthToken):
                raise
            except (errors.SushyError, AttributeError, KeyError, TypeError, ValueError) as exc:
                # Without the text: a BMC may return what was sent to it.
                LOG.warning("The BMC of node %s does not report its network interfaces: %s", task.node.uuid,
                            type(exc).__name__)
                return []
        return [address for address, state in found.items() if getattr(state, "value", state) == "Enabled"]

    def get_supported_boot_modes(self, task: Task) -> list[str]:
        return list(_MODES)

    def get_boot_mode(self, task: Task) -> str | None:
        with self.system(task) as system:
            return _boot_mode(system)

    @requested_step({
        "mode": {"description": "uefi or bios.", "required": True, "schema": declaration.one_of(_MODES)},
    }, rerunnable=True)
    def set_boot_mode(self, task: Task, mode: str) -> None:
        if mode not in _MODES:
            raise InvalidParameterValue(f"Unknown boot mode '{mode}'. Valid: {', '.join(_MODES)}.")
        with self.system(task) as system:
            if _boot_mode(system) != mode:
                system.set_system_boot_options(mode=self.sushy.BootSourceOverrideMode(_MODES[mode]))

    @requested_step({
        "target_datetime": {"description": "The time to set, such as 2026-11-21T12:00:00+00:00. Default: now.",
                            "schema": _TIME},
        "datetime_local_offset": {"description": "The offset of the BMC's time zone, such as +01:00.",
                                  "schema": _OFFSET},
    }, rerunnable=True)
    def set_bmc_clock(self, task: Task, target_datetime: str | None = None,
                      datetime_local_offset: str | None = None) -> None:
        """Set the clock of the BMC."""
        wanted = (datetime.datetime.fromisoformat(target_datetime) if target_datetime is not None
                  else datetime.datetime.now(datetime.UTC))
        with self.system(task) as system:
            managers = system.managers
            if not managers:
                raise BMCError(node=task.node.uuid, reason="it does not report which manager the system has.")
            managers[0].set_datetime(wanted.isoformat(timespec="seconds"), datetime_local_offset)


def _boot_mode(system: Any) -> str | None:
    mode = system.boot.mode if system.boot else None
    return inspect.boot_mode(getattr(mode, "value", mode))
