"""``ironic-rules-dbsync``: ``upgrade``, ``version``, ``revision`` and ``stamp`` of the database schema."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import sqlalchemy as sa
from alembic.util import CommandError
from oslo_config import cfg

from ironic_rules import service
from ironic_rules.cmd import lifecycle
from ironic_rules.db import migration
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError


def _add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    subparsers.required = True
    upgrade = subparsers.add_parser("upgrade", help="create the schema, or upgrade it to a revision")
    upgrade.add_argument("revision", nargs="?", default="head", help="default: head, the newest")
    subparsers.add_parser("version", help="print the current revision of the database")
    revision = subparsers.add_parser("revision", help="write a new migration (for developers)")
    revision.add_argument("-m", "--message", required=True, help="short description of the migration")
    revision.add_argument("--autogenerate", action="store_true", help="generate it from the difference to the tables")
    stamp = subparsers.add_parser("stamp", help="record a revision without running migrations")
    stamp.add_argument("revision", help="head, or an id")


_CLI_OPTS = [cfg.SubCommandOpt("command", title="commands", handler=_add_commands)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    return lifecycle.guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, _CLI_OPTS, groups=("DEFAULT", "database"))
    service.setup_logging(conf)
    if not conf.database.connection:
        raise ConfigurationError("[database]connection is not set.")
    engine = Database(conf).engine
    migration.is_current(engine)  # refuses databases of other programs and of newer versions
    try:
        _carry_out(conf.command, engine)
    except (CommandError, TimeoutError) as exc:
        raise ConfigurationError(f"{exc}. The database is at revision {migration.version(engine)}; the newest "
                                 f"revision of this version of ironic-rules is {migration.HEAD}.") from exc
    return 0


def _carry_out(command: argparse.Namespace, engine: sa.Engine) -> None:
    if command.name == "upgrade":
        migration.upgrade(engine, command.revision)
        print(f"The database is at revision {migration.version(engine)}.")
    elif command.name == "version":
        print(migration.version(engine) or "The database has no schema yet: run 'ironic-rules-dbsync upgrade'.")
    elif command.name == "revision":
        migration.revision(engine, command.message, autogenerate=command.autogenerate)
    else:
        migration.stamp(engine, command.revision)
        print(f"The database is marked as revision {command.revision}.")


if __name__ == "__main__":
    sys.exit(main())
