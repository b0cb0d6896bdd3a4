"""``no-firmware``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, FirmwareInterface


class NoFirmware(Absent, FirmwareInterface):
    """Firmware is out of reach."""
