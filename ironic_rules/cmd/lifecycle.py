"""Running a command: its errors in one line, signals as an event, and an exit that waits for nobody."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO

import oslo_messaging as messaging
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules.exceptions import ConfigurationError, IronicRulesError

LOG = logging.getLogger(__name__)

#: What keeps a command from running and is not a fault of ours: configuration, database, broker.
REFUSALS = (IronicRulesError, cfg.Error, db_exc.DBError, sa.exc.ArgumentError,
            sa.exc.OperationalError, messaging.MessagingException,
            ModuleNotFoundError, FileNotFoundError, PermissionError)

#: Module -> what installs it. Each is needed only where the configuration asks for what it does.
_EXTRAS = {"bcrypt": "http-basic", "keystonemiddleware": "keystone", "prometheus_client": "metrics",
           "psycopg": "postgresql", "pymysql": "mysql", "sushy": "redfish"}

#: ``--host`` and ``--port`` of the commands that listen. Their names in files are [api]host_ip and [api]port.
LISTEN_OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt("host", dest="cli_host", metavar="ADDRESS",
                       help="Address to listen on (overrides [api]host_ip)."),
    cfg.PortOpt("port", dest="cli_port", min=0, metavar="PORT", help="TCP port to listen on (overrides [api]port)."),
]


def apply_listen_opts(conf: cfg.ConfigOpts) -> None:
    """Let ``--host`` and ``--port`` override ``[api]host_ip`` and ``[api]port``."""
    if conf.cli_host is not None:
        conf.set_override("host_ip", conf.cli_host, group="api")
    if conf.cli_port is not None:
        conf.set_override("port", conf.cli_port, group="api")


def settle() -> None:
    """Take what was loaded at the start out of the garbage collector's sight: it stays for the life of the process.

    A page of a thousand nodes is tens of thousands of new objects without a cycle among them, so the collector also
    looks less often than after every 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


class Interrupted(BaseException):
    """SIGTERM or SIGINT came before the process served; what it waits for (a database, a broker) may never come."""


def reload(conf: cfg.ConfigOpts) -> None:
    """Read the configuration files again. Only options that say so in their help text change, such as ``debug``."""
    try:
        conf.mutate_config_files()
    except (cfg.Error, OSError) as exc:
        LOG.error("The configuration is not read again: %s", exc)


class StopSignals:
    """SIGTERM and SIGINT: while the process starts they raise :class:`Interrupted`, then they end :meth:`wait`.

    SIGHUP has the configuration read again, as far as it may change in a running process.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._told = threading.Event()
        self._starting = True
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)
        # In a thread of its own: the main thread may be anywhere, also in what reading the configuration needs.
        signal.signal(signal.SIGHUP, lambda number, frame: threading.Thread(
            target=reload, args=(conf,), name="reload", daemon=True).start())

    def wait(self) -> None:
        """Wait for a signal or :meth:`stop`: the process serves."""
        self._starting = False
        self._told.wait()

    def stop(self) -> None:
        """End the wait, for a reason of our own."""
        self._told.set()

    def _receive(self, number: int, frame: object) -> None:
        self._told.set()
        if self._starting:
            self._starting = False  # a second one does not disturb the end
            raise Interrupted


def lock_folder(path: str) -> IO[str]:
    """Return a file in ``path``, open and locked: the folder is this process' until the file is closed.

    Two processes in one folder would be two conductors of one name; the second would end the first.

    :raises ConfigurationError: another process has it, or nothing can be written there
    """
    try:
        file = open(os.path.join(path, "lock"), "a", encoding="utf-8")  # noqa: SIM115  (stays open)
    except OSError as exc:
        raise ConfigurationError(f"Cannot write into {path}: {exc}") from exc
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ConfigurationError(f"Another ironic-rules already works in {path}; --state-dir names another folder."
                                 ) from None
    return file


def exit_now(status: int = 0) -> None:
    """End the process without waiting for threads: what they have not saved is stored and resumed at the next start."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def refusal(exc: Exception) -> str:
    """Return what an operator is told of an error that keeps a command from running.

    :raises ModuleNotFoundError: ``exc`` itself, if it is about a module that no configuration asks for: a fault of ours
    """
    if isinstance(exc, db_exc.DBError):
        return str(exc).splitlines()[0]  # they go on with the statement and with advice
    if isinstance(exc, OSError) and exc.filename:
        return f"{exc.filename}: {exc.strerror}"
    if isinstance(exc, ModuleNotFoundError):
        if exc.name == "MySQLdb":
            return "[database]connection has to begin with mysql+pymysql:// for MariaDB and MySQL."
        if exc.name not in _EXTRAS:
            raise exc
        return (f"{exc.name}, which the configuration needs, is not installed: "
                f"pip install 'ironic-rules[{_EXTRAS[exc.name]}]'.")
    return str(exc)


def guarded(command: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Return the command's exit status; what keeps it from running is told in one line, status 2.

    A process that is told to end while it starts ends at once, with status 0.
    """
    name = os.path.basename(sys.argv[0])
    try:
        return command(sys.argv[1:] if argv is None else argv)
    except REFUSALS as exc:
        print(f"{name}: {refusal(exc)}", file=sys.stderr)
        return 2
    except Interrupted:
        print(f"{name}: told to end while it was starting", file=sys.stderr)
        exit_now()
        return 0
