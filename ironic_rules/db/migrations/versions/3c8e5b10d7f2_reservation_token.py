"""A node's lock has a token, which differs with each acquisition.

Revision ID: 3c8e5b10d7f2
Revises: 2b7c9e50d4a1
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3c8e5b10d7f2"
down_revision = "2b7c9e50d4a1"


def upgrade() -> None:
    # NULL for locks that processes of the previous version hold or take: they are taken over by their host names.
    op.add_column("nodes", sa.Column("reservation_token", sa.String(64)))
