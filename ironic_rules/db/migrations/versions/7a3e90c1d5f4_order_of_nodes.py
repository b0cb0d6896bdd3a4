"""Indexes for lists of nodes in the order of a column, and for those with a rare value.

Revision ID: 7a3e90c1d5f4
Revises: c5e72a91f08d
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7a3e90c1d5f4"
down_revision = "c5e72a91f08d"

_ORDERED = {"name": 'name COLLATE "C" NULLS FIRST', "updated_at": "updated_at NULLS FIRST"}


def upgrade() -> None:
    for name in ("conductor_group", "driver", "fault", "inspection_scope", "maintenance", "retired"):
        op.create_index(f"nodes_{name}_idx", "nodes", [name])
    in_order = op.get_bind().dialect.name == "postgresql"
    for name, key in _ORDERED.items():
        op.create_index(f"nodes_{name}_order_idx", "nodes", [sa.text(key) if in_order else name])
