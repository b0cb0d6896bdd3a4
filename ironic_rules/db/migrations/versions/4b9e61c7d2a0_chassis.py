"""Chassis.

Revision ID: 4b9e61c7d2a0
Revises: e2c86f90b1d7
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "4b9e61c7d2a0"
down_revision = "e2c86f90b1d7"


def upgrade() -> None:
    collate = of_server(op.get_bind())
    op.create_table(
        "chassis",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("description", sa.String(255)),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="chassis_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_chassis0uuid"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
    if op.get_bind().dialect.name == "sqlite":
        # SQLite adds a foreign key with its column only.
        op.execute("ALTER TABLE nodes ADD COLUMN chassis_uuid VARCHAR(36) "
                   "CONSTRAINT nodes_chassis_uuid_fkey REFERENCES chassis (uuid)")
        op.create_index("nodes_chassis_uuid_idx", "nodes", ["chassis_uuid"])
        return
    op.add_column("nodes", sa.Column("chassis_uuid", sa.String(36)))
    # Before the foreign key: MariaDB would create an index of its own for that.
    op.create_index("nodes_chassis_uuid_idx", "nodes", ["chassis_uuid"])
    op.create_foreign_key("nodes_chassis_uuid_fkey", "nodes", "chassis", ["chassis_uuid"], ["uuid"])
