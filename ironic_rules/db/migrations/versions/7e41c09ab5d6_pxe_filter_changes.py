"""The list of changed ports that the PXE filter reads.

Revision ID: 7e41c09ab5d6
Revises: 5d2f8a61c3e4
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7e41c09ab5d6"
down_revision = "5d2f8a61c3e4"


def upgrade() -> None:
    op.create_table(
        "pxe_filter_changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pxe_filter_changes_pkey"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin",
    )
