"""What legacy rules have written on nodes belongs to them.

Revision ID: e58c1b9047d3
Revises: b7e2d04c91fa
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import LONG_TEXT, Json, UTCDateTime

revision = "e58c1b9047d3"
down_revision = "b7e2d04c91fa"


def upgrade() -> None:
    op.create_table(
        "legacy_values",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("action", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("place", LONG_TEXT, nullable=False),
        sa.Column("is_set", sa.Boolean, nullable=False),
        sa.Column("written", Json),
        sa.Column("had_before", sa.Boolean, nullable=False),
        sa.Column("before", Json),
        sa.Column("made", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="legacy_values_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="legacy_values_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
    op.create_index("legacy_values_node_id_idx", "legacy_values", ["node_id", "id"])
    op.create_index("legacy_values_rule_uuid_idx", "legacy_values", ["rule_uuid"])
