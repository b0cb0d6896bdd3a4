"""Volume connectors and targets.

Revision ID: 8d20f5b1a7c3
Revises: 4b9e61c7d2a0
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "8d20f5b1a7c3"
down_revision = "4b9e61c7d2a0"


def upgrade() -> None:
    collate = of_server(op.get_bind())
    op.create_table(
        "volume_connectors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("connector_id", sa.String(255), nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="volume_connectors_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_volume_connectors0uuid"),
        sa.UniqueConstraint("connector_id", "type", name="uniq_volume_connectors0connector_id0type"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="volume_connectors_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
    op.create_index("volume_connectors_node_id_idx", "volume_connectors", ["node_id"])
    op.create_table(
        "volume_targets",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("volume_type", sa.String(64), nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("boot_index", sa.Integer, nullable=False),
        sa.Column("volume_id", sa.String(255), nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="volume_targets_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_volume_targets0uuid"),
        sa.UniqueConstraint("node_id", "boot_index", name="uniq_volume_targets0node_id0boot_index"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="volume_targets_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
