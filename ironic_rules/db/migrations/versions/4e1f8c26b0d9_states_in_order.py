"""Indexes for lists of the nodes of a state, and of those in maintenance, in their order.

PostgreSQL reads all nodes in their order, and leaves out others, if it believes that many have the value: it remembers
for a while how many had it before.

Revision ID: 4e1f8c26b0d9
Revises: 7a3e90c1d5f4
"""

from __future__ import annotations

from alembic import op

revision = "4e1f8c26b0d9"
down_revision = "7a3e90c1d5f4"


def upgrade() -> None:
    for name in ("provision_state", "maintenance"):
        op.drop_index(f"nodes_{name}_idx", "nodes")
        op.create_index(f"nodes_{name}_idx", "nodes", [name, "id"])
