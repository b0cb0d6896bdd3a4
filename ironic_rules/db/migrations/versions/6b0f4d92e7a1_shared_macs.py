"""MAC addresses that machines of several nodes have reported.

Revision ID: 6b0f4d92e7a1
Revises: d84b07e3c19a
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import UTCDateTime, collation_of_server

revision = "6b0f4d92e7a1"
down_revision = "d84b07e3c19a"
phase = "expand"


def upgrade() -> None:
    op.create_table(
        "shared_macs",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("address", sa.String(17), nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("node_id", "address", name="shared_macs_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="shared_macs_node_id_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collation_of_server(op.get_bind()),
    )
    op.create_index("shared_macs_address_idx", "shared_macs", ["address"])
