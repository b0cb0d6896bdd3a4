"""Runbooks.

Revision ID: d5a83b6f0e92
Revises: c71e94a0d5b6
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "d5a83b6f0e92"
down_revision = "c71e94a0d5b6"


def upgrade() -> None:
    op.create_table(
        "runbooks",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("steps", Json, nullable=False),
        sa.Column("disable_ramdisk", sa.Boolean, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("traits", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="runbooks_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_runbooks0uuid"),
        sa.UniqueConstraint("name", name="uniq_runbooks0name"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
