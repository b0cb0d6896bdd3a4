"""``no-bios``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, BIOSInterface


class NoBIOS(Absent, BIOSInterface):
    """The firmware setup is out of reach."""
