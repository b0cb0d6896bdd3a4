"""``no-console``."""

from __future__ import annotations

from ironic_rules.hardware.base import Absent, ConsoleInterface


class NoConsole(Absent, ConsoleInterface):
    """There is no console."""
