"""Discovered nodes that no operator has claimed, and the size of the reports that made them.

Revision ID: 9d4a61f8b3e7
Revises: 3f6ad92c71e5
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import UTCDateTime

revision = "9d4a61f8b3e7"
down_revision = "3f6ad92c71e5"


def upgrade() -> None:
    made = op.create_table(
        "unclaimed_discoveries",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="unclaimed_discoveries_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="unclaimed_discoveries_node_id_fkey",
                                ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
    op.create_index("unclaimed_discoveries_created_at_idx", "unclaimed_discoveries", ["created_at"])
    nodes = sa.table("nodes", sa.column("id"), sa.column("created_at"), sa.column("auto_discovered", sa.Boolean),
                     sa.column("provision_state"))
    # Of others, it is not known whether they were ever managed.
    unclaimed = sa.select(nodes.c.id, nodes.c.created_at, sa.literal(0, sa.Integer)).where(
        nodes.c.auto_discovered.is_(True), nodes.c.provision_state == "enroll")
    op.execute(sa.insert(made).from_select(["node_id", "created_at", "size"], unclaimed))
