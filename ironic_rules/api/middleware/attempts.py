"""Wrong passwords, the addresses that they came from, and whose password is checked next."""

from __future__ import annotations

import contextlib
import ipaddress
import threading
from collections.abc import Callable, Iterator, Sequence

from oslo_log import log as logging

from ironic_rules.exceptions import TooManyAttempts, Unavailable

LOG = logging.getLogger(__name__)

#: Maximum number of addresses.
_REMEMBERED = 1000
#: Wrong passwords that an address may send before it has to wait so many seconds between two, until it has sent none
#: for a minute.
_FREE_ATTEMPTS = 5
_WAIT_S = 1.0
_FORGOTTEN_S = 60.0
#: Length of the prefix of an IPv6 network whose addresses all belong to one user.
_OF_ONE_USER = 64


class Sources:
    """Addresses from which wrong passwords came: after some of them, one is checked per second, right or wrong.

    Passwords that were right before are not checked again, so that users behind the same proxy are not affected.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: Address -> (wrong passwords, time of the last attempt); the one that failed longest ago is first.
        self._failed: dict[str, tuple[int, float]] = {}
        #: Address -> the same for its requests in vain: those with a wrong password, and those refused unchecked.
        self._in_vain: dict[str, tuple[int, float]] = {}

    def check(self, source: str) -> None:
        """Count an attempt.

        :raises TooManyAttempts: 429, there was one within the last second
        """
        source, now = _user(source), self._clock()
        with self._lock:
            failures, last = self._failed.get(source, (0, now))
            if now - last >= _FORGOTTEN_S:
                self._failed.pop(source, None)
            elif failures >= _FREE_ATTEMPTS:
                if now - last < _WAIT_S:
                    raise TooManyAttempts()
                self._failed[source] = (failures, now)

    def note(self, source: str, is_right: bool) -> None:
        """Note that a password was checked."""
        source = _user(source)
        with self._lock:
            if is_right:
                self._failed.pop(source, None)
                self._in_vain.pop(source, None)
                return
            self._count(self._in_vain, source)
            failures = self._count(self._failed, source)
        LOG.log(logging.WARNING if failures == _FREE_ATTEMPTS else logging.INFO,
                "Wrong user name or password from %s (%d in a row).", source, failures)

    def note_refused(self, source: str) -> None:
        """Note that a request was refused before its password was checked."""
        with self._lock:
            self._count(self._in_vain, _user(source))

    def in_vain(self, source: str) -> int:
        """Return how many requests of an address were in vain, the last of them within a minute."""
        with self._lock:
            count, last = self._in_vain.get(_user(source), (0, 0.0))
        return count if self._clock() - last < _FORGOTTEN_S else 0

    def _count(self, counts: dict[str, tuple[int, float]], source: str) -> int:
        count, last = counts.pop(source, (0, 0.0))
        now = self._clock()
        count = 1 if now - last >= _FORGOTTEN_S else count + 1
        counts[source] = (count, now)
        if len(counts) > _REMEMBERED:
            del counts[next(iter(counts))]
        return count


class _Check:
    def __init__(self, source: str) -> None:
        self.source = source
        self.decided = threading.Event()
        self.is_refused = False


class PasswordChecks:
    """The checks of passwords that run, and those that wait for them: each address has its share.

    The next check is that of the address with the fewest requests, in vain or still waiting, and when all places are
    taken, one of the address with the most gives way. So a user waits for few checks, however many addresses send one
    wrong password after the other.

    :param at_once: how many run at the same time;  places: how many run or wait
    """

    def __init__(self, sources: Sources, at_once: int, places: int) -> None:
        self._sources = sources
        self._places = max(places, 1)
        self._at_once = min(at_once, self._places)
        self._lock = threading.Lock()
        self._running: list[_Check] = []
        #: checks that wait, in the order in which they came
        self._waiting: list[_Check] = []

    @contextlib.contextmanager
    def turn(self, source: str) -> Iterator[None]:
        """Run the block, which checks a password, when it is its turn.

        :raises TooManyAttempts: 429, the address has to wait;  Unavailable: 503, others come first
        """
        self._sources.check(source)
        check = _Check(_user(source))
        with self._lock:
            self._waiting.append(check)
            self._begin()
            if len(self._running) + len(self._waiting) > self._places:
                refused = self._by_turn()[-1]
                self._waiting.remove(refused)
                refused.is_refused = True
                refused.decided.set()
        check.decided.wait()
        if check.is_refused:
            self._sources.note_refused(source)
            raise Unavailable()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(check)
                self._begin()

    def _begin(self) -> None:
        while self._waiting and len(self._running) < self._at_once:
            check = self._by_turn()[0]
            self._waiting.remove(check)
            self._running.append(check)
            check.decided.set()

    def _by_turn(self) -> Sequence[_Check]:
        """Return the waiting checks, the next one first."""
        before = [check.source for check in self._running]
        shares: list[tuple[int, int, _Check]] = []
        for check in self._waiting:
            shares.append((self._sources.in_vain(check.source) + before.count(check.source), len(shares), check))
            before.append(check.source)
        return [check for *_, check in sorted(shares, key=lambda share: share[:2])]


def _user(source: str) -> str:
    """Return the address for what its user may have: the network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(source)
    except ValueError:
        return source
    if isinstance(address, ipaddress.IPv4Address):
        return source
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), _OF_ONE_USER), strict=False))
