"""The version of the schema: reading it, and upgrading it.

Each migration says its phase: after one that expands the schema, processes of the release before can still use it;
after one that contracts it, they cannot. So a contraction is refused while a process is alive whose code does not know
it.

Importing alembic takes long, so only functions that change a schema import it: a starting service only reads it.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db import deadlines, ownership, processes
from ironic_rules.db.errors import refusals
from ironic_rules.db.session import write_transaction
from ironic_rules.db.tables import metadata, revisions, schema_revisions
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import enumeration

#: The newest revision in ``migrations/versions``, as a test checks.
HEAD = "5c1d7e90a2f8"

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
EXPAND, CONTRACT = "expand", "contract"
#: Names that the file of a migration defines.
_SAID = re.compile(r'^(revision|down_revision|phase) = ["\']?(\w+)["\']?$', re.MULTILINE)
#: Seconds without a report after which a process is dead.
_ALIVE_S = 60.0
#: Rows that a migration changes in one transaction.
BATCH = 1000
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
        revision = _version(connection)
        if revision == HEAD:
            ownership.check(connection, revision, {HEAD}, HEAD)
            return True
        if revision is not None and _is_expanded(connection, revision):
            ownership.check(connection, revision, {*_revisions(), revision}, HEAD)
            return True
        ownership.check(connection, revision, _revisions(), HEAD)
        return all(migration.phase == CONTRACT for migration in _pending(revision)) if revision is not None else False


class Migration(NamedTuple):
    """A migration: its revision and its phase."""

    revision: str
    phase: str


def _chain() -> list[Migration]:
    """Return the migrations in their order, without importing them."""
    headers = [dict(_SAID.findall(path.read_text(encoding="utf-8")))
               for path in (_SCRIPTS / "versions").glob("[0-9a-f]*_*.py")]
    after = {header.get("down_revision"): header for header in headers}
    chain, header = [], after.get("None")
    while header is not None:
        chain.append(Migration(header["revision"], header.get("phase", CONTRACT)))
        header = after.get(header["revision"])
    return chain


def _pending(revision: str) -> list[Migration]:
    """Return the migrations of this version after a revision that it knows."""
    chain = _chain()
    place = next((number for number, migration in enumerate(chain, 1) if migration.revision == revision), 0)
    return chain[place:]


def _is_expanded(connection: sa.Connection, current: str) -> bool:
    """Return whether a newer version has only expanded the schema of this one: then both can use it."""
    revisions = _revisions()
    if current in revisions or not sa.inspect(connection).has_table(schema_revisions.name):
        return False
    reached = {row.revision: row.phase for row in connection.execute(sa.select(schema_revisions))}
    return HEAD in reached and current in reached and all(
        phase == EXPAND for revision, phase in reached.items() if revision not in revisions)


def contractions(engine: sa.Engine, timeout_s: float = _ALIVE_S) -> tuple[list[str], list[str]]:
    """Return the revisions that contract the schema and are to come, and the processes that they wait for.

    :param timeout_s: after this time without a report, a process is dead
    """
    with refusals(), engine.connect() as connection:
        revision = _version(connection)
        if revision is None or revision not in _revisions():
            return [], []
        waiting = [migration.revision for migration in _pending(revision) if migration.phase == CONTRACT]
        return waiting, _written_before(connection, waiting[-1], timeout_s) if waiting else []


def _written_before(connection: sa.Connection, contraction: str, timeout_s: float) -> list[str]:
    """Return the processes that are alive and whose code does not know a revision."""
    if not sa.inspect(connection).has_table("processes"):
        return []
    chain = [migration.revision for migration in _chain()]
    return processes.written_for(connection, chain[:chain.index(contraction)], timeout_s)


def _revisions() -> set[str]:
    """Return the revisions that this version knows: the first part of the name of each migration's file."""
    return {path.name.partition("_")[0] for path in (_SCRIPTS / "versions").glob("[0-9a-f]*_*.py")}


def upgrade(engine_or_url: sa.Engine | str, revision: str = "head", *, phase: str | None = None,
            timeout_s: float = _ALIVE_S, patient: bool = False) -> None:
    """Upgrade the schema to ``revision``; does nothing if it has it already. Concurrent calls wait for each other.

    :param phase: EXPAND: only as far as processes of the release before can use it; CONTRACT: nothing that expands
    :param timeout_s: after this time without a report, a process is dead
    :param patient: leave out contractions for which it is too early, instead of refusing them
    :raises ConfigurationError: that would go back, a process is alive that does not know a contraction, the user lacks
        a right, or as from :func:`is_current`
    """
    if revision == "head" and phase != CONTRACT and _create(engine_or_url):
        return
    if phase != EXPAND:
        migrate(engine_or_url)
    from alembic import command
    from alembic.script import ScriptDirectory

    def work(config: Any) -> None:
        # Other processes have ended their changes: this one has the lock.
        connection = config.attributes["connection"]
        current = _version(connection)
        if current is None:
            ownership.check_finished(connection)
        if current != HEAD and connection.dialect.name == "mysql":
            ownership.check_rights(connection)
        if current is not None and _is_before(ScriptDirectory.from_config(config), revision, current):
            raise ConfigurationError(f"The database is at revision {current}, which is newer than {revision}: tables "
                                     "cannot go back. Restore a backup from before the upgrade.")
        target = revision if current is None else _target(connection, current, revision, phase, timeout_s, patient)
        with ownership.whole_upgrades(connection, lambda: _version(connection)):
            command.upgrade(config, target)

    _run(engine_or_url, work)


def _target(connection: sa.Connection, current: str, revision: str, phase: str | None, timeout_s: float,
            patient: bool) -> str:
    """Return the revision to which a schema that has ``current`` is upgraded.

    :raises ConfigurationError: as from :func:`upgrade`
    """
    migrations = _pending(current)
    named = next((number for number, migration in enumerate(migrations, 1) if migration.revision == revision), None)
    migrations = migrations[:named]
    expansions = max((number for number, migration in enumerate(migrations, 1) if migration.phase == EXPAND), default=0)
    if phase == CONTRACT and expansions:
        raise ConfigurationError(
            f"The schema is to be expanded first, to revision {migrations[expansions - 1].revision}: run "
            "'ironic-rules-dbsync upgrade --expand'. Nothing was changed.")
    if phase == EXPAND:
        migrations = migrations[:expansions]
    last = next((migration.revision for migration in reversed(migrations) if migration.phase == CONTRACT), None)
    blocking = _written_before(connection, last, timeout_s) if last is not None else []
    if blocking and patient and all(migration.phase == EXPAND for migration in migrations[:expansions]):
        migrations, blocking = migrations[:expansions], []
    if blocking:
        raise ConfigurationError(
            f"Revision {last} removes what processes of an earlier release use, and these are alive: "
            f"{enumeration(blocking)}. Nothing was changed. Replace or stop them, or run 'ironic-rules-dbsync upgrade "
            f"--expand'. A process that was killed counts as alive for {timeout_s:g} seconds.")
    if revision != "head" and named is None:
        return revision  # alembic knows what +1 is, and refuses an unknown one
    return migrations[-1].revision if migrations else current


def migrate(engine_or_url: sa.Engine | str, batch: int = BATCH) -> int:
    """Change the rows for which a migration that was made has a function ``migrate``; return how many were.

    Each batch is a transaction of its own, so that processes that run wait for it only shortly.

    :param batch: maximum number of rows of a transaction
    :raises ConfigurationError: as from :func:`is_current`
    """
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    ownership.check_url(_url(engine_or_url))
    changed = 0
    with _engine(engine_or_url) as engine:
        current = version(engine)
        if current not in _revisions():
            return 0
        with refusals(), engine.connect() as connection:
            ownership.check(connection, current, _revisions(), HEAD)
        config = Config()
        config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        scripts = list(ScriptDirectory.from_config(config).iterate_revisions(current, "base"))
        for script in reversed(scripts):
            work: Callable[[sa.Connection, int], int] | None = getattr(script.module, "migrate", None)
            while work is not None:
                with write_transaction(engine) as connection:
                    number = work(connection, batch)
                changed += number
                if number < batch:
                    break
    return changed


def _create(engine_or_url: sa.Engine | str) -> bool:
    """Create the schema of an empty SQLite database as it is now; return whether the database was one.

    It is faster than alembic, at the first start of ``ironic-rules``. On servers, the migrations also make parts of the
    schema that the tables do not describe.
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
        _record(connection, _chain())
    return True


def _is_before(scripts: Any, revision: str, current: str) -> bool:
    """Return whether ``revision`` is an earlier one than ``current``."""
    if "+" in revision:
        return False  # relative to the present one
    target = scripts.get_revision(revision)
    if target is None:
        return True  # "base"
    return target.revision != current and target in scripts.iterate_revisions(current, "base")


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
        connection = config.attributes["connection"]
        if sa.inspect(connection).has_table(schema_revisions.name):
            chain = _chain()
            place = [migration.revision for migration in chain].index(str(_version(connection)))
            connection.execute(sa.delete(schema_revisions))
            _record(connection, chain[:place + 1])

    _run(engine_or_url, work)


def _record(connection: sa.Connection, reached: Sequence[Migration]) -> None:
    if reached:
        connection.execute(sa.insert(schema_revisions), [migration._asdict() for migration in reached])


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
