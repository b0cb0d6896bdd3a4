"""The IP addresses of a node's BMC, with host names resolved.

A name server that does not respond must delay neither a conductor nor its shutdown: names are resolved by a bounded
number of daemon threads, and the names of one node share one timeout. Answers, including negative ones, are cached for
a short time, so that the inspection of a rack resolves the name of its chassis once.
"""

from __future__ import annotations

import queue
import re
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from oslo_log import log

from ironic_rules.models import addresses as ip
from ironic_rules.text import printable

LOG = log.getLogger(__name__)

RESOLVER_THREADS = 8
MAX_ADDRESSES = 32
# The last label must not be a number: getaddrinfo would read "32", "0x20" and "10.1" as IPv4 addresses.
_HOST_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.)*(?!(?:[0-9]+|0[Xx][0-9A-Fa-f]*)\.?\Z)"
                        r"[A-Za-z0-9][A-Za-z0-9-]{0,62}\.?")
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
        self._answers: dict[str, tuple[float, frozenset[str]]] = {}

    def get(self, name: str) -> frozenset[str] | None:
        """Return the addresses of ``name``, an empty set if it is known to have none; None if no answer is cached."""
        with self._lock:
            until, found = self._answers.get(name, (0.0, frozenset()))
        return found if time.monotonic() < until else None

    def put(self, name: str, found: set[str]) -> None:
        """Cache an answer."""
        until = time.monotonic() + (KEEP_S if found else KEEP_NOTHING_S)
        with self._lock:
            self._answers.pop(name, None)
            self._answers[name] = until, frozenset(found)
            while len(self._answers) > MAX_KEPT:
                del self._answers[next(iter(self._answers))]

    def clear(self) -> None:
        """Remove all answers."""
        with self._lock:
            self._answers.clear()


cache = Cache()


def addresses(driver_info: Mapping[str, Any], timeout_s: float = RESOLVE_TIMEOUT_S) -> list[str]:
    """Return the addresses of a node's BMC, normalised and sorted. A name that is not resolved in time has none.

    :param timeout_s: for all names together, seconds
    """
    names = []
    found = set()
    for name in ip.hosts(driver_info):
        if ip.parse(name) is not None:
            found.add(ip.normalize(name))
        elif len(name) < 254 and _HOST_NAME.fullmatch(name):
            names.append(name)
        else:
            LOG.warning("Ignored, neither an IP address nor a host name of a BMC: %s", printable(name))
    found.update(map(ip.normalize, _resolve(names, timeout_s)))
    return sorted(address for address in found if address is not None)[:MAX_ADDRESSES]


def _resolve(names: list[str], timeout_s: float) -> set[str]:
    deadline = time.monotonic() + timeout_s
    answers: queue.SimpleQueue[tuple[str, set[str]]] = queue.SimpleQueue()
    pending = set()
    found: set[str] = set()
    for name in names:
        if (kept := cache.get(name)) is not None:
            found |= kept
            continue
        if _slots.acquire(timeout=max(0.0, deadline - time.monotonic())):
            threading.Thread(target=_look_up, args=(name, answers), name="bmc-resolver", daemon=True).start()
        pending.add(name)
    while pending:
        try:
            name, resolved = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            LOG.warning("Not resolved within %s s: BMC host %s", timeout_s, ", ".join(sorted(pending)))
            break
        pending.discard(name)
        found |= resolved
    return found


def _look_up(name: str, answers: queue.SimpleQueue[tuple[str, set[str]]]) -> None:
    resolved: set[str] = set()
    try:
        resolved = {str(entry[4][0]) for entry in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
        cache.put(name, resolved)
    except (OSError, UnicodeError) as exc:
        LOG.warning("BMC host %s cannot be resolved: %s", name, exc)
        cache.put(name, resolved)
    finally:
        _slots.release()
        answers.put((name, resolved))
