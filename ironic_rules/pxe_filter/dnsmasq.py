"""The local dnsmasq processes: signalling them to read their files again."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from oslo_log import log as logging

from ironic_rules.pxe_filter import signals

LOG = logging.getLogger(__name__)


def running(pid_file: str) -> int | None:
    """Return the process id in the file, None if no dnsmasq runs with it."""
    try:
        pid = int(Path(pid_file).read_text(encoding="ascii").strip())
        command = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    # If a dnsmasq died, the id in its file may now be that of an unrelated process.
    return pid if pid > 1 and command == "dnsmasq" else None


def started(pid_file: str) -> tuple[int, str] | None:
    """Return what identifies the running dnsmasq of a PID file, its id and start time; None if none runs."""
    pid = running(pid_file)
    try:
        # The second field, the name of the program, may contain spaces; the start time is the 20th after it.
        return None if pid is None else (pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return None


def reload(pid_files: Sequence[str]) -> bool:
    """Signal every dnsmasq to read its hosts files again; return whether all of them were signalled."""
    complete = True
    for pid_file in pid_files:
        try:
            signals.signal_dnsmasq(pid_file, signal.SIGHUP)
        except OSError as exc:
            LOG.warning("The dnsmasq of %s cannot be signalled to reload: %s", pid_file, exc)
            complete = False
    return complete
