"""Flavors and their extra specs.

Revision ID: b7e25c90a4d3
Revises: 6a4d83b0c2f5
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import LONG_TEXT, UTCDateTime

revision = "b7e25c90a4d3"
down_revision = "6a4d83b0c2f5"


def upgrade() -> None:
    table_args: dict[str, Any] = {
        "mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": of_server(op.get_bind())}
    op.create_table(
        "flavors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("memory_mb", sa.Integer, nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("root_gb", sa.Integer, nullable=False),
        sa.Column("ephemeral_gb", sa.Integer, nullable=False),
        sa.Column("swap", sa.Integer, nullable=False),
        sa.Column("rxtx_factor", sa.Double, nullable=False),
        sa.Column("is_public", sa.Boolean, nullable=False),
        sa.Column("description", LONG_TEXT),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="flavors_pkey"),
        sa.UniqueConstraint("flavorid", name="uniq_flavors0flavorid"),
        sa.UniqueConstraint("name", name="uniq_flavors0name"),
        **table_args,
    )
    op.create_table(
        "flavor_extra_specs",
        sa.Column("flavor_id", sa.Integer, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("flavor_id", "key", name="flavor_extra_specs_pkey"),
        sa.ForeignKeyConstraint(["flavor_id"], ["flavors.id"], name="flavor_extra_specs_flavor_id_fkey",
                                ondelete="CASCADE"),
        **table_args,
    )
    op.create_index("nodes_resource_class_idx", "nodes", ["resource_class"])
