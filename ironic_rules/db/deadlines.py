"""Deadlines of connections to a database server that has become silent, and checks of pooled connections.

A firewall or a switch may drop what it gets. Four things end what would otherwise never end. The server cancels
statements, waits for locks, and transactions in which nothing happens: so the locks of a client that it cannot reach do
not last (``conductors.end_stalled_sessions`` has the exception). The driver has time-outs for connecting and, on
MariaDB, for reading and writing. The kernel gives up a connection whose packets are not acknowledged. And as
PostgreSQL's driver has no time-out for reading, and something in between may acknowledge everything, a thread of this
module shuts the socket of a statement that is over its deadline; the statement then fails like any whose connection was
lost.

SQLAlchemy checks a connection that leaves the pool by a query. A server that stops, restarts or kills a connection
closes its socket, often after a message: then the socket is readable, unlike that of an idle connection. Only then is
the query worth its round trip.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def watch_liveness(engine: sa.Engine) -> None:
    """Query the server of ``engine`` only if a connection may be broken."""
    ask = engine.dialect.do_ping

    def is_alive(dbapi_connection: Any) -> bool:
        return _is_quiet(dbapi_connection) or ask(dbapi_connection)

    engine.dialect.do_ping = is_alive  # type: ignore[method-assign]


def _is_quiet(dbapi_connection: object) -> bool:
    """Return whether the connection's socket is open and has nothing to read."""
    try:
        number = descriptor(dbapi_connection)
    except (AttributeError, OSError, ValueError):  # already closed, or a driver that does not provide it
        return False
    poll = select.poll()
    poll.register(number, select.POLLIN | select.POLLPRI)
    return not poll.poll(0)  # errors and hang-ups are always reported


def descriptor(dbapi_connection: Any) -> int:
    """Return the number of a connection's socket."""
    connection = getattr(dbapi_connection, "driver_connection", dbapi_connection)
    # psycopg provides it itself, PyMySQL only in its socket.
    return int(connection.fileno() if hasattr(connection, "fileno") else connection._sock.fileno())


#: Seconds that the reply of a server may take after the server should have cancelled the statement.
_GRACE_S = 5
#: TCP: seconds of silence before the first probe, seconds between two, and how many may remain unanswered.
_KEEPALIVE = (10, 5, 3)
#: Seconds between two looks at the statements in progress, at most, and after how many looks without any it ends.
_LOOK_EVERY_S = 1.0
_IDLE_LOOKS = 60
_UNKNOWN_VARIABLE = 1193
#: After the name in the URL, if there is one.
_NAME_SESSION = ("set_config('application_name', "
                 "concat_ws(' ', nullif(current_setting('application_name'), ''), 'ironic-rules'), false)")
#: Names of the parameters in URLs, which :func:`parameters` sets.
PARAMETERS = ("connect_timeout", "read_timeout", "write_timeout", "keepalives_idle", "keepalives_interval",
              "keepalives_count", "tcp_user_timeout")


def limit_s(conf: cfg.ConfigOpts) -> int:
    """Return the seconds after which a statement without a reply has lost its connection; 0: no limit."""
    timeout: int = conf.database.statement_timeout
    return timeout + _GRACE_S if timeout else 0


def parameters(conf: cfg.ConfigOpts, backend: str) -> dict[str, int]:
    """Return the driver's time-outs as parameters of a URL."""
    limit, settings = limit_s(conf), {}
    if backend in ("mysql", "mariadb"):
        settings = {"connect_timeout": conf.database.connect_timeout, "read_timeout": limit, "write_timeout": limit}
    elif backend == "postgresql":
        idle, interval, count = _KEEPALIVE
        settings = {"connect_timeout": conf.database.connect_timeout, "keepalives_idle": idle,
                    "keepalives_interval": interval, "keepalives_count": count, "tcp_user_timeout": limit * 1000}
    return {name: value for name, value in settings.items() if value}


def prepare(dbapi_connection: Any, conf: cfg.ConfigOpts, dialect: str) -> None:
    """Set the server's time-outs for a new connection, and TCP's where the driver does not."""
    options = conf.database
    if dialect == "postgresql":
        idle, interval, count = _KEEPALIVE
        values = {
            "statement_timeout": options.statement_timeout * 1000, "lock_timeout": options.lock_timeout * 1000,
            "idle_in_transaction_session_timeout": options.idle_transaction_timeout * 1000,
            # The server's side of the connection: without them, the sessions of a host that is gone remain for hours.
            "tcp_keepalives_idle": idle, "tcp_keepalives_interval": interval, "tcp_keepalives_count": count}
        with dbapi_connection.cursor() as cursor:
            cursor.execute("SELECT " + ", ".join(
                f"set_config('{name}', '{value}', false)" for name, value in values.items()) + f", {_NAME_SESSION}")
        return
    _keep_alive(dbapi_connection, limit_s(conf))
    _set(dbapi_connection, innodb_lock_wait_timeout=options.lock_timeout, lock_wait_timeout=options.lock_timeout)
    is_mariadb = _set(dbapi_connection, max_statement_time=options.statement_timeout,
                      idle_transaction_timeout=options.idle_transaction_timeout)
    if not is_mariadb:  # MySQL has no such time-out for transactions, and one only for queries
        _set(dbapi_connection, max_execution_time=options.statement_timeout * 1000)


def _set(dbapi_connection: Any, **variables: int) -> bool:
    """Set those variables of a session that are not 0; return False if the server does not know one."""
    text = ", ".join(f"{name} = {value}" for name, value in variables.items() if value)
    if not text:
        return True
    try:
        with dbapi_connection.cursor() as cursor:
            cursor.execute(f"SET SESSION {text}")
    except Exception as exc:  # of any driver
        if exc.args[:1] != (_UNKNOWN_VARIABLE,):
            raise
        return False
    return True


def _keep_alive(dbapi_connection: object, limit: int) -> None:
    """Set what libpq has parameters for."""
    sock = getattr(dbapi_connection, "_sock", None)
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in zip((socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT), _KEEPALIVE, strict=True):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    if limit:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit * 1000)


class Watchdog:
    """Shuts the sockets of statements that have had no reply for ``limit`` seconds.

    :param setting: what the limit or the database comes from, for the log
    """

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic,
                 setting: str = "[database]statement_timeout") -> None:
        self._limit_s = limit
        self._setting = setting
        self._clock = clock
        self._guard = threading.Lock()
        #: by thread: when its statement began, and the connection
        self._running: dict[int, tuple[float, Any]] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def watch(self, engine: sa.Engine) -> None:
        """Watch all statements of an engine."""
        dialect: Any = engine.dialect
        for name in ("do_execute", "do_executemany", "do_execute_no_params"):
            setattr(dialect, name, self._watched(getattr(dialect, name), lambda cursor: cursor.connection))
        for name in ("do_commit", "do_rollback", "do_ping"):
            setattr(dialect, name, self._watched(getattr(dialect, name), lambda connection: connection))

    def _watched(self, call: Callable[..., Any], connection_of: Callable[[Any], Any]) -> Callable[..., Any]:
        def watched(subject: object, *arguments: Any, **named: Any) -> Any:
            before = self._begin(connection_of(subject))
            try:
                return call(subject, *arguments, **named)
            finally:
                self._end(before)

        return watched

    @contextlib.contextmanager
    def over(self, dbapi_connection: object) -> Iterator[None]:
        """Watch what this thread does with a connection."""
        before = self._begin(dbapi_connection)
        try:
            yield
        finally:
            self._end(before)

    def _begin(self, dbapi_connection: object) -> tuple[float, Any] | None:
        """Note what this thread begins; return what it was doing."""
        thread = threading.get_ident()
        with self._guard:
            before = self._running.get(thread)
            self._running[thread] = self._clock(), dbapi_connection
            # After a fork, the thread is not alive in the child.
            if self._thread is None or not self._thread.is_alive():
                self._stopped = threading.Event()
                self._thread = threading.Thread(
                    target=self._look_again, args=(self._stopped,), name="database-watchdog", daemon=True)
                self._thread.start()
        return before

    def _end(self, before: tuple[float, Any] | None) -> None:
        thread = threading.get_ident()
        with self._guard:
            if before is None:
                del self._running[thread]
            else:
                self._running[thread] = before

    def stop(self) -> None:
        """End the thread; the next statement starts another one.

        When it has returned, the process may fork: uWSGI forks where any thread may hold the interpreter's lock, and
        the child would wait for it without end.
        """
        with self._guard:
            thread, self._thread = self._thread, None
            self._stopped.set()
        if thread is not None and thread.is_alive():
            thread.join()

    def look(self) -> bool:
        """Shut the sockets of statements that are over their deadline; return whether there are any statements."""
        with self._guard:
            late = self._clock() - self._limit_s
            for began, dbapi_connection in self._running.values():
                if began <= late and _shut(dbapi_connection):
                    LOG.error("The database has not replied for %g seconds (%s); the connection is given up",
                              self._limit_s, self._setting)
            return bool(self._running)

    def _look_again(self, stopped: threading.Event) -> None:
        idle = 0
        while not stopped.wait(min(_LOOK_EVERY_S, self._limit_s / 5)):
            idle = 0 if self.look() else idle + 1
            if idle > _IDLE_LOOKS:
                with self._guard:
                    if not self._running and not stopped.is_set():
                        self._thread = None
                        return


def _shut(dbapi_connection: object) -> bool:
    """Shut the socket of a connection, so that a thread that reads from it continues; return False if there is none."""
    try:
        # The driver keeps its descriptor: this one is a copy.
        with socket.socket(fileno=os.dup(descriptor(dbapi_connection))) as sock:
            sock.shutdown(socket.SHUT_RDWR)
    except Exception:  # noqa: BLE001  (of any driver: it is closed already)
        return False
    return True
