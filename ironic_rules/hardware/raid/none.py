"""``no-raid``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, RAIDInterface


class NoRAID(Absent, RAIDInterface):
    """There is no controller to configure."""
