"""``fake`` firmware: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import FirmwareInterface


class FakeFirmware(FirmwareInterface):
    """Firmware without components."""
