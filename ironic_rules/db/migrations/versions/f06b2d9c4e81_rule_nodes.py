"""The nodes are counted to which a rule with a limit of nodes is applied.

Revision ID: f06b2d9c4e81
Revises: d18c5e07a3f9
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "f06b2d9c4e81"
down_revision = "d18c5e07a3f9"


def upgrade() -> None:
    op.add_column("inspection_rules", sa.Column("nodes_counted", sa.Integer, nullable=False, server_default="0"))
    op.create_index("inspection_rules_max_nodes_idx", "inspection_rules", ["max_nodes"])
    op.create_table(
        "inspection_rule_nodes",
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("node_uuid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("rule_uuid", "node_uuid", name="inspection_rule_nodes_pkey"),
        sa.ForeignKeyConstraint(
            ["rule_uuid"], ["inspection_rules.uuid"], name="inspection_rule_nodes_rule_uuid_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate="utf8mb4_bin",
    )
