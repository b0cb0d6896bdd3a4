"""Host names resolved to IP addresses, and the addresses of a node's BMC.

A name server that does not respond must delay neither a conductor nor its shutdown: names are resolved by a bounded
number of daemon threads, and names that are resolved together share one timeout. Answers, including negative ones, are
cached for a short time, so that the inspection of a rack resolves the name of its chassis once.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Collection, Iterable, Mapping

from oslo_log import log

from ironic_rules.models import addresses as ip
from ironic_rules.models import urls
from ironic_rules.models.documents import JSON
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

RESOLVER_THREADS = 8
MAX_ADDRESSES = 32
RESOLVE_TIMEOUT_S = 10.0
#: Seconds for which answers are cached: positive ones, and those that there is no such name.
KEEP_S = 60.0
KEEP_NOTHING_S = 15.0
MAX_KEPT = 1024
_slots = threading.BoundedSemaphore(RESOLVER_THREADS)


class Cache:
    """Answers of name servers; the oldest are removed when there are too many. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[str, tuple[float, tuple[str, ...]]] = {}

    def get(self, name: str) -> tuple[str, ...] | None:
        """Return the addresses of ``name``, none if it is known to have none; None if no answer is cached."""
        with self._lock:
            until, addresses = self._answers.get(name, (0.0, ()))
        return addresses if time.monotonic() < until else None

    def put(self, name: str, addresses: Collection[str]) -> None:
        """Cache an answer."""
        until = time.monotonic() + (KEEP_S if addresses else KEEP_NOTHING_S)
        with self._lock:
            self._answers.pop(name, None)
            self._answers[name] = until, tuple(addresses)
            while len(self._answers) > MAX_KEPT:
                del self._answers[next(iter(self._answers))]

    def clear(self) -> None:
        """Remove all answers."""
        with self._lock:
            self._answers.clear()


cache = Cache()


def addresses(driver_info: Mapping[str, JSON], timeout_s: float = RESOLVE_TIMEOUT_S) -> list[str]:
    """Return the addresses of a node's BMC, normalized and sorted. A name that is not resolved in time has none.

    :param timeout_s: for all names together, seconds
    """
    names = []
    ips = set()
    for name in ip.hosts(driver_info):
        if ip.parse(name) is not None:
            ips.add(ip.normalize(name))
        elif urls.is_host_name(name):
            names.append(name)
        else:
            LOG.warning("Ignored, neither an IP address nor a host name of a BMC: %s", printable(name))
    ips.update(map(ip.normalize, resolve(names, timeout_s)))
    return sorted(address for address in ips if address is not None)[:MAX_ADDRESSES]


def resolve(names: Iterable[str], timeout_s: float) -> list[str]:
    """Return the addresses of host names; those of one name in the order in which they should be tried.

    :param timeout_s: for all names together, seconds; a name that is not resolved in time has no address
    """
    deadline = time.monotonic() + timeout_s
    answers: queue.SimpleQueue[tuple[str, list[str]]] = queue.SimpleQueue()
    pending = set()
    addresses: list[str] = []
    for name in names:
        if (cached := cache.get(name)) is not None:
            addresses += cached
            continue
        if _slots.acquire(timeout=max(0.0, deadline - time.monotonic())):
            threading.Thread(target=_look_up, args=(name, answers), name="resolver", daemon=True).start()
        pending.add(name)
    while pending:
        try:
            name, resolved = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            LOG.warning("Not resolved within %g s: %s", timeout_s, ", ".join(sorted(pending)))
            break
        pending.discard(name)
        addresses += resolved
    return addresses


def _look_up(name: str, answers: queue.SimpleQueue[tuple[str, list[str]]]) -> None:
    resolved: list[str] = []
    try:
        entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        resolved = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        cache.put(name, resolved)
    except (OSError, UnicodeError) as exc:
        LOG.warning("Host %s cannot be resolved: %s", name, exc)
        cache.put(name, resolved)
    finally:
        _slots.release()
        answers.put((name, resolved))
