"""Signals to a dnsmasq that is known by its PID file."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def signal_dnsmasq(pid_file: str, number: signal.Signals) -> None:
    """Send a signal to the dnsmasq whose process id is in the file, and to no other process.

    If it ends at any moment, its id may become that of another process. So the process is held by a descriptor before
    its name is read, and the descriptor is signalled: what was checked is what gets the signal.

    :raises ProcessLookupError: no dnsmasq runs with that id
    :raises OSError: the file cannot be read, or the process belongs to another user
    """
    missing = ProcessLookupError("no dnsmasq runs with the process id in it")
    try:
        pid = int(Path(pid_file).read_text(encoding="ascii").strip())
    except ValueError:
        raise missing from None
    if pid < 2:
        raise missing
    try:
        process = os.pidfd_open(pid)
    except (ProcessLookupError, OverflowError):
        raise missing from None
    try:
        if _name(pid) != "dnsmasq":
            raise missing
        signal.pidfd_send_signal(process, number)
    finally:
        os.close(process)


def _name(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:  # it has ended
        return None
