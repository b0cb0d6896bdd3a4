"""An index for lists of the nodes of a state, in their order.

PostgreSQL reads all nodes in their order, and leaves out those of other states, if it believes that many have the
state: it remembers for a while how many had it before.

Revision ID: 4e1f8c26b0d9
Revises: 7a3e90c1d5f4
"""

from __future__ import annotations

from alembic import op

revision = "4e1f8c26b0d9"
down_revision = "7a3e90c1d5f4"


def upgrade() -> None:
    op.drop_index("nodes_provision_state_idx", "nodes")
    op.create_index("nodes_provision_state_idx", "nodes", ["provision_state", "id"])
