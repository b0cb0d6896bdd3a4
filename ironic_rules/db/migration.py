"""The version of the schema: reading it, and upgrading it.

Importing alembic takes long, so only functions that change the schema import it: a starting service only reads it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ironic_rules.db.errors import refusals
from ironic_rules.db.session import write_transaction

#: The newest revision in ``migrations/versions``, as a test checks.
HEAD = "2c90f7d4a1be"

_SCRIPTS = Path(__file__).parent / "migrations"
_TABLE = sa.table("alembic_version", sa.column("version_num"))

#: Processes that upgrade at the same time wait for this lock (SQLite: for the write transaction).
_LOCK_NAME = "ironic_rules_migration"
_LOCK_NUMBER = 0x69726F6E
_LOCK_TIMEOUT_S = 120
#: alembic keeps its state in globals of its modules.
_thread_lock = threading.Lock()


def version(engine: sa.Engine) -> str | None:
    """Return the revision of the schema, None for a database without one."""
    with refusals(), engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        return connection.scalar(sa.select(_TABLE.c.version_num))


def is_current(engine: sa.Engine) -> bool:
    """Return whether the schema has the version that this code requires. Runs two small queries."""
    return version(engine) == HEAD


def upgrade(engine_or_url: sa.Engine | str, revision: str = "head") -> None:
    """Upgrade the schema to ``revision``; does nothing if it has it already. Concurrent calls wait for each other."""
    from alembic import command

    _run(engine_or_url, lambda config: command.upgrade(config, revision))


def stamp(engine_or_url: sa.Engine | str, revision: str = "head") -> None:
    """Record that the schema is at ``revision`` without changing it."""
    from alembic import command

    _run(engine_or_url, lambda config: command.stamp(config, revision))


def revision(engine_or_url: sa.Engine | str, message: str, *, autogenerate: bool = True) -> None:
    """Write a new migration, generated from the tables or empty: for developers, who then set ``HEAD`` manually."""
    from alembic import command

    _run(engine_or_url, lambda config: command.revision(config, message, autogenerate=autogenerate))


def _run(engine_or_url: sa.Engine | str, action: Callable[[Any], object]) -> None:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _thread_lock, _engine(engine_or_url) as engine:
        with write_transaction(engine) as connection, _alone(connection):
            config.attributes["connection"] = connection
            action(config)


@contextlib.contextmanager
def _engine(engine_or_url: sa.Engine | str) -> Iterator[sa.Engine]:
    if isinstance(engine_or_url, sa.Engine):
        yield engine_or_url
        return
    engine = sa.create_engine(engine_or_url, poolclass=sa.NullPool)
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
    yield
    if dialect == "mysql":
        # DDL has committed, but the version has not been yet: the next process must read it.
        connection.exec_driver_sql("COMMIT")
        connection.execute(sa.select(sa.func.release_lock(sa.func.left(name, 64))))
