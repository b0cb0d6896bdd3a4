"""``ironic-rules-dbsync``: the database schema, and what an upgrade or a restore has to do with the rows."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence

import sqlalchemy as sa
from alembic.util import CommandError
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules import service
from ironic_rules.cmd import lifecycle
from ironic_rules.db import migration
from ironic_rules.db.session import Database
from ironic_rules.exceptions import ConfigurationError

LOG = logging.getLogger(__name__)


def _add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    subparsers.required = True
    upgrade = subparsers.add_parser("upgrade", help="create the schema, or upgrade it to a revision")
    upgrade.add_argument("revision", nargs="?", default="head", help="default: head, the newest")
    phases = upgrade.add_mutually_exclusive_group()
    phases.add_argument("--expand", dest="phase", action="store_const", const=migration.EXPAND,
                        help="only add what the new release needs: processes of the release before continue")
    phases.add_argument("--contract", dest="phase", action="store_const", const=migration.CONTRACT,
                        help="only remove what no release uses any more: refused while an earlier one runs")
    migrate = subparsers.add_parser("migrate", help="change rows for the new release, in batches, while processes run")
    migrate.add_argument("--batch", type=_positive, default=migration.BATCH, metavar="ROWS",
                         help=f"maximum number of rows of a transaction; default: {migration.BATCH}")
    subparsers.add_parser("restored", help="after a backup was restored, before any process starts: end what it shows "
                                           "as begun, and put nodes that may have changed since into maintenance")
    subparsers.add_parser("version", help="print the current revision of the database")
    revision = subparsers.add_parser("revision", help="write a new migration (for developers)")
    revision.add_argument("-m", "--message", required=True, help="short description of the migration")
    revision.add_argument("--autogenerate", action="store_true", help="generate it from the difference to the tables")
    stamp = subparsers.add_parser("stamp", help="record a revision without running migrations")
    stamp.add_argument("revision", help="head, or an id")


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


_CLI_OPTS: list[cfg.Opt] = [
    cfg.IntOpt("timeout", dest="cli_timeout", default=60, min=0, metavar="SECONDS",
               help="How long to wait for a database that cannot be reached. Default: 60. 0: one attempt."),
    service.STATE_DIR,
    cfg.SubCommandOpt("command", title="commands", handler=_add_commands),
]
#: Seconds between two attempts to reach the database.
_RETRY_S = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    return lifecycle.guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    conf = service.prepare_config(argv, _CLI_OPTS, groups=("DEFAULT", "database"))
    service.use_database_of_one_process(conf)
    service.setup_logging(conf)
    if not conf.database.connection:
        raise ConfigurationError(service.NO_DATABASE)
    engine = _reached(conf)
    try:
        if conf.command.name == "restored":
            _settle(conf)
        else:
            _carry_out(conf.command, engine, conf.conductor.heartbeat_timeout)
    except (CommandError, TimeoutError) as exc:
        raise ConfigurationError(f"{exc}. The database is at revision {migration.version(engine)}; the newest "
                                 f"revision of this version of ironic-rules is {migration.HEAD}.") from exc
    finally:
        engine.dispose()
    return 0


def _reached(conf: cfg.ConfigOpts) -> sa.Engine:
    """Return the engine of the database when that replies, after ``--timeout`` seconds at most.

    :raises ConfigurationError: it cannot be reached, or is that of another program or of a newer version
    """
    began = time.monotonic()
    # The attempts are made here.
    conf.set_override("max_retries", 0, group="database")
    while True:
        try:
            _probe(conf, max(1, math.ceil(conf.cli_timeout - (time.monotonic() - began))))
            return Database(conf).engine
        except db_exc.DBConnectionError as exc:
            if time.monotonic() - began + _RETRY_S > conf.cli_timeout:
                raise ConfigurationError(f"[database]connection: the server cannot be reached, for {conf.cli_timeout} "
                                         f"seconds (--timeout): {_first_line(exc)}") from exc
            LOG.warning("The database cannot be reached; waiting for it: %s", _first_line(exc))
            time.sleep(_RETRY_S)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]  # the statement and advice follow


def _probe(conf: cfg.ConfigOpts, limit_s: int) -> None:
    """Connect to the database and read its revision, in ``limit_s`` seconds also if the server is silent.

    Statements of a migration may take longer: they have a connection of their own.
    """
    options = conf.database
    parameters = [options.connection_parameters] if options.connection_parameters else []
    if sa.make_url(options.connection).get_backend_name() in ("mysql", "mariadb"):
        parameters.append(f"read_timeout={limit_s}")  # also for the server's greeting
    overrides = {"connect_timeout": min(options.connect_timeout or limit_s, limit_s),
                 "connection_parameters": "&".join(parameters)}
    for name, value in overrides.items():
        conf.set_override(name, value, group="database")
    try:
        probe = Database(conf)
        try:
            migration.is_current(probe.engine)  # refuses databases of other programs and of newer versions
        finally:
            probe.dispose()
    finally:
        for name in overrides:
            conf.clear_override(name, group="database")


def _settle(conf: cfg.ConfigOpts) -> None:
    from ironic_rules.conductor import restoring

    db = service.make_database(conf)
    try:
        settled = restoring.settle(db, conf.conductor.heartbeat_timeout)
    finally:
        db.dispose()
    for node in settled:
        changed = node.before if node.before == node.after else f"{node.before} -> {node.after}"
        print(f"{node.uuid}: {changed}{', in maintenance' if node.maintenance else ''}")
    print(f"{len(settled)} nodes were changed. The processes may be started.")


def _carry_out(command: argparse.Namespace, engine: sa.Engine, alive_s: float) -> None:
    if command.name == "upgrade":
        migration.upgrade(engine, command.revision, phase=command.phase, timeout_s=alive_s)
        print(f"The database is at revision {migration.version(engine)}.")
        if migration.contractions(engine)[0]:
            print("What no release uses any more is still there: when only the new release runs, remove it with "
                  "'ironic-rules-dbsync upgrade --contract'.")
    elif command.name == "migrate":
        print(f"{migration.migrate(engine, command.batch)} rows were changed.")
    elif command.name == "version":
        print(migration.version(engine) or "The database has no schema yet: run 'ironic-rules-dbsync upgrade'.")
    elif command.name == "revision":
        migration.revision(engine, command.message, autogenerate=command.autogenerate)
    else:
        migration.stamp(engine, command.revision)
        print(f"The database is marked as revision {command.revision}.")


if __name__ == "__main__":
    sys.exit(main())
