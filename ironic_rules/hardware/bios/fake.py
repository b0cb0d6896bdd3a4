"""``fake`` BIOS: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import BIOSInterface


class FakeBIOS(BIOSInterface):
    """A firmware setup without settings."""
