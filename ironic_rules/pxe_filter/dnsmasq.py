"""The local processes: which dnsmasq runs, and signalling it to read its files again."""

from __future__ import annotations

import signal
from pathlib import Path

from oslo_log import log as logging

from ironic_rules.pxe_filter import signals

LOG = logging.getLogger(__name__)


def running(pid_file: str) -> int | None:
    """Return the process id in the file, None if no dnsmasq runs with it."""
    try:
        pid = signals.pid_in(pid_file)
    except OSError:
        return None
    return pid if pid is not None and signals.is_dnsmasq(pid) else None


def started(pid_file: str) -> str | None:
    """Return what identifies the running dnsmasq of a PID file; None if none runs."""
    pid = running(pid_file)
    return None if pid is None else identity_of(pid)


def identity_of(pid: int) -> str | None:
    """Return what identifies a running process, its id and its start time; None if it is not running."""
    try:
        # The second field, the name of the program, may contain spaces; the start time is the 20th after it.
        return f"{pid} {Path(f'/proc/{pid}/stat').read_text(errors='replace').rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return None


def reload(pid_file: str) -> bool:
    """Signal the dnsmasq to read its hosts files again; return whether it was signalled."""
    try:
        signals.signal_dnsmasq(pid_file, signal.SIGHUP)
    except OSError as exc:
        LOG.warning("The dnsmasq of %s cannot be signalled to reload: %s", pid_file, exc)
        return False
    return True
