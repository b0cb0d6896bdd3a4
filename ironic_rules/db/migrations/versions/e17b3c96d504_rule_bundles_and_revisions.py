"""Rules have a name, a bundle, a switch and a limit of nodes; revisions of their set are kept.

Revision ID: e17b3c96d504
Revises: a46d20f7be91
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db import clock
from ironic_rules.db.types import LONG_TEXT, Json, UTCDateTime
from ironic_rules.models import rule_search

revision = "e17b3c96d504"
down_revision = "a46d20f7be91"

_TABLE_ARGS: dict[str, Any] = {
    "mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}
_BATCH = 500


def upgrade() -> None:
    for column in (
            sa.Column("name", sa.String(255)), sa.Column("bundle", sa.String(255)),
            # The server's default lets processes of the previous version create rules until they are upgraded, too.
            sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
            sa.Column("max_nodes", sa.Integer), sa.Column("ops", LONG_TEXT), sa.Column("writes", LONG_TEXT)):
        op.add_column("inspection_rules", column)
    op.create_index("inspection_rules_name_idx", "inspection_rules", ["name"])
    op.create_index("inspection_rules_bundle_idx", "inspection_rules", ["bundle"])
    op.create_table(
        "inspection_rule_revisions",
        sa.Column("revision", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("summary", sa.String(1024), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="inspection_rule_revisions_pkey"),
        **_TABLE_ARGS,
    )
    op.create_table(
        "inspection_rule_versions",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("ended", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("bundle", sa.String(255)),
        sa.Column("description", sa.String(255)),
        sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("scope", sa.String(255)),
        sa.Column("max_nodes", sa.Integer),
        sa.Column("sensitive", sa.Boolean, nullable=False),
        sa.Column("phase", sa.String(16)),
        sa.Column("conditions", Json, nullable=False),
        sa.Column("actions", Json, nullable=False),
        sa.PrimaryKeyConstraint("uuid", "revision", name="inspection_rule_versions_pkey"),
        **_TABLE_ARGS,
    )
    op.create_index("inspection_rule_versions_ended_idx", "inspection_rule_versions", ["ended"])
    op.create_index("inspection_rule_versions_position_idx", "inspection_rule_versions", ["position"])
    _keep_the_current_revision(op.get_bind())
    _fill_what_lists_are_searched_for(op.get_bind())


def _keep_the_current_revision(conn: sa.Connection) -> None:
    """Keep the existing rules as a revision, to which the set can be rolled back."""
    current = conn.scalar(sa.text("select revision from revisions where name = 'inspection_rules'"))
    if current:
        kept = sa.table("inspection_rule_revisions", sa.column("revision"), sa.column("created_at", UTCDateTime),
                        sa.column("summary"))
        conn.execute(sa.insert(kept).values(
            revision=current, created_at=clock.now(), summary="the rules at the upgrade"))


def _fill_what_lists_are_searched_for(conn: sa.Connection) -> None:
    rules = sa.table("inspection_rules", sa.column("uuid"), sa.column("sensitive", sa.Boolean),
                     sa.column("conditions", Json), sa.column("actions", Json), sa.column("ops"), sa.column("writes"))
    uuids = list(conn.scalars(sa.select(rules.c.uuid)))
    fill = sa.update(rules).where(rules.c.uuid == sa.bindparam("of")).values(
        ops=sa.bindparam("ops"), writes=sa.bindparam("writes"))
    for start in range(0, len(uuids), _BATCH):
        batch = conn.execute(sa.select(rules).where(rules.c.uuid.in_(uuids[start:start + _BATCH]))).all()
        conn.execute(fill, [{"of": row.uuid, **rule_search.texts(row._asdict())} for row in batch])
