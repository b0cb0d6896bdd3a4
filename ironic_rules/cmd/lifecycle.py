"""Running a command: its errors in one line, signals as an event, and an exit that waits for nobody."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from oslo_config import cfg

from ironic_rules.exceptions import IronicRulesError

#: ``--host`` and ``--port`` of the commands that listen. Their names in files are [api]host_ip and [api]port.
LISTEN_OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt("host", dest="cli_host", help="Address to listen on (overrides [api]host_ip)."),
    cfg.PortOpt("port", dest="cli_port", min=0, help="TCP port to listen on (overrides [api]port)."),
]


def apply_listen_opts(conf: cfg.ConfigOpts) -> None:
    """Let ``--host`` and ``--port`` override ``[api]host_ip`` and ``[api]port``."""
    if conf.cli_host is not None:
        conf.set_override("host_ip", conf.cli_host, group="api")
    if conf.cli_port is not None:
        conf.set_override("port", conf.cli_port, group="api")


def settle() -> None:
    """Take what was loaded at the start out of the garbage collector's sight: it stays for the life of the process."""
    gc.collect()
    gc.freeze()


def stop_event() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set."""
    event = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: event.set())
    return event


def exit_now(status: int = 0) -> None:
    """End the process without waiting for threads: what they have not saved is stored and resumed at the next start."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def guarded(command: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Return the command's exit status; what keeps it from running is told in one line, status 2."""
    try:
        return command(sys.argv[1:] if argv is None else argv)
    except (IronicRulesError, cfg.Error) as exc:
        print(f"{os.path.basename(sys.argv[0])}: {exc}", file=sys.stderr)
        return 2
