"""SQLite's own needs: a private file, connections that are kept, and turns.

SQLite is in the process of its users, whose threads compete for the interpreter as well as for the file. Turns keep
them from doing so row by row.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event, pool

from ironic_rules.db import errors, ownership
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models.documents import JSONObject
from ironic_rules.text import printable

#: Milliseconds that a writer waits for others.
BUSY_TIMEOUT_MS = 30_000
#: The name of the function that gives a text in lower case, in any script.
UNICODE_LOWER = "unicode_lower"
_BEGIN = "BEGIN IMMEDIATE"
#: The first bytes of a database.
_HEADER = b"SQLite format 3\0"
#: Small, because each open file has its own page cache.
_POOL_SIZE = 5
#: Seconds that a thread waits until others have fetched their rows: many times what a page of 1,000 takes.
_PATIENCE_S = 0.25
#: Seconds that any reader waits for others.
_READ_PATIENCE_S = 0.02
#: One writer per database file, among the threads of this process.
_writers: defaultdict[str | None, threading.Lock] = defaultdict(threading.Lock)
#: One thread of this process that reads, whatever the file.
_reading = threading.RLock()


def prepare(engine: sa.Engine, size: int | None) -> sa.Engine:
    """Set WAL and a busy timeout, let threads fetch in turn, and pool connections, which oslo.db does not.

    :param size: maximum number of connections that are kept open
    :returns: the same engine without what oslo.db does when a transaction begins or ends: the caller begins it. Half
        of the time of a reader with one statement went to ``BEGIN`` as a statement of SQLAlchemy, and to events
    """

    @event.listens_for(engine, "do_connect")
    def connect(dialect: object, record: object, arguments: object, keywords: JSONObject) -> None:
        keywords["factory"] = _Connection

    @event.listens_for(engine, "connect")
    def connected(dbapi_connection: Any, record: Any) -> None:
        cursor = dbapi_connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        # It is written to the file, also to that of another program, which is refused later.
        tables = {name for name, in cursor.execute("SELECT name FROM sqlite_master").fetchall()}
        if not tables or ownership.OUR_MARK in tables:
            cursor.execute("PRAGMA journal_mode = WAL")
        cursor.close()
        dbapi_connection.create_function(
            UNICODE_LOWER, 1, lambda text: None if text is None else text.lower(), deterministic=True)

    if isinstance(engine.pool, pool.NullPool) and engine.url.database not in (None, "", ":memory:"):
        old = engine.pool
        # Last in, first out: what another connection writes empties the page cache of all the others. An inspection
        # reads 51 pages of the file instead of 87.
        engine.pool = pool.QueuePool(old._creator, pool_size=min(_POOL_SIZE, size or _POOL_SIZE), max_overflow=-1,
                                     use_lifo=True, _dispatch=old.dispatch)
        old.dispose()
    # oslo.db's handlers of errors and new connections belong to the dialect and to the pool.
    return sa.Engine(engine.pool, engine.dialect, engine.url)


def begin_reading(connection: sa.Connection) -> None:
    """Begin a transaction that takes no lock yet; it ends when the connection is returned."""
    connection.connection.dbapi_connection.execute("BEGIN")  # type: ignore[union-attr]


def begin_writing(connection: sa.Connection, left_s: float) -> None:
    """Begin a transaction that is the only one that writes; it waits until others have ended.

    :param left_s: what is left of the seconds that a writer waits
    :raises DatabaseBusy: 503, others have not ended in time
    """
    raw: Any = connection.connection.dbapi_connection
    has_waited = left_s < BUSY_TIMEOUT_MS / 1000 * 0.9
    if has_waited:
        raw.execute(f"PRAGMA busy_timeout = {max(0, int(left_s * 1000))}")
    try:
        raw.execute(_BEGIN)
    except sqlite3.Error as exc:
        if errors.is_busy(exc):
            raise errors.DatabaseBusy(exc) from exc
        # SQLAlchemy meets the same error, and oslo.db converts that.
        connection.exec_driver_sql(_BEGIN)
    finally:
        if has_waited:
            raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def check_file(url: str | None) -> None:
    """Check that a file which exists is empty or a SQLite database: it may be any file, named by mistake.

    :raises ConfigurationError: it is another one
    """
    path = _path(url)
    if path is None or not os.path.isfile(path):  # a pipe would be waited for
        return
    # If that fails, opening the database reports why.
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if (begin := file.read(len(_HEADER))) and begin != _HEADER:
            raise ConfigurationError(f"[database]connection: {printable(path, 200)} is not a SQLite database. Set the "
                                     "option to a file of its own, which need not exist.")


def make_private(url: str | None) -> None:
    """Create a missing file so that only its owner can read it: it contains the passwords of BMCs."""
    # If that fails, opening the database reports why.
    if path := _path(url):
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _path(url: str | None) -> str | None:
    parts = sa.make_url(url) if url else None
    if parts is None or parts.get_backend_name() != "sqlite" or parts.database in (None, "", ":memory:"):
        return None
    # A URI is parsed by SQLite only.
    return None if str(parts.database).startswith("file:") else str(parts.database)


class Commits:
    """Tells a process that others have committed changes to a file, by SQLite's own counter of them.

    Only one thread may use it. To read the counter takes no lock.
    """

    def __init__(self, url: str) -> None:
        self._path = _path(url) or ""
        self._connection: sqlite3.Connection | None = None
        self._seen: int | None = None

    def are_new(self) -> bool:
        """Return whether there may be changes since the last call; a file that cannot be read has none."""
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(f"file:{quote(self._path)}?mode=ro", uri=True,
                                                   isolation_level=None)
            [[version]] = self._connection.execute("PRAGMA data_version")
        except sqlite3.Error:
            self._connection, self._seen = None, None
            return False
        seen, self._seen = self._seen, version
        return seen != version


@contextlib.contextmanager
def writing(database: str | None) -> Iterator[float]:
    """Serialize the writers of this process to a file, approximately in their order.

    Yield what is left of the seconds that a writer waits.

    SQLite itself waits by sleeping, longer each time, so that the writer that has waited longest continues to wait.
    That remains for writers of other processes, and for those that do not get this lock in time.
    """
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    with _held(_writers[database], BUSY_TIMEOUT_MS / 1000):
        yield until - time.monotonic()


def in_turn() -> contextlib.AbstractContextManager[None]:
    """Let no other thread fetch many rows, or do what else is done in turn, while this one does.

    For long work of the interpreter beside the rows, each of which would wait for another such thread.
    """
    return _held(_reading, _PATIENCE_S)


def reading() -> contextlib.AbstractContextManager[None]:
    """Let other readers wait for this one, but not for long: it may have more to do than to read.

    ``sqlite3`` releases the interpreter in each statement. Readers at the same time take it from each other, through
    the kernel: with eight clients, one node by name took 2.4 times the processor time of one client, now 1.6 times.
    """
    return _held(_reading, _READ_PATIENCE_S)


class _Cursor(sqlite3.Cursor):
    """A cursor whose rows are fetched while no other thread fetches.

    ``sqlite3`` releases the interpreter for each row, and takes it again. When another thread waits for it, that is a
    change of threads through the kernel per row.
    """

    def fetchall(self) -> list[Any]:
        with in_turn():
            return super().fetchall()


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


@contextlib.contextmanager
def _held(lock: threading.Lock | threading.RLock, timeout_s: float) -> Iterator[None]:
    """Hold ``lock`` if it can be had in time; continue without it if not."""
    mine = lock.acquire(timeout=timeout_s)
    try:
        yield
    finally:
        if mine:
            lock.release()
