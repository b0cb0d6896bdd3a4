"""``ipmi``: machines whose BMC supports IPMI, with ``ipmitool`` power and management."""

from __future__ import annotations

import re
import uuid as uuids
from typing import Any

from oslo_log import log

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware.agent import instance
from ironic_rules.hardware.base import HardwareType, ManagementInterface, PowerInterface, boot_device_args
from ironic_rules.hardware.boot import device as boot_device
from ironic_rules.hardware.ipmi import tool
from ironic_rules.hardware.ipmi.tool import IPMIInterface
from ironic_rules.hardware.waiting import wait_for_power
from ironic_rules.models import machine_ids, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.task import Task
from ironic_rules.steps import declaration
from ironic_rules.steps.declaration import requested_step


class IPMIHardware(HardwareType):
    supported_boot_interfaces = ("ipxe", "fake")
    supported_deploy_interfaces = ("direct", "ramdisk", "custom-agent")
    supported_management_interfaces = ("ipmitool", "noop")
    supported_power_interfaces = ("ipmitool",)


#: Commands of ``chassis power`` after which the machine boots.
_BOOTS = frozenset({"on", "cycle", "reset"})
_STATUS = re.compile(r"Chassis Power is (on|off)")


class IPMIToolPower(IPMIInterface, PowerInterface):
    """Runs ``chassis power``, and waits until the BMC reports that the change is complete."""

    def get_power_state(self, task: Task) -> str:
        match = _STATUS.search(self.ipmitool(task, "power", "status"))
        if match is None:
            raise BMCError(node=task.node.uuid, reason="it does not report the power state of the machine.")
        return states.POWER_ON if match.group(1) == "on" else states.POWER_OFF

    def refusal(self, node: Any, target: str) -> str | None:
        if target == states.SOFT_REBOOT and node.disable_power_off:
            return ("is refused, because the node has disable_power_off, and IPMI has no graceful reboot that keeps "
                    "the power on; request 'rebooting' instead")
        return super().refusal(node, target)

    def set_power_state(self, task: Task, target: str, timeout_s: int | None = None) -> None:
        self.check_target(task.node, target)
        is_on = self.get_power_state(task) == states.POWER_ON
        soft_timeout_s = timeout_s or self.conf.conductor.soft_power_off_timeout
        if target == states.POWER_OFF and is_on:
            self._switch(task, "off", states.POWER_OFF, timeout_s)
        elif target == states.SOFT_POWER_OFF and is_on:
            self._switch(task, "soft", states.POWER_OFF, soft_timeout_s)
        elif target == states.SOFT_REBOOT and is_on:
            self._switch(task, "soft", states.POWER_OFF, soft_timeout_s)
            self._switch(task, "on", states.POWER_ON, None)
        elif target == states.REBOOT and is_on:
            # A reset keeps the power on.
            self._switch(task, "reset" if task.node.disable_power_off else "cycle", states.POWER_ON, timeout_s)
        elif target in (states.POWER_ON, states.REBOOT, states.SOFT_REBOOT) and not is_on:
            self._switch(task, "on", states.POWER_ON, timeout_s)
        task.node.power_state = states.POWER_OFF if target in states.OFF_TARGETS else states.POWER_ON

    def _switch(self, task: Task, command: str, ends: str, timeout_s: int | None) -> None:
        if command in _BOOTS:
            boot_device.renew(self, task)
        self.ipmitool(task, "power", command)
        wait_for_power(task, lambda: self.get_power_state(task), ends,
                 timeout_s or self.conf.conductor.power_state_change_timeout)


LOG = log.getLogger(__name__)

DEVICES = ("pxe", "disk", "cdrom", "bios", "safe")
#: Set System Boot Options, parameter 3: the device remains set even if the machine takes longer than 60 s to boot.
_NO_BOOT_TIMEOUT = ("raw", "0x00", "0x08", "0x03", "0x08")
#: Request of ``ipmitool mc guid``, but with octets as the reply: versions of ipmitool show them in different orders.
_SYSTEM_GUID = "raw 0x06 0x37"
_GUID = re.compile(r"^((?: [0-9a-f]{2}){16})\s*$", re.MULTILINE)
#: FRU 0 describes the machine itself. In the output of ipmitool an empty field is absent.
_SYSTEM_FRU = "fru print 0"
_SERIAL = re.compile(r"^ *Product Serial +: (.*?)\s*$", re.MULTILINE)
#: Seconds for both. A FRU is read by some dozens of requests.
_IDS_S = 15.0
#: The name of each device in the output of `chassis bootparam get 5`, in lower case.
_SELECTORS = (
    ("pxe", "pxe"), ("safe-mode", "safe"), ("hard-drive", "disk"), ("cd/dvd", "cdrom"), ("bios setup", "bios"))


class IPMIToolManagement(IPMIInterface, ManagementInterface):
    """``chassis bootdev``."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(DEVICES)

    def get_boot_device(self, task: Task) -> JSONObject:
        output = self.ipmitool(task, "chassis", "bootparam", "get", "5").lower()
        selector = re.search(r"boot device selector\s*:\s*(.+)", output)
        text = selector.group(1) if selector else ""
        device = next((name for part, name in _SELECTORS if part in text), None)
        if device is None:
            return {"boot_device": None, "persistent": None}
        return {"boot_device": device, "persistent": "options apply to all future boots" in output}

    def machine_ids(self, task: Task) -> set[str]:
        output = self.ipmitool_all(task, (_SYSTEM_GUID, _SYSTEM_FRU), _IDS_S)
        guid, serial = _GUID.search(output), _SERIAL.search(output)
        ids = machine_ids.of(serial and serial.group(1), None)
        if guid:
            octets = bytes.fromhex(guid.group(1))
            # IPMI 2.0, section 20.8, sends the last octet first; most BMCs send the octets of SMBIOS as they are.
            for order in (octets, octets[::-1]):
                ids |= machine_ids.of(None, str(uuids.UUID(bytes=order)))
        return ids

    def inject_nmi(self, task: Task) -> None:
        self.ipmitool(task, "power", "diag")

    @requested_step(boot_device_args(declaration.one_of(DEVICES)), rerunnable=True)
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in DEVICES:
            raise InvalidParameterValue(f"Unknown boot device '{device}'. Valid: {', '.join(DEVICES)}.")
        if not tool.parse_driver_info(task.node.driver_info).force_boot_device:
            self._set(task, device, persistent=persistent)
            boot_device.stop_renewing(task)
            return
        self._set(task, device, persistent=False)
        if persistent:
            boot_device.renew_before_boots(task, device)
        else:
            boot_device.keep_for_next_boot(task)

    def renew_boot_device(self, task: Task, device: str) -> None:
        try:
            self._set(task, device, persistent=False)
        except BMCError as exc:
            LOG.warning("The boot device %s of node %s was not set again: %s", device, task.node.uuid, exc)

    def _set(self, task: Task, device: str, *, persistent: bool) -> None:
        if tool.parse_driver_info(task.node.driver_info).disable_boot_timeout:
            try:
                self.ipmitool(task, *_NO_BOOT_TIMEOUT)
            except BMCError as exc:
                # Many BMCs do not support this parameter. If the BMC cannot be reached, the next command fails.
                LOG.warning("The boot device of node %s may be reset after 60 seconds: %s", task.node.uuid, exc)
        # There is no other command for the boot mode.
        by_uefi = instance.boot_mode(task.node, self.conf.deploy.default_boot_mode) != "bios"
        options = [*(["persistent"] if persistent else []), *(["efiboot"] if by_uefi else [])]
        self.ipmitool(task, "chassis", "bootdev", device, *([f"options={','.join(options)}"] if options else []))
