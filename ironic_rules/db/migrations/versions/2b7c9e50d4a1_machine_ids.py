"""Machines are known by their serial numbers and UUIDs, too.

Revision ID: 2b7c9e50d4a1
Revises: 2c90f7d4a1be
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server

revision = "2b7c9e50d4a1"
down_revision = "2c90f7d4a1be"


def upgrade() -> None:
    op.create_table(
        "node_machine_ids",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "value", name="node_machine_ids_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_machine_ids_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
    op.create_index("node_machine_ids_value_idx", "node_machine_ids", ["value"])
