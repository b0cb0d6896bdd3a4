"""Connections and transactions. oslo.db creates the engine; this module begins and retries transactions."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging
from sqlalchemy import event

from ironic_rules import context
from ironic_rules.db import clock, deadlines, sqlite
from ironic_rules.db.errors import refusals
from ironic_rules.models.documents import JSONObject

LOG = logging.getLogger(__name__)
T = TypeVar("T")

#: Among the values of a connection from the end of its transaction until it is back in the pool.
_COMMITTED = "ironic_rules.committed"
#: A mode of MariaDB and MySQL, and how the driver knows of it: of the protocol's status flags.
_PLAIN_TEXTS, _HAS_PLAIN_TEXTS = "NO_BACKSLASH_ESCAPES", 0x200
#: Compression of PostgreSQL's texts of more than 2 KB: with LZ4 it takes less time and slightly more space. Older
#: servers do not have the setting, some are built without LZ4, and some administrators have chosen.
_COMPRESS_FAST = ("SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression'"
                  " AND 'lz4' = ANY(enumvals) AND source = 'default'")


class Database:
    """The service's database: ``reader()`` yields a connection for reading, ``writer()`` one in a transaction."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._manager = enginefacade.transaction_context()
        # thread_checkin calls sleep(0) whenever a connection is returned, for green threads; others lose a time slice.
        self._manager.configure(sqlite_fk=True, thread_checkin=False)
        names = ("connection", "max_retries", "retry_interval", "connection_debug")
        options = {name: conf.database[name] for name in names}
        self._manager.configure(**{key: value for key, value in options.items() if value is not None})
        self._manager.configure(
            max_pool_size=conf.database.max_pool_size, max_overflow=conf.database.max_overflow,
            pool_timeout=conf.database.pool_timeout, connection_recycle_time=conf.database.connection_recycle_time,
            sqlite_synchronous=conf.database.sqlite_synchronous)
        self._manager.configure(connection_parameters=_connection_parameters(conf))
        self._retried = oslo_db_api.wrap_db_retry(
            max_retries=conf.database.db_max_retries, retry_interval=0.05, inc_retry_interval=True,
            max_retry_interval=1, retry_on_deadlock=True, exception_checker=_is_serialization_failure)(self._attempt)
        sqlite.check_file(conf.database.connection)
        sqlite.make_private(conf.database.connection)
        self.engine: sa.Engine = self._connected(conf)
        self._watchdog: deadlines.Watchdog | None = None
        if self.engine.dialect.name == "sqlite":
            self.engine = sqlite.prepare(self.engine, conf.database.max_pool_size)
            clock.follow_host()
        else:
            deadlines.watch_liveness(self.engine)
            self._watchdog = _prepare_server(self.engine, conf)
        # Errors and logs would quote parameters: passwords of nodes, and the content of sensitive rules.
        self.engine.hide_parameters = True
        # On PostgreSQL, reading without a transaction saves two round trips; PyMySQL would need as many to set that.
        self._reading = self.engine
        if self.engine.dialect.name == "postgresql":
            self._reading = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    def _connected(self, conf: cfg.ConfigOpts) -> sa.Engine:
        """Return the engine once the server can be reached.

        :raises DBConnectionError: it cannot be reached in ``[database]max_retries`` attempts
        """
        attempts = conf.database.max_retries  # -1: no limit
        # For the other databases, oslo.db retries itself.
        if sa.make_url(conf.database.connection).get_backend_name() != "postgresql":
            return self._manager.writer.get_engine()
        while True:
            try:
                with refusals():
                    return self._manager.writer.get_engine()
            except db_exc.DBConnectionError as error:
                if attempts == 0:
                    raise
                LOG.warning("The database cannot be reached: %s", str(error).partition("\n")[0])
            attempts -= 1
            time.sleep(conf.database.retry_interval)

    @property
    def dialect(self) -> str:
        """``sqlite``, ``mysql`` or ``postgresql``."""
        return self.engine.dialect.name

    @contextlib.contextmanager
    def reader(self) -> Iterator[sa.Connection]:
        """Yield a connection for statements that write nothing.

        Each statement sees what is committed; on SQLite all of them see the same state.
        """
        if self.dialect != "sqlite":
            with refusals(), self._reading.connect() as connection:
                yield connection
            return
        # The turn before the connection: so readers mostly have the same one.
        with refusals(), sqlite.reading(), self._reading.connect() as connection:
            sqlite.begin_reading(connection)
            yield connection

    @contextlib.contextmanager
    def writer(self) -> Iterator[sa.Connection]:
        """Yield a connection in one transaction, committed at the end and rolled back on any error."""
        with context.forgetting_changes(), write_transaction(self.engine) as connection:
            yield connection

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Return ``work(connection)`` of one write transaction, retried if the database reports a deadlock."""
        result: T = self._retried(work)
        return result

    def _attempt(self, work: Callable[[sa.Connection], T]) -> T:
        with self.writer() as connection:
            return work(connection)

    def dispose(self) -> None:
        """Close every pooled connection, and end the watchdog, until the next statement."""
        self.engine.dispose()
        if self._watchdog is not None:
            self._watchdog.stop()


@contextlib.contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in one transaction, committed at the end and rolled back on any error.

    On SQLite it begins IMMEDIATE: a second writer waits here and never fails later with "database is locked".
    """
    if engine.dialect.name != "sqlite":
        with refusals(), engine.connect() as connection:
            with connection.begin():
                yield connection
            connection.info[_COMMITTED] = True
        return
    # The turn before the connection: so all who write have the same one.
    with (refusals(), sqlite.writing(engine.url.database) as left_s, engine.connect() as connection,
          connection.begin()):
        sqlite.begin_writing(connection, left_s)
        yield connection


def _is_serialization_failure(error: Exception) -> bool:
    original = getattr(error, "inner_exception", None) if isinstance(error, db_exc.DBError) else None
    return getattr(getattr(original, "orig", None), "sqlstate", None) == "40001"


def _connection_parameters(conf: cfg.ConfigOpts) -> str | None:
    """Return what to append to the URL. Without a charset oslo.db uses utf8 on MariaDB: no characters of 4 bytes."""
    parameters = conf.database.connection_parameters or ""
    url = sa.make_url(conf.database.connection)
    backend = url.get_backend_name()
    ours: JSONObject = deadlines.parameters(conf, backend)
    if backend in ("mysql", "mariadb"):
        ours["charset"] = "utf8mb4"
    missing = [f"{name}={value}" for name, value in ours.items()
               if name not in url.query and f"{name}=" not in parameters]
    return "&".join([parameters, *missing] if parameters else missing) or None


def _prepare_server(engine: sa.Engine, conf: cfg.ConfigOpts) -> deadlines.Watchdog | None:
    """Prepare each connection to a server, and follow the server's clock; return what watches the statements."""
    dialect = engine.dialect.name
    limit_s = deadlines.limit_s(conf)
    watchdog = deadlines.Watchdog(limit_s) if limit_s else None
    if watchdog is not None:
        watchdog.watch(engine)
    _skip_needless_rollbacks(engine)

    @event.listens_for(engine, "connect")
    def connected(dbapi_connection: object, record: object) -> None:
        with contextlib.nullcontext() if watchdog is None else watchdog.over(dbapi_connection):
            prepare(dbapi_connection)

    is_pooled = dialect == "postgresql" and conf.database.transaction_pooling

    def prepare(dbapi_connection: Any) -> None:
        if is_pooled:
            dbapi_connection.prepare_threshold = None
        else:
            deadlines.prepare(dbapi_connection, conf, dialect)
        with dbapi_connection.cursor() as cursor:
            if dialect == "mysql":
                # As on PostgreSQL: no stale snapshots, and no gap locks by which writers deadlock.
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                _send_texts_plainly(dbapi_connection, cursor)
            elif dialect == "postgresql" and not is_pooled:
                cursor.execute(_COMPRESS_FAST)
            began = time.monotonic()
            cursor.execute(f"SELECT {clock.TIME_OF_SERVER[dialect]}")
            clock.set_to(cursor.fetchone()[0], began)
        # On PostgreSQL, the settings belong to the transaction.
        dbapi_connection.commit()

    # oslo.db has already opened a connection, as a check.
    engine.dispose()
    return watchdog


def _skip_needless_rollbacks(engine: sa.Engine) -> None:
    """Let the pool not roll back a connection whose transaction was just committed: that would be a round trip."""
    dialect: Any = engine.dialect
    roll_back = dialect.do_rollback

    def do_rollback(connection: Any) -> None:
        # One with which the dialect is still learning what the server can has no such values.
        with contextlib.suppress(NotImplementedError):
            if connection.info.pop(_COMMITTED, False):
                return
        roll_back(connection)

    dialect.do_rollback = do_rollback


def _send_texts_plainly(dbapi_connection: Any, cursor: Any) -> None:
    """Let the driver double the apostrophes of a text, and nothing else.

    Otherwise it looks up each character of the text, and each quotation mark of JSON becomes two characters. Drivers
    that do not follow the mode would send texts that end early.
    """
    if not type(dbapi_connection).__module__.startswith("pymysql."):
        return
    cursor.execute("SELECT @@SESSION.sql_mode")
    usual = cursor.fetchone()[0]
    set_mode = "SET SESSION sql_mode = %s"
    cursor.execute(set_mode, (f"{usual},{_PLAIN_TEXTS}" if usual else _PLAIN_TEXTS,))
    # A proxy may keep the flags to itself.
    if not dbapi_connection.server_status & _HAS_PLAIN_TEXTS:
        cursor.execute(set_mode, (usual,))
