"""Warnings about refused machines, which must not fill the log: anyone can send data."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

#: Seconds between two warnings of the same kind.
PERIOD_S = 10.0


class Refusals:
    """Logs a warning at most once in a period, with the number of those since the last one. Thread-safe."""

    def __init__(self, log: logging.Logger | logging.LoggerAdapter[Any], period_s: float = PERIOD_S) -> None:
        self._log = log
        self._period_s = period_s
        self._lock = threading.Lock()
        self._last: float | None = None
        self._suppressed = 0

    def warn(self, text: str, *arguments: Any) -> None:
        """Count a refusal, and log it unless the last one was only just logged."""
        with self._lock:
            now = time.monotonic()
            if self._last is not None and now - self._last < self._period_s:
                self._suppressed += 1
                return
            suppressed, self._suppressed, self._last = self._suppressed, 0, now
        self._log.warning(f"{text} (%d similar refusals since the last message)", *arguments, suppressed)
