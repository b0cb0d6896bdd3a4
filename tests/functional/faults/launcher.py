"""Runs a command with an injected fault: ``python -m tests.functional.faults.launcher MODULE ARGUMENTS``.

The environment determines the fault, so that the service itself has no code for faults:

``IRONIC_RULES_TEST_DIES_AT``
    ``MODULE:FUNCTION:before`` or ``…:after``: the process kills itself when it calls the function for the first time
``IRONIC_RULES_TEST_CLOCK``
    a file with the number of seconds by which the process' clock is ahead at the moment
``IRONIC_RULES_TEST_NAMES``
    a JSON file with the addresses of each host name that exists for the resolver of BMC addresses; the names that it
    looks up are noted in a file beside it, ``….asked``
"""

from __future__ import annotations

import datetime
import functools
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before anything else, as in a command: it selects the backend of oslo.messaging.
import ironic_rules.cmd  # noqa: F401  isort: skip


def _die_at(point: str) -> None:
    module, path, when = point.split(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    def dying(*args: Any, **kwargs: Any) -> None:
        if when == "after":
            original(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)


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
        """What the resolver uses of the module ``socket``, which stays as it is for the rest of the process."""

        SOCK_STREAM = socket.SOCK_STREAM

    Resolver.getaddrinfo = staticmethod(getaddrinfo)  # type: ignore[attr-defined]
    importlib.import_module("ironic_rules.hardware.bmc_resolver").socket = Resolver  # type: ignore[attr-defined]


def main() -> int:
    """Run the command; return its exit status."""
    if clock := os.environ.get("IRONIC_RULES_TEST_CLOCK"):
        _shift_clock(Path(clock))
    if names := os.environ.get("IRONIC_RULES_TEST_NAMES"):
        _resolve(Path(names))
    if point := os.environ.get("IRONIC_RULES_TEST_DIES_AT"):
        _die_at(point)
    return int(importlib.import_module(sys.argv[1]).main(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
