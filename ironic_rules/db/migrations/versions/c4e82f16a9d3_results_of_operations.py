"""Operations on many nodes keep what dry runs find, and try locked nodes again.

Revision ID: c4e82f16a9d3
Revises: 91c7e5d20ba6
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import Json

revision = "c4e82f16a9d3"
down_revision = "91c7e5d20ba6"


def upgrade() -> None:
    op.add_column("operation_items", sa.Column("postponed", sa.Integer, nullable=False, server_default="0"))
    op.add_column("operation_items", sa.Column("result", Json))
    op.add_column("operation_items", sa.Column("result_hash", sa.String(64)))
    op.create_index("operation_items_result_hash_idx", "operation_items", ["operation_id", "result_hash", "id"])
