"""The local dnsmasq processes: signalling them to read their files again."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from oslo_log import log as logging

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


def reload(pid_files: Sequence[str]) -> bool:
    """Signal every dnsmasq to read its hosts files again; return whether all of them were signalled."""
    complete = True
    for pid_file in pid_files:
        pid = running(pid_file)
        try:
            if pid is None:
                raise ProcessLookupError("no dnsmasq runs with the process id in it")
            os.kill(pid, signal.SIGHUP)
        except OSError as exc:
            LOG.warning("The dnsmasq of %s cannot be signalled to reload: %s", pid_file, exc)
            complete = False
    return complete
