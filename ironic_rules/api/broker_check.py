"""Whether the message broker can be reached, for ``/healthcheck``, which must not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from oslo_log import log as logging

from ironic_rules.exceptions import IronicRulesError

LOG = logging.getLogger(__name__)

#: Seconds between two checks.
PERIOD_S = 5.0
#: Seconds after which a result no longer counts: the check itself hangs.
STALE_S = 15.0
#: Seconds that the first caller waits for the first result; a health check waits for the database too.
FIRST_S = 0.03


class BrokerState(NamedTuple):
    """The result of the last check; both are None before the first, ``age_s`` is the number of seconds since."""

    is_ok: bool | None
    age_s: float | None


class BrokerCheck:
    """Checks in a thread of its own, from the first question on: servers like gunicorn fork before that."""

    def __init__(self, ping: Callable[[], None]) -> None:
        """Create the check.

        :param ping: raises ``Unavailable`` if the broker cannot be reached; it may hang
        """
        self._ping = ping
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._known = threading.Event()
        self._result = (True, 0.0)
        self._begun = 0.0

    def state(self) -> BrokerState:
        """Return the result of the last check; at most the first caller waits, for less than 0.1 s."""
        with self._lock:
            if self._thread is None:
                self._begun = time.monotonic()
                self._thread = threading.Thread(target=self._run, name="broker-check", daemon=True)
                self._thread.start()
        if not self._known.wait(FIRST_S):
            return BrokerState(None if time.monotonic() - self._begun <= STALE_S else False, None)
        is_ok, at = self._result
        age = time.monotonic() - at
        return BrokerState(is_ok and age <= STALE_S, age)

    def _run(self) -> None:
        while True:
            was_ok, is_ok = self._result[0], True
            try:
                self._ping()
            except IronicRulesError:
                is_ok = False
            except Exception:  # of a library; the next check may succeed
                LOG.exception("The message broker cannot be checked")
                is_ok = False
            if was_ok and not is_ok:
                LOG.error("The message broker cannot be reached")
            self._result = is_ok, time.monotonic()
            self._known.set()
            time.sleep(PERIOD_S)
