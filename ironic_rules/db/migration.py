"""The version of the schema: reading it, and upgrading it.

Importing alembic takes long, so only functions that change a schema import it: a starting service only reads it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import deadlines, ownership
from ironic_rules.db.errors import refusals
from ironic_rules.db.session import write_transaction
from ironic_rules.db.tables import metadata, revisions
from ironic_rules.exceptions import ConfigurationError

#: The newest revision in ``migrations/versions``, as a test checks.
HEAD = "5c8d1e92f0a7"

_SCRIPTS = Path(__file__).parent / "migrations"
#: As alembic makes it.
_TABLE = sa.Table(ownership.VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), nullable=False),
                  sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"))
#: Names that the migrations write to ``revisions``, in their order.
_REVISIONS = ("inspection_rules", "auto_discovery", "inventory_paths", "legacy_rules", "facts")

#: Processes that upgrade at the same time wait for this lock (SQLite: for the write transaction).
_LOCK_NAME = "ironic_rules_migration"
_LOCK_NUMBER = 0x69726F6E
_LOCK_TIMEOUT_S = 120
#: alembic keeps its state in globals of its modules.
_thread_lock = threading.Lock()


def version(engine: sa.Engine) -> str | None:
    """Return the revision of the schema, None for a database without one."""
    with refusals(), engine.connect() as connection:
        return _version(connection)


def _version(connection: sa.Connection) -> str | None:
    inspector = sa.inspect(connection)
    if not inspector.has_table(_TABLE.name):
        return None
    if all(column["name"] != _TABLE.c.version_num.name for column in inspector.get_columns(_TABLE.name)):
        return ""  # a table of another program, and no revision that anybody knows
    return connection.scalar(sa.select(_TABLE.c.version_num))


def is_current(engine: sa.Engine) -> bool:
    """Return whether the schema has the version that this code requires. Runs few small queries.

    :raises ConfigurationError: the database belongs to another program, to a newer version, to one before the first
        release, or to the server itself, or lacks the tables
    """
    ownership.check_url(engine.url)
    with refusals(), engine.connect() as connection:
        found = _version(connection)
        ownership.check(connection, found, _revisions(), HEAD)
    return found == HEAD


def _revisions() -> set[str]:
    """Return the revisions that this version knows: the first part of the name of each migration's file."""
    return {path.name.partition("_")[0] for path in (_SCRIPTS / "versions").glob("[0-9a-f]*_*.py")}


def upgrade(engine_or_url: sa.Engine | str, revision: str = "head") -> None:
    """Upgrade the schema to ``revision``; does nothing if it has it already. Concurrent calls wait for each other.

    :raises ConfigurationError: that would go back, the user lacks a right, or as from :func:`is_current`
    """
    if revision == "head" and _create(engine_or_url):
        return
    from alembic import command
    from alembic.script import ScriptDirectory

    def work(config: Any) -> None:
        # Other processes have ended their changes: this one has the lock.
        connection = config.attributes["connection"]
        found = _version(connection)
        if found is None:
            ownership.check_finished(connection)
        if found != HEAD and connection.dialect.name == "mysql":
            ownership.check_rights(connection)
        if found is not None and _is_before(ScriptDirectory.from_config(config), revision, found):
            raise ConfigurationError(f"The database is at revision {found}, which is newer than {revision}: tables "
                                     "cannot go back. Restore a backup from before the upgrade.")
        with ownership.whole_upgrades(connection, lambda: _version(connection)):
            command.upgrade(config, revision)

    _run(engine_or_url, work)


def _create(engine_or_url: sa.Engine | str) -> bool:
    """Create the schema of an empty SQLite database as it is now; return whether the database was one.

    At the first start of ``ironic-rules``, alembic takes more than twice as long for it. On servers, the migrations
    also make what the tables do not say.
    """
    if _url(engine_or_url).get_backend_name() != "sqlite":
        return False
    with _locked(engine_or_url) as connection:
        if ownership.names(connection):
            return False
        metadata.create_all(connection)
        connection.execute(sa.insert(revisions), [{"name": name, "revision": 0} for name in _REVISIONS])
        _TABLE.create(connection)
        connection.execute(sa.insert(_TABLE).values(version_num=HEAD))
    return True


def _is_before(scripts: Any, revision: str, found: str) -> bool:
    """Return whether ``revision`` is an earlier one than ``found``."""
    if "+" in revision:
        return False  # relative to the present one
    target = scripts.get_revision(revision)
    if target is None:
        return True  # "base"
    return target.revision != found and target in scripts.iterate_revisions(found, "base")


def stamp(engine_or_url: sa.Engine | str, revision: str = "head") -> None:
    """Record that the schema is at ``revision`` without changing it.

    :raises ConfigurationError: there are tables, and ``revision`` is ``base``, where there are none, or the reverse
    """
    from alembic import command
    from alembic.script import ScriptDirectory

    def work(config: Any) -> None:
        ScriptDirectory.from_config(config).get_revision(revision)  # reports an unknown one
        tables = metadata.tables.keys() & ownership.names(config.attributes["connection"])
        if revision == "base" and tables:
            raise ConfigurationError("The database has tables of ironic-rules, and base is the revision of one without "
                                     "them: nothing could upgrade it any more.")
        if revision != "base" and not tables:
            raise ConfigurationError("The database has no tables of ironic-rules that could be at a revision: create "
                                     "them with 'ironic-rules-dbsync upgrade'.")
        command.stamp(config, revision)

    _run(engine_or_url, work)


def revision(engine_or_url: sa.Engine | str, message: str, *, autogenerate: bool = True) -> None:
    """Write a new migration, generated from the tables or empty: for developers, who then set ``HEAD`` manually."""
    from alembic import command

    _run(engine_or_url, lambda config: command.revision(config, message, autogenerate=autogenerate))


def _run(engine_or_url: sa.Engine | str, action: Callable[[Any], object]) -> None:
    from alembic.config import Config

    ownership.check_url(_url(engine_or_url))
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _locked(engine_or_url) as connection, ownership.rights(connection.engine.url):
        ownership.check(connection, _version(connection), _revisions(), HEAD)
        config.attributes["connection"] = connection
        action(config)


def _url(engine_or_url: sa.Engine | str) -> sa.URL:
    return engine_or_url.url if isinstance(engine_or_url, sa.Engine) else sa.make_url(engine_or_url)


@contextlib.contextmanager
def _locked(engine_or_url: sa.Engine | str) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction, while no other process or thread changes the schema."""
    with (_thread_lock, _engine(engine_or_url) as engine, write_transaction(engine) as connection,
          _alone(connection)):
        yield connection


@contextlib.contextmanager
def _engine(engine_or_url: sa.Engine | str) -> Iterator[sa.Engine]:
    if isinstance(engine_or_url, sa.Engine):
        if engine_or_url.dialect.name == "sqlite":
            yield engine_or_url
            return
        # A migration may take long: one connection without the time-outs of the service.
        url = engine_or_url.url.difference_update_query(deadlines.PARAMETERS)
    else:
        url = sa.make_url(engine_or_url)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    yield engine
    engine.dispose()


@contextlib.contextmanager
def _alone(connection: sa.Connection) -> Iterator[None]:
    dialect = connection.dialect.name
    if dialect == "postgresql":
        # Released by the end of the transaction.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_NUMBER)))
    elif dialect == "mysql":
        # DDL commits, so only a lock of the connection lasts long enough. Its name is server-wide: add the schema.
        name = sa.func.concat(_LOCK_NAME, sa.func.database())
        if not connection.scalar(sa.select(sa.func.get_lock(sa.func.left(name, 64), _LOCK_TIMEOUT_S))):
            raise TimeoutError(f"another process has been migrating this database for {_LOCK_TIMEOUT_S} seconds")
    try:
        yield
        if dialect == "mysql":
            # DDL has committed, but the version has not been yet: the next process must read it.
            connection.exec_driver_sql("COMMIT")
    finally:
        if dialect == "mysql":
            # Also after a failure: the pool keeps the connection, and others would wait for it.
            connection.execute(sa.select(sa.func.release_lock(sa.func.left(name, 64))))
