"""``noop`` management: whoever runs the machine sets its boot device."""

from __future__ import annotations

from typing import Any

from ironic_rules.hardware.base import ManagementInterface
from ironic_rules.models.task import Task


class NoopManagement(ManagementInterface):
    """Knows no boot device and takes every one."""

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return []

    def get_boot_device(self, task: Task) -> dict[str, Any]:
        return {"boot_device": None, "persistent": None}

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        pass
