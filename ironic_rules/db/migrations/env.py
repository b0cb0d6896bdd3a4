"""The script that alembic runs: it runs migrations on the caller's connection, or on the configured database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.runtime.migration import MigrationContext

from ironic_rules.db.tables import metadata, schema_revisions


def configured_engine() -> sa.Engine:
    """Return an engine for ``[database]connection``: for alembic's own command, which passes no connection."""
    from oslo_config import cfg
    from oslo_db import options

    conf = cfg.ConfigOpts()
    options.set_defaults(conf)
    conf([], project="ironic-rules")
    return sa.create_engine(conf.database.connection)


def record(ctx: MigrationContext, step: Any, heads: object, run_args: object) -> None:
    """Record a revision that was reached with its phase, for processes that do not know it."""
    connection = ctx.connection
    if connection is None or not step.is_upgrade or step.is_stamp or not sa.inspect(connection).has_table(
            schema_revisions.name):
        return
    connection.execute(sa.insert(schema_revisions).values(
        revision=step.up_revision_id, phase=getattr(step.up_revision.module, "phase", "contract")))


def run(connection: sa.Connection) -> None:
    """Run the migrations that alembic selects."""
    # SQLite can alter a table only by copying it, which batch mode does.
    batch = connection.dialect.name == "sqlite"
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=batch,
                      on_version_apply=record)
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with configured_engine().begin() as own:
        run(own)
