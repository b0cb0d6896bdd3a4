"""Periodic tasks that run on only one conductor at a time.

Revision ID: c94e07b1d2a8
Revises: 8e816a9bd7c3
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import UTCDateTime

revision = "c94e07b1d2a8"
down_revision = "8e816a9bd7c3"


def upgrade() -> None:
    op.create_table(
        "periodic_tasks",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("started_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="periodic_tasks_pkey"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin",
    )
