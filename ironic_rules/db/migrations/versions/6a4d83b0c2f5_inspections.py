"""The history of inspections.

Revision ID: 6a4d83b0c2f5
Revises: 9d41f7b2c6a8
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "6a4d83b0c2f5"
down_revision = "9d41f7b2c6a8"


def upgrade() -> None:
    op.create_table(
        "node_inspections",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("started_at", UTCDateTime),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("source", sa.String(64)),
        sa.Column("conductor", sa.String(255)),
        sa.Column("request_id", sa.String(64)),
        sa.Column("inventory_id", sa.Integer),
        sa.Column("details", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="node_inspections_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_inspections_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_node_inspections0uuid"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
    op.create_index("node_inspections_node_id_idx", "node_inspections", ["node_id"])
    op.add_column("node_history", sa.Column("inspection_uuid", sa.String(36)))
