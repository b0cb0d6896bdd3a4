"""The stage that a piece of work is in, and the time that each of its stages took."""

from __future__ import annotations

import time


class Stages:
    """Noted by the thread that works; a stage can come several times. Costs less than a microsecond per stage."""

    __slots__ = ("_began", "_seconds", "now")

    def __init__(self, first: str) -> None:
        self.now = first
        self._began = time.monotonic()
        self._seconds: dict[str, float] = {}

    def begin(self, stage: str) -> None:
        """Begin a stage, which ends the one before."""
        moment = time.monotonic()
        self._seconds[self.now] = self._seconds.get(self.now, 0.0) + moment - self._began
        self.now, self._began = stage, moment

    def end(self) -> dict[str, float]:
        """Return the seconds of each stage so far."""
        self.begin(self.now)
        return self._seconds
