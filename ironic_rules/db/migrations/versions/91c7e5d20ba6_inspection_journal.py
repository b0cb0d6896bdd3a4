"""The journal of refused callbacks.

Revision ID: 91c7e5d20ba6
Revises: 9d4a61f8b3e7
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import Json, UTCDateTime

revision = "91c7e5d20ba6"
down_revision = "9d4a61f8b3e7"


def upgrade() -> None:
    collate = of_server(op.get_bind())
    op.create_table(
        "inspection_journal",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("seen_at", UTCDateTime, nullable=False),
        sa.Column("machine", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("source", sa.String(64)),
        sa.Column("node_uuid", sa.String(36)),
        sa.Column("detail", sa.Text),
        sa.Column("macs", Json, nullable=False),
        sa.Column("bmc_addresses", Json, nullable=False),
        sa.Column("nodes", Json, nullable=False),
        sa.Column("report", Json),
        sa.PrimaryKeyConstraint("id", name="inspection_journal_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_inspection_journal0uuid"),
        sa.UniqueConstraint("machine", name="uniq_inspection_journal0machine"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
    op.create_index("inspection_journal_reason_idx", "inspection_journal", ["reason"])
    op.create_index("inspection_journal_seen_at_idx", "inspection_journal", ["seen_at"])
    op.create_table(
        "inspection_journal_keys",
        sa.Column("value", sa.String(64), nullable=False),
        sa.Column("entry_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("value", "entry_id", name="inspection_journal_keys_pkey"),
        sa.ForeignKeyConstraint(["entry_id"], ["inspection_journal.id"], name="inspection_journal_keys_entry_id_fkey",
                                ondelete="CASCADE"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=collate,
    )
    op.create_index("inspection_journal_keys_entry_id_idx", "inspection_journal_keys", ["entry_id"])
