"""The catalogue of the paths that stored inventories have.

Revision ID: d18c5e07a3f9
Revises: c3d85a1f90b7
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "d18c5e07a3f9"
down_revision = "c3d85a1f90b7"


def upgrade() -> None:
    op.create_table(
        "inventory_paths",
        sa.Column("path", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("path", name="inventory_paths_pkey"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin",
    )
    revisions = sa.table("revisions", sa.column("name"), sa.column("revision"))
    op.bulk_insert(revisions, [{"name": "inventory_paths", "revision": 0}])
