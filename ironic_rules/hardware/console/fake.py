"""``fake`` console: always valid."""

from __future__ import annotations

from ironic_rules.hardware.base import ConsoleInterface


class FakeConsole(ConsoleInterface):
    """A console that nobody can look at."""
