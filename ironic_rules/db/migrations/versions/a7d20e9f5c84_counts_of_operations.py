"""Operations keep counts of their nodes when they have ended, and find one of a million nodes at once.

Revision ID: a7d20e9f5c84
Revises: a5d90c37e1f4
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import Json

revision = "a7d20e9f5c84"
down_revision = "a5d90c37e1f4"


def upgrade() -> None:
    op.add_column("operations", sa.Column("counts", Json))
    op.create_index("operation_items_node_uuid_idx", "operation_items", ["operation_id", "node_uuid"])
