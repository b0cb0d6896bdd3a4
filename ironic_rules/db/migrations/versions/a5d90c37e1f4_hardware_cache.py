"""BIOS settings and firmware components, as BMCs reported them.

Revision ID: a5d90c37e1f4
Revises: 8d20f5b1a7c3
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "a5d90c37e1f4"
down_revision = "8d20f5b1a7c3"


def upgrade() -> None:
    collation = of_server(op.get_bind())
    op.create_table(
        "bios_settings",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("attribute_type", sa.String(255)),
        sa.Column("allowable_values", Json),
        sa.Column("lower_bound", sa.BigInteger),
        sa.Column("max_length", sa.BigInteger),
        sa.Column("min_length", sa.BigInteger),
        sa.Column("read_only", sa.Boolean),
        sa.Column("reset_required", sa.Boolean),
        sa.Column("unique", sa.Boolean),
        sa.Column("upper_bound", sa.BigInteger),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("node_id", "name", name="bios_settings_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="bios_settings_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collation,
    )
    op.create_table(
        "firmware_components",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("component", sa.String(255), nullable=False),
        sa.Column("initial_version", sa.String(255)),
        sa.Column("current_version", sa.String(255)),
        sa.Column("last_version_flashed", sa.String(255)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("node_id", "component", name="firmware_components_pkey"),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name="firmware_components_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collation,
    )
