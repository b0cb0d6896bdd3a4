"""The dnsmasq that is known by its PID file, and signals to it."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def pid_in(pid_file: str) -> int | None:
    """Return the process id in the file; None if it has none.

    :raises OSError: it cannot be read
    """
    try:
        pid = int(Path(pid_file).read_text(encoding="ascii").strip())
    except ValueError:
        return None
    return pid if pid > 1 else None


def is_dnsmasq(pid: int) -> bool:
    """Return whether the process is a dnsmasq: if one died, its id may now be that of an unrelated process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "dnsmasq"
    except (OSError, ValueError):  # it has ended
        return False


def signal_dnsmasq(pid_file: str, number: signal.Signals) -> None:
    """Send a signal to the dnsmasq whose process id is in the file, and to no other process.

    If it ends at any moment, its id may become that of another process. So the process is held by a descriptor before
    its name is read, and the descriptor is signalled: what was checked is what gets the signal.

    :raises ProcessLookupError: no dnsmasq runs with that id
    :raises OSError: the file cannot be read, or the process belongs to another user
    """
    missing = ProcessLookupError("no dnsmasq runs with the process id in it")
    pid = pid_in(pid_file)
    if pid is None:
        raise missing
    try:
        process = os.pidfd_open(pid)
    except (ProcessLookupError, OverflowError):
        raise missing from None
    try:
        if not is_dnsmasq(pid):
            raise missing
        signal.pidfd_send_signal(process, number)
    finally:
        os.close(process)
