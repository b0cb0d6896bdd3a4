"""The release that each conductor is pinned to.

Revision ID: d84b07e3c19a
Revises: 4e1f8c26b0d9
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "d84b07e3c19a"
down_revision = "4e1f8c26b0d9"


def upgrade() -> None:
    op.add_column("conductors", sa.Column("pinned_release", sa.String(32)))
