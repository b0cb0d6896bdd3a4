"""The owner of a database: the service creates its tables in an empty one, changes its own, and refuses all others.

A database is the service's own if ``alembic_version`` has a revision of the service. Without a revision, it must be
empty, or have nothing but tables of the service: those of an upgrade that is running, or was interrupted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db.errors import denial, done_before
from ironic_rules.db.tables import metadata, node_bmc_addresses, revisions, schema_revisions
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.text import enumeration, printable

#: The table with the revision, of every program that uses alembic.
VERSION_TABLE = "alembic_version"
#: Revisions from before the first release, in their order, and the last commit that upgrades them: one migration makes
#: now what they made.
_FORMER = frozenset({
    "b3f1c2a94d07", "8e816a9bd7c3", "c94e07b1d2a8", "5d2f8a61c3e4", "7e41c09ab5d6", "a46d20f7be91", "e17b3c96d504",
    "c3d85a1f90b7", "d18c5e07a3f9", "f06b2d9c4e81", "2c90f7d4a1be", "2b7c9e50d4a1", "3c8e5b10d7f2", "9d41f7b2c6a8",
    "6a4d83b0c2f5", "b7e25c90a4d3", "b7e2d04c91fa", "e58c1b9047d3", "3f6ad92c71e5", "9d4a61f8b3e7", "91c7e5d20ba6",
    "c4e82f16a9d3", "e2c86f90b1d7", "4b9e61c7d2a0", "8d20f5b1a7c3", "a5d90c37e1f4", "a7d20e9f5c84", "c7d4e19b52a6",
    "c71e94a0d5b6", "d5a83b6f0e92", "f3b1c8d2a790", "c5e72a91f08d", "7a3e90c1d5f4", "4e1f8c26b0d9",
})
_LAST_OF_FORMER = "718239a1"
#: A table that every version of this service has, and no other program.
OUR_MARK = node_bmc_addresses.name
#: Tables that only one of the programs has whose databases are likely to be configured by mistake.
_OTHERS = {"Ironic": {"chassis", "bios_settings", "node_tags"},
           "ironic-inspector": {"introspection_data", "rule_conditions", "rule_actions"}}
_ADVICE = "Create an empty database for this service, and set the option to it."
_SERVERS_OWN = f"[database]connection: {{}} belongs to the database server itself. {_ADVICE}"
_OF_MARIADB = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
#: Each new database of PostgreSQL is a copy of template1. The database ``postgres`` is for any use.
_OF_POSTGRESQL = frozenset({"template0", "template1"})
#: Tables and views of PostgreSQL that a name without a schema can mean, without those of extensions.
_VISIBLE = sa.text("""
    SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'f', 'v', 'm') AND pg_table_is_visible(pg_class.oid) AND nspname <> 'pg_catalog'
      AND NOT EXISTS (SELECT 1 FROM pg_depend
                      WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')""")

#: The rights that an upgrade needs on MariaDB, each with a statement that needs it. A right that is missing is found
#: before the upgrade begins, because the server commits each of its statements. DROP is first, since it undoes others.
_TRIED = "ironic_rules_rights"
_NEEDS = (
    ("DROP", f"DROP TABLE IF EXISTS {_TRIED}"),
    ("CREATE", f"CREATE TABLE {_TRIED} (id INT PRIMARY KEY, parent INT) ENGINE=InnoDB"),
    ("INDEX", f"CREATE INDEX {_TRIED}_idx ON {_TRIED} (parent)"),
    ("ALTER", f"ALTER TABLE {_TRIED} ADD COLUMN other INT"),
    ("REFERENCES", f"ALTER TABLE {_TRIED} ADD FOREIGN KEY (parent) REFERENCES {_TRIED} (id)"),
    ("INSERT", f"INSERT INTO {_TRIED} (id) VALUES (1)"),
    ("SELECT", f"SELECT id FROM {_TRIED}"),
    ("UPDATE", f"UPDATE {_TRIED} SET other = 1"),
    ("DELETE", f"DELETE FROM {_TRIED}"),
)


def check_url(url: sa.URL) -> None:
    """Check that a URL of MariaDB or MySQL names a database that is not the server's own. Executes nothing.

    :raises ConfigurationError: it does not
    """
    if url.get_backend_name() not in ("mysql", "mariadb"):
        return
    if not url.database:
        raise ConfigurationError("[database]connection names a server, but no database on it: add its name, as in "
                                 "mysql+pymysql://USER:PASSWORD@HOST/DATABASE.")
    if url.database.lower() in _OF_MARIADB:
        raise ConfigurationError(_SERVERS_OWN.format(place(url)))


def check(connection: sa.Connection, revision: str | None, revisions: Collection[str], newest: str) -> None:
    """Check that a database is empty or the service's own.

    :param revision: that of ``alembic_version``
    :param revisions: the revisions of this version, of which ``newest`` is the last
    :raises ConfigurationError: it belongs to another program, to a newer version, to one before the first release, or
        to the server itself, or its tables are missing
    """
    if revision not in revisions and connection.dialect.name == "postgresql":
        _check_schema(connection)
    tables = names(connection)
    if revision in revisions or revision in _FORMER:
        _check_own(connection, str(revision), tables)
        return
    foreign = tables - {VERSION_TABLE}
    if revision is None and (not foreign or is_unfinished(tables)):
        return
    if revision is not None and OUR_MARK in foreign:
        raise ConfigurationError(
            f"The database is at revision {printable(revision, 64)}, of a newer version of ironic-rules; the newest "
            f"that this version knows is {newest}. Start the newer version, or restore the backup from before its "
            "upgrade.")
    program = next((name for name, marks in _OTHERS.items() if not foreign.isdisjoint(marks)), "another program")
    raise ConfigurationError(
        f"[database]connection is the database of {program}: {place(connection.engine.url)} has tables that this "
        f"service did not create ({enumeration(sorted(foreign or tables))}). Nothing in it was changed. {_ADVICE}")


def _check_own(connection: sa.Connection, revision: str, tables: Collection[str]) -> None:
    if OUR_MARK not in tables:
        raise ConfigurationError(
            f"[database]connection: {place(connection.engine.url)} is at revision {revision} of ironic-rules, but "
            "lacks the tables. Nothing in it was changed. Restore a backup, or drop the database, create it again, "
            "and run 'ironic-rules-dbsync upgrade'.")
    if revision in _FORMER:
        raise ConfigurationError(
            f"The database is at revision {revision}, from before the first release of ironic-rules: to upgrade it, "
            f"run 'ironic-rules-dbsync upgrade' of commit {_LAST_OF_FORMER} first. Nothing in it was changed.")


def _check_schema(connection: sa.Connection) -> None:
    """Check that PostgreSQL would create tables, and not among its own.

    :raises ConfigurationError: it would not
    """
    where = place(connection.engine.url)
    database, schema = connection.execute(sa.select(sa.func.current_database(), sa.func.current_schema())).one()
    if schema is None:
        raise ConfigurationError(
            f"[database]connection: {where} has no schema in which the user can create tables. Set the user's "
            "search_path to a schema that exists and that the user may use.")
    if database in _OF_POSTGRESQL or schema == "information_schema" or schema.startswith("pg_"):
        raise ConfigurationError(_SERVERS_OWN.format(f"{where}, schema {schema},"))


def names(connection: sa.Connection) -> set[str]:
    """Return the tables and views that a name without a schema can mean.

    On PostgreSQL these are the ones of each schema in the search path, except those of extensions.
    """
    if connection.dialect.name == "postgresql":
        return set(connection.scalars(_VISIBLE))
    inspector = sa.inspect(connection)
    # Another process may be trying what its user may do.
    return {*inspector.get_table_names(), *inspector.get_view_names()} - {_TRIED}


def is_unfinished(tables: Collection[str]) -> bool:
    """Return whether the tables of a database without a revision are those of an upgrade that has not recorded one yet.

    alembic creates its own table first.

    :param tables: as from :func:`names`
    """
    return VERSION_TABLE in tables and set(tables) - {VERSION_TABLE} <= metadata.tables.keys()


def check_finished(connection: sa.Connection) -> None:
    """Check, while no upgrade is running, that none was interrupted before it recorded a revision (MariaDB, MySQL).

    :raises ConfigurationError: one was
    """
    tables = names(connection) - {VERSION_TABLE}
    if not tables:
        return
    where = place(connection.engine.url)
    if any(connection.scalar(sa.select(sa.literal(1)).select_from(metadata.tables[name]).limit(1))
           for name in sorted(tables - {revisions.name, schema_revisions.name})):
        raise ConfigurationError(
            f"[database]connection: {where} has tables and rows of ironic-rules, but no revision. Restore a backup; "
            "or, if you know the revision, record it with 'ironic-rules-dbsync stamp REVISION'.")
    raise ConfigurationError(
        f"[database]connection: the creation of the tables in {where} was interrupted. They have no rows: drop the "
        "database, create it again, and run 'ironic-rules-dbsync upgrade'.")


@contextlib.contextmanager
def whole_upgrades(connection: sa.Connection, revision: Callable[[], str | None]) -> Iterator[None]:
    """Report that an earlier upgrade was interrupted, where that has left a part of its changes (MariaDB, MySQL).

    :param revision: returns the one that the database has
    :raises ConfigurationError: in place of the server's error
    """
    try:
        yield
    except (sa.exc.DBAPIError, db_exc.DBError) as error:
        if (reason := done_before(error)) is None:
            raise
        raise ConfigurationError(
            f"[database]connection: an upgrade of {place(connection.engine.url)} was interrupted after revision "
            f"{revision()} ({printable(reason, 300)}). Restore the backup from before it; if it was the first one, "
            "drop the database, create it again, and run 'ironic-rules-dbsync upgrade'.") from error


def place(url: sa.URL) -> str:
    """Return a database as messages name it, without user and password."""
    name = f"the database {printable(url.database or 'in memory', 200)}"
    return f"{name} on {printable(url.host, 64)}" if url.host else name


def check_rights(connection: sa.Connection) -> None:
    """Check that the user has the rights that an upgrade needs (MariaDB, MySQL).

    :raises ConfigurationError: a right is missing
    """
    try:
        for right, statement in _NEEDS:
            with _reported(connection.engine.url, right):
                connection.exec_driver_sql(statement)
    finally:
        if not connection.invalidated:
            with contextlib.suppress(sa.exc.DBAPIError, db_exc.DBError):
                connection.exec_driver_sql(_NEEDS[0][1])


@contextlib.contextmanager
def _reported(url: sa.URL, right: str) -> Iterator[None]:
    try:
        yield
    except (sa.exc.DBAPIError, db_exc.DBError) as error:
        if (reason := denial(error)) is None:
            raise
        user, database = printable(url.username or "", 64), printable(url.database or "", 64)
        grant = (f"ALTER DATABASE {database} OWNER TO {user}" if url.get_backend_name() == "postgresql" else
                 f"GRANT ALL PRIVILEGES ON {database}.* TO {user}@HOST")
        raise ConfigurationError(
            f"[database]connection: the user {user} lacks the right {right} in {place(url)} "
            f"({printable(reason, 300)}). Nothing was changed. Grant it, for example: {grant}.") from error


def rights(url: sa.URL) -> contextlib.AbstractContextManager[None]:
    """Report statements that the server refuses because the user lacks the right to change tables.

    :raises ConfigurationError: in place of the server's error
    """
    return _reported(url, "to create and change tables")
