"""``fake`` management: remembers the boot device."""

from __future__ import annotations

from typing import Any

from ironic_rules.exceptions import InvalidParameterValue
from ironic_rules.hardware.base import ManagementInterface, boot_device_args
from ironic_rules.hardware.pretending import Pretends
from ironic_rules.models.task import Task
from ironic_rules.steps import arguments
from ironic_rules.steps.declaration import deploy_step

DEVICES = ("pxe", "disk", "cdrom", "bios", "safe", "wanboot")
_KEY = "fake_boot_device"
_DEFAULT = {"boot_device": "pxe", "persistent": False}


class FakeManagement(Pretends, ManagementInterface):
    """Keeps the boot device in ``driver_internal_info``; a node that was never told boots by PXE."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(DEVICES)

    def get_boot_device(self, task: Task) -> dict[str, Any]:
        return dict(task.node.driver_internal_info.get(_KEY) or _DEFAULT)

    @deploy_step(priority=0, argsinfo=boot_device_args(arguments.one_of(DEVICES)), rerunnable=True)
    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        if device not in DEVICES:
            raise InvalidParameterValue(f"Unknown boot device '{device}'. Valid: {', '.join(DEVICES)}.")
        chosen = {"boot_device": device, "persistent": persistent}
        task.node.driver_internal_info.pop(_KEY, None)
        if chosen != _DEFAULT:
            task.node.driver_internal_info[_KEY] = chosen
