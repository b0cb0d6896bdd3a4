"""An index of the journal of refused callbacks by reason in the order of its pages.

Revision ID: c5e72a91f08d
Revises: f3b1c8d2a790
"""

from __future__ import annotations

from alembic import op

revision = "c5e72a91f08d"
down_revision = "f3b1c8d2a790"


def upgrade() -> None:
    op.create_index("inspection_journal_reason_id_idx", "inspection_journal", ["reason", "id"])
    op.drop_index("inspection_journal_reason_idx", "inspection_journal")
