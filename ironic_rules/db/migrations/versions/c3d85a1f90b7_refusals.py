"""Data of an inspection that has to fail are stored with the reason; changed rules are found by an index.

Revision ID: c3d85a1f90b7
Revises: e17b3c96d504
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "c3d85a1f90b7"
down_revision = "e17b3c96d504"


def upgrade() -> None:
    op.add_column("node_inventory", sa.Column("refusal", sa.Text))
    op.create_index("inspection_rules_revision_idx", "inspection_rules", ["revision"])
