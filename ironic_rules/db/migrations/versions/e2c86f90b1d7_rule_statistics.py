"""Statistics of rules.

Revision ID: e2c86f90b1d7
Revises: c4e82f16a9d3
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import UTCDateTime

revision = "e2c86f90b1d7"
down_revision = "c4e82f16a9d3"


def upgrade() -> None:
    collate = of_server(op.get_bind())
    op.create_table(
        "inspection_rule_statistics",
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("stored_rule", sa.String(36)),
        sa.Column("considered", sa.BigInteger, nullable=False),
        sa.Column("evaluated", sa.BigInteger, nullable=False),
        sa.Column("matched", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("last_matched_at", UTCDateTime),
        sa.Column("last_node", sa.String(36)),
        sa.Column("nodes_changed", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("rule_uuid", name="inspection_rule_statistics_pkey"),
        sa.ForeignKeyConstraint(["stored_rule"], ["inspection_rules.uuid"],
                                name="inspection_rule_statistics_stored_rule_fkey", ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
    op.create_index("inspection_rule_statistics_stored_rule_idx", "inspection_rule_statistics", ["stored_rule"])
    op.create_table(
        "inspection_rule_changed_nodes",
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("rule_uuid", "node_id", name="inspection_rule_changed_nodes_pkey"),
        sa.ForeignKeyConstraint(["rule_uuid"], ["inspection_rule_statistics.rule_uuid"],
                                name="inspection_rule_changed_nodes_rule_uuid_fkey", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="inspection_rule_changed_nodes_node_id_fkey",
                                ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
    op.create_index("inspection_rule_changed_nodes_node_id_idx", "inspection_rule_changed_nodes", ["node_id"])
