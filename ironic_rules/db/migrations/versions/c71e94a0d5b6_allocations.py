"""Allocations.

Revision ID: c71e94a0d5b6
Revises: c7d4e19b52a6
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "c71e94a0d5b6"
down_revision = "c7d4e19b52a6"


def upgrade() -> None:
    op.add_column("nodes", sa.Column("allocation_uuid", sa.String(36)))
    op.create_table(
        "allocations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("node_id", sa.Integer),
        sa.Column("state", sa.String(15), nullable=False),
        sa.Column("last_error", sa.Text),
        sa.Column("resource_class", sa.String(80)),
        sa.Column("traits", Json, nullable=False),
        sa.Column("candidate_nodes", Json, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="allocations_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_allocations0uuid"),
        sa.UniqueConstraint("name", name="uniq_allocations0name"),
        sa.UniqueConstraint("node_id", name="uniq_allocations0node_id"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="allocations_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
    op.create_index("allocations_state_idx", "allocations", ["state"])
