"""``[database]``: those options of oslo.db that are read, with this service's defaults, and time-outs."""

from __future__ import annotations

from oslo_config import cfg
from oslo_db import options

#: A conductor's threads sometimes use this many; with oslo.db's 5, connections would often be opened and discarded.
_MAX_POOL_SIZE = 20
GROUP = "database"
#: Options of the library that ``db.session`` reads; the library does not read them by itself.
_READ = frozenset({
    "connection", "connection_debug", "connection_parameters", "connection_recycle_time", "db_max_retries",
    "max_overflow", "max_pool_size", "max_retries", "pool_timeout", "retry_interval", "sqlite_synchronous"})
LIBRARY_OPTS: list[cfg.Opt] = [option for option in options.database_opts if option.dest in _READ]
#: A conductor that loses a connection without being told must be able to send its next heartbeat in time: in all, the
#: defaults are less than those of [conductor]heartbeat_timeout and heartbeat_interval leave.
OPTS: list[cfg.Opt] = [
    cfg.IntOpt("connect_timeout", default=10, min=0,
               help="Seconds that connecting to a database server may take. 0: no limit."),
    cfg.IntOpt("statement_timeout", default=20, min=0,
               help="Seconds that a statement may take. The server cancels it then. If the server does not reply "
                    "within five more seconds, the process gives up the connection. 0: no limit except that of the "
                    "operating system. Not for SQLite, like the other time-outs."),
    cfg.IntOpt("lock_timeout", default=10, min=0,
               help="Seconds that a statement may wait for a lock of the database server. 0: the server's setting."),
    cfg.IntOpt("idle_transaction_timeout", default=20, min=0,
               help="Seconds without a statement after which the server (PostgreSQL, MariaDB) ends a transaction "
                    "with its locks. 0: no limit."),
    cfg.BoolOpt("transaction_pooling", default=False,
                help="Whether a pooler, such as PgBouncer with pool_mode = transaction, is between this process and "
                     "PostgreSQL, so that each transaction may have another session. Then the service sets and "
                     "prepares nothing in a session: statement_timeout, lock_timeout and idle_transaction_timeout "
                     "must be settings of the database's user."),
]


def set_defaults() -> None:
    """Change the library's defaults, for this process; ``oslo-config-generator`` calls it too."""
    cfg.set_defaults(options.database_opts, max_pool_size=_MAX_POOL_SIZE)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options."""
    set_defaults()
    conf.register_opts(LIBRARY_OPTS, group=GROUP)
    conf.register_opts(OPTS, group=GROUP)
