"""Descriptions of deploy templates.

Revision ID: f3b1c8d2a790
Revises: d5a83b6f0e92
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "f3b1c8d2a790"
down_revision = "d5a83b6f0e92"


def upgrade() -> None:
    op.add_column("deploy_templates", sa.Column("description", sa.String(255)))
