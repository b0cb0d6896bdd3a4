"""Wrong passwords, and the addresses that they came from."""

from __future__ import annotations

import threading
from collections.abc import Callable

from oslo_log import log as logging

from ironic_rules.exceptions import TooManyAttempts

LOG = logging.getLogger(__name__)

#: Maximum number of addresses.
_REMEMBERED = 1000
#: Wrong passwords that an address may send before it has to wait so many seconds between two, until it has sent none
#: for a minute.
_FREE_ATTEMPTS = 5
_WAIT_S = 1.0
_FORGOTTEN_S = 60.0


class Sources:
    """Addresses from which wrong passwords came: after some of them, one is checked per second, right or wrong.

    Passwords that were right before are not checked again, so that users behind the same proxy are not affected.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: Address -> (wrong passwords, time of the last attempt); the one that failed longest ago is first.
        self._failed: dict[str, tuple[int, float]] = {}

    def check(self, source: str) -> None:
        """Count an attempt.

        :raises TooManyAttempts: 429, there was one within the last second
        """
        now = self._clock()
        with self._lock:
            failures, last = self._failed.get(source, (0, now))
            if now - last >= _FORGOTTEN_S:
                self._failed.pop(source, None)
            elif failures >= _FREE_ATTEMPTS:
                if now - last < _WAIT_S:
                    raise TooManyAttempts()
                self._failed[source] = (failures, now)

    def note(self, source: str, is_right: bool) -> None:
        with self._lock:
            failures, _ = self._failed.pop(source, (0, 0.0))
            if is_right:
                return
            self._failed[source] = (failures + 1, self._clock())
            if len(self._failed) > _REMEMBERED:
                del self._failed[next(iter(self._failed))]
        LOG.log(logging.WARNING if failures + 1 == _FREE_ATTEMPTS else logging.INFO,
                "Wrong user name or password from %s (%d in a row).", source, failures + 1)
