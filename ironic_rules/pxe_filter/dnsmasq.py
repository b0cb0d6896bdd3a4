"""The dnsmasq processes beside the filter: asking one to read its files again."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def running(pid_file: str) -> int | None:
    """Return the process id in the file, None if there is no dnsmasq with it."""
    try:
        pid = int(Path(pid_file).read_text(encoding="ascii").strip())
        command = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    # The file of one that died may name a process that has nothing to do with it.
    return pid if pid > 1 and command == "dnsmasq" else None


def reload(pid_files: Sequence[str]) -> bool:
    """Have every dnsmasq read its hosts files again; say whether all of them were told to."""
    complete = True
    for pid_file in pid_files:
        pid = running(pid_file)
        try:
            if pid is None:
                raise ProcessLookupError("no dnsmasq runs with the process id in it")
            os.kill(pid, signal.SIGHUP)
        except OSError as exc:
            LOG.warning("The dnsmasq of %s cannot be told to reload: %s", pid_file, exc)
            complete = False
    return complete
