"""Runs a command with an injected fault: ``python -m tests.functional.faults.launcher MODULE ARGUMENTS``.

The environment determines the fault, so that the service itself has no code for faults:

``IRONIC_RULES_TEST_DIES_AT``
    ``MODULE:FUNCTION:before`` or ``…:after``: the process kills itself when it calls the function for the first time
``IRONIC_RULES_TEST_CLOCK``
    a file with the number of seconds by which the process' clock is ahead at the moment
``IRONIC_RULES_TEST_NAMES``
    a JSON file with the addresses of each host name that exists for the resolver of BMC addresses; the names that it
    looks up are noted in a file beside it, ``….asked``
``IRONIC_RULES_TEST_PARKS_AT``
    points as above, separated by commas: at each of them one thread waits, each at another one, and prints that; until
    the file ``IRONIC_RULES_TEST_PARKED_UNTIL`` exists. At a point that is repeated, as many threads wait.
"""

from __future__ import annotations

import collections
import datetime
import functools
import importlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before anything else, as in a command: it selects the backend of oslo.messaging.
import ironic_rules.cmd  # noqa: F401  isort: skip


def _call_at(point: str, hook: Callable[[], object]) -> None:
    module, path, when = point.split(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        if when == "before":
            hook()
        result = original(*args, **kwargs)
        if when == "after":
            hook()
        return result

    setattr(owner, name, hooked)


def _die_at(point: str) -> None:
    _call_at(point, lambda: os.kill(os.getpid(), signal.SIGKILL))


def _park_at(points: list[str], until: Path) -> None:
    guard, free = threading.Lock(), collections.Counter(points)

    def park(point: str) -> None:
        with guard:
            if until.exists() or not free[point]:
                return
            free[point] -= 1
        print(f"parked at {point}", flush=True)
        while not until.exists():
            time.sleep(0.02)
        print(f"continues at {point}", flush=True)

    for point in set(points):
        _call_at(point, functools.partial(park, point))


def _shift_clock(file: Path) -> None:
    clock = importlib.import_module("ironic_rules.db.clock")
    clock.wall = lambda: datetime.datetime.now(datetime.UTC) + datetime.timedelta(  # type: ignore[attr-defined]
        seconds=float(file.read_text() or 0))


def _resolve(file: Path) -> None:
    names = json.loads(file.read_text())

    def getaddrinfo(host: str, *arguments: Any, **named: Any) -> list[Any]:
        with file.with_suffix(".asked").open("a") as asked:
            asked.write(f"{host}\n")
        if host not in names:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_UNSPEC, socket.SOCK_STREAM, 0, "", (address, 0)) for address in names[host]]

    class Resolver:
        """The part, for the resolver, of the module ``socket``, which stays as it is for the rest of the process."""

        SOCK_STREAM = socket.SOCK_STREAM

    Resolver.getaddrinfo = staticmethod(getaddrinfo)  # type: ignore[attr-defined]
    importlib.import_module("ironic_rules.hardware.resolver").socket = Resolver  # type: ignore[attr-defined]


def main() -> int:
    """Run the command; return its exit status."""
    if clock := os.environ.get("IRONIC_RULES_TEST_CLOCK"):
        _shift_clock(Path(clock))
    if names := os.environ.get("IRONIC_RULES_TEST_NAMES"):
        _resolve(Path(names))
    if point := os.environ.get("IRONIC_RULES_TEST_DIES_AT"):
        _die_at(point)
    if points := os.environ.get("IRONIC_RULES_TEST_PARKS_AT"):
        _park_at(points.split(","), Path(os.environ["IRONIC_RULES_TEST_PARKED_UNTIL"]))
    return int(importlib.import_module(sys.argv[1]).main(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
