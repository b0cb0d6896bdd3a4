"""Work on many nodes is requested at once, and done by any conductor.

Revision ID: 3f6ad92c71e5
Revises: e58c1b9047d3
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "3f6ad92c71e5"
down_revision = "e58c1b9047d3"


def upgrade() -> None:
    collation = of_server(op.get_bind())
    op.create_table(
        "operations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("filters", Json, nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="operations_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_operations0uuid"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collation,
    )
    op.create_index("operations_status_idx", "operations", ["status"])
    op.create_table(
        "operation_items",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("operation_id", sa.Integer, nullable=False),
        sa.Column("node_uuid", sa.String(36), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("claimed_by", sa.String(64)),
        sa.Column("claimed_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="operation_items_pkey"),
        sa.ForeignKeyConstraint(["operation_id"], ["operations.id"], name="operation_items_operation_id_fkey",
                                ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collation,
    )
    op.create_index("operation_items_operation_id_idx", "operation_items", ["operation_id", "status", "id"])
