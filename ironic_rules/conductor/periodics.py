"""Loops that run beside the work: sleeping in an event, so that ``stop`` is immediate."""

from __future__ import annotations

import threading
from collections.abc import Callable

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class Loop:
    """Calls ``body`` every ``interval_s`` seconds in its own thread; one bad pass is logged and the loop goes on."""

    def __init__(self, name: str, interval_s: float, body: Callable[[], object]) -> None:
        self._name = name
        self._interval_s = interval_s
        self._body = body
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first pass comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Make the loop end after the pass it is in."""
        self._stopped.set()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the last pass."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            try:
                self._body()
            except Exception:  # one bad pass must not stop the rest
                LOG.exception("A pass of the loop '%s' failed; it goes on", self._name)
