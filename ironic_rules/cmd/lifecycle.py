"""Running a command: errors in one line, signals as an event, and an exit that does not wait for threads."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import logging as std_logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import oslo_messaging as messaging
import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules import log_lines, service
from ironic_rules.cmd import output
from ironic_rules.conf import sources, validation
from ironic_rules.exceptions import CannotListen, ConfigurationError, IronicRulesError
from ironic_rules.models import known_secrets
from ironic_rules.rpc import transport as rpc_transport
from ironic_rules.text import installation_of, printable

LOG = logging.getLogger(__name__)

#: Errors that prevent a command from running and are not bugs: configuration, database, broker.
REFUSALS = (IronicRulesError, cfg.Error, db_exc.DBError, sa.exc.ArgumentError,
            sa.exc.OperationalError, messaging.MessagingException,
            ModuleNotFoundError, FileNotFoundError, PermissionError)

#: Exit statuses. systemd's units do not start a process again after the first two: a person has to change something.
REFUSED, DISPLACED = 2, 3
#: Exit status of a process that lacks what may be there later: a server, its database, a port (EX_TEMPFAIL).
UNAVAILABLE = os.EX_TEMPFAIL

#: Parameters of mallopt(3), and the value of each.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MALLOC = {_M_ARENA_MAX: 1, _M_MMAP_THRESHOLD: 128 * 1024, _M_TRIM_THRESHOLD: 4 * 1024 * 1024}

#: Module -> extra that installs it. Each is needed only with certain settings.
_EXTRAS = {"bcrypt": "http-basic", "keystonemiddleware": "keystone", "prometheus_client": "metrics",
           "psycopg": "postgresql", "pymysql": "mysql", "sushy": "redfish"}

#: ``--host`` and ``--port`` of the commands that listen; in configuration files [api]host_ip and [api]port.
LISTEN_OPTS: list[cfg.Opt] = [
    cfg.HostAddressOpt("host", dest="cli_host", metavar="ADDRESS",
                       help="Address to listen on (overrides [api]host_ip)."),
    cfg.PortOpt("port", dest="cli_port", min=0, metavar="PORT", help="TCP port to listen on (overrides [api]port)."),
]


def apply_listen_opts(conf: cfg.ConfigOpts) -> None:
    """Override ``[api]host_ip`` and ``[api]port`` by ``--host`` and ``--port``."""
    if conf.cli_host is not None:
        conf.set_override("host_ip", conf.cli_host, group="api")
    if conf.cli_port is not None:
        conf.set_override("port", conf.cli_port, group="api")


def settle() -> None:
    """Exclude the objects created at start-up from garbage collection: they exist as long as the process.

    A page of a thousand nodes consists of tens of thousands of new objects without a cycle, so the collector also runs
    less often than after every 700. And threads take turns after a millisecond rather than five: a health check needs
    some turns, each of which may come after those of all other threads. The processor time per request is the same.
    """
    sys.setswitchinterval(0.001)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def give_memory_back() -> None:
    """Make the C library return blocks of 128 KiB and more to the system as soon as they are free.

    By default glibc raises that size to that of the largest block that was freed, up to 32 MiB, and keeps the smaller
    ones in each thread's own heap: a few large bodies, and the process keeps hundreds of MiB.

    All threads share one heap, of which 4 MiB may remain free: a page of 1,000 nodes needs less, so the next one finds
    the memory of the last one. Otherwise each thread took 600 pages from the system for it, and gave them back: a tenth
    of its time. To call before threads begin.
    """
    with contextlib.suppress(AttributeError, OSError):  # other C libraries have no such function, nor the problem
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in _MALLOC.items():
            mallopt(parameter, value)


#: Signals may follow each other faster than files are read.
_reloading = threading.Lock()


class Interrupted(BaseException):
    """SIGTERM or SIGINT during start-up, which may wait without limit (for a database, a broker)."""


def reload(conf: cfg.ConfigOpts) -> None:
    """Read the configuration files again. Only options documented as mutable change, such as ``debug``.

    With files that cannot be used nothing changes. Each problem is logged; none ends the process.
    """
    problem = ""
    try:
        with _reloading:
            reload_config(conf)
    except REFUSALS as exc:
        problem = refusal(exc)
    except Exception:  # a process that serves has no reason to end
        LOG.exception("The configuration is not reloaded")
    for line in problem.splitlines():  # here, since oslo.log adds to a line the error that is being handled
        LOG.error("The configuration is not reloaded: %s", line)


def reload_config(conf: cfg.ConfigOpts) -> None:
    """Read the configuration files again, and apply what may change while a process runs: all of it, or nothing.

    :raises ConfigurationError: options have values that are not allowed, with all of them, or a file cannot be read
    """
    # oslo.config prints such a value on standard error only, and ends the process.
    problems = validation.problems(validation.of_files(conf, conf._args or (), conf.default_config_files))
    if problems:
        raise ConfigurationError("\n".join(problems))
    with _unchanged_on_error(conf):
        conf.mutate_config_files()
    known_secrets.KNOWN.keep(sources.secrets_of(conf))
    log_lines.prepare_handlers()


@contextlib.contextmanager
def _unchanged_on_error(conf: cfg.ConfigOpts) -> Iterator[None]:
    """Give the options and all loggers on an error what they had: oslo.log first removes every handler.

    :raises ConfigurationError: for whatever error, such as one of the file that ``log_config_append`` names
    """
    options = conf._mutable_ns
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in log_lines.all_loggers()]
    try:
        yield
    except (Exception, SystemExit) as exc:  # also of what the file of log_config_append evaluates
        error = validation.error_of_setup(conf, exc)
        conf._mutable_ns = options
        conf.clear_override("debug")  # which no process has; there is no other way to make it forget the values
        for logger, handlers, level, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)
        raise error from exc


class StopSignals:
    """SIGTERM and SIGINT: during start-up they raise :class:`Interrupted`, later they end :meth:`wait`.

    SIGHUP reloads the configuration, as far as it may change in a running process.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._told = False
        self._starting = True
        # The kernel can let any thread take a signal of the process. Python runs handlers in the main thread only,
        # which a wait for a lock would keep from noticing; what Python writes to this pipe always wakes it.
        self._wakeup_reader, self._wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup_writer, False)
        signal.set_wakeup_fd(self._wakeup_writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._receive)
        # In its own thread: the main thread may be anywhere, even within code that reading the configuration needs.
        signal.signal(signal.SIGHUP, lambda number, frame: threading.Thread(
            target=reload, args=(conf,), name="reload", daemon=True).start())

    def wait(self) -> None:
        """Wait for a signal or :meth:`stop`: the start-up is complete."""
        self._starting = False
        while not self._told:
            os.read(self._wakeup_reader, 64)

    def stop(self) -> None:
        """End :meth:`wait` without a signal."""
        self._told = True
        with contextlib.suppress(BlockingIOError):  # full of unread signals: the wait ends anyway
            os.write(self._wakeup_writer, b"\0")

    def _receive(self, number: int, frame: object) -> None:
        self._told = True
        if self._starting:
            self._starting = False  # a second signal must not interrupt the exit
            raise Interrupted


def lock_folder(path: str) -> IO[str]:
    """Return a file in ``path``, open and locked: the folder is reserved for this process until the file is closed.

    Two processes in one folder would be two conductors with the same name; the second would displace the first.

    :raises ConfigurationError: another process uses it, or it is not writable
    """
    try:
        file = open(os.path.join(path, "lock"), "a", encoding="utf-8")  # noqa: SIM115  (stays open)
    except OSError as exc:
        raise ConfigurationError(f"[DEFAULT]state_path: Cannot write into {path}: {exc.strerror}: give the folder to "
                                 "the user of this process, or set another one.") from exc
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ConfigurationError(f"Another ironic-rules already uses {path}; set another folder with --state-dir."
                                 ) from None
    return file


def exit_now(status: int = 0) -> None:
    """Exit without waiting for threads: their unfinished work is in the database and resumed at the next start."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def refusal(exc: Exception) -> str:
    """Return the message for an operator about an error that prevents a command from running.

    :raises ModuleNotFoundError: ``exc`` itself, if no configuration needs the module: this is a bug
    """
    if isinstance(exc, db_exc.DBError | sa.exc.SQLAlchemyError):
        return service.explained(exc)
    if isinstance(exc, OSError) and exc.filename:
        return f"{exc.filename}: {exc.strerror}"
    if isinstance(exc, ModuleNotFoundError):
        if exc.name == "MySQLdb":
            return "[database]connection must begin with mysql+pymysql:// for MariaDB and MySQL."
        if exc.name not in _EXTRAS:
            raise exc
        return (f"{exc.name}, which the configuration requires, is not installed; "
                + installation_of(_EXTRAS[exc.name]))
    return "\n".join(service.placed(line) for line in str(exc).splitlines())


def warn(text: str) -> None:
    """Log a warning, and print it where the log is not seen."""
    LOG.warning("%s", text)
    if not _is_log_seen():
        print(f"WARNING: {text}", file=sys.stderr, flush=True)


def end_of_conductor(conf: cfg.ConfigOpts, *, is_displaced: bool) -> None:
    """Exit; if another process has taken over the name of this conductor, with a line and the status ``DISPLACED``."""
    if is_displaced and not _is_log_seen():  # the log has it
        text = service.placed(f"[DEFAULT]host: another process has registered as conductor {conf.host}, so this one "
                              "ends: give each conductor a host of its own.")
        print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    exit_now(DISPLACED if is_displaced else 0)


def reach_broker(conf: cfg.ConfigOpts) -> None:
    """Warn if RabbitMQ cannot be reached now. The process waits for it.

    :raises ConfigurationError: RabbitMQ refuses what ``transport_url`` says
    """
    if (away := rpc_transport.check_broker(conf)) is not None:
        warn(service.placed(away))


def guarded(command: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None, *,
            unavailable: int = REFUSED) -> int:
    """Return the command's exit status; an error that prevents it from running is printed, status 2.

    :param unavailable: the status instead if the same command may run later: with a server that could not be reached,
        or a port that was in use

    An error is one line, except that each option with an invalid value has a line of its own. The log has the same
    lines if it has been opened. Any other error is a bug: the log has its traceback, standard error one line.

    A process that is interrupted during start-up exits at once, with status 0.
    """
    name = os.path.basename(sys.argv[0])
    try:
        return output.written(name, lambda: command(sys.argv[1:] if argv is None else argv))
    except REFUSALS as exc:
        may_pass = isinstance(
            exc, db_exc.DBError | sa.exc.OperationalError | messaging.MessagingException | CannotListen)
        status = unavailable if may_pass else REFUSED
        try:
            lines = refusal(exc).splitlines()
        except ModuleNotFoundError:
            _report_bug(name, exc)
            raise
    except Interrupted:
        print(f"{name}: stopped while it was starting", file=sys.stderr)
        exit_now()
        return 0
    except Exception as exc:  # a bug, whose traceback is logged
        _report_bug(name, exc)
        raise
    for line in lines:  # here, since oslo.log adds to a line the error that is being handled
        print(f"{name}: {line}", file=sys.stderr)
        if not _is_log_seen():
            LOG.error("%s", line)
    return status


def _report_bug(name: str, exc: Exception) -> None:
    """Print one line about an error whose traceback is logged next, if the log is a file."""
    if std_logging.root.handlers and not _is_log_seen():
        print(f"{name}: unexpected error {type(exc).__name__}: {printable(exc)}; the log has the details.",
              file=sys.stderr)


def _is_log_seen() -> bool:
    """Return whether lines of the log are seen where the output of the process is, or there is no log yet."""
    handlers = std_logging.root.handlers
    # Without a file, oslo.log writes to standard output.
    return not handlers or any(output.is_standard(getattr(handler, "stream", None)) for handler in handlers)
