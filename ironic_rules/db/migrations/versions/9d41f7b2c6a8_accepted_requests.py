"""What conductors have accepted is remembered for some minutes, and the history has request ids.

Revision ID: 9d41f7b2c6a8
Revises: 3c8e5b10d7f2
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db import collation
from ironic_rules.db.types import Json, UTCDateTime

revision = "9d41f7b2c6a8"
down_revision = "3c8e5b10d7f2"


def upgrade() -> None:
    table_args: dict[str, Any] = {
        "mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": collation.of_server(op.get_bind())}
    op.create_table(
        "accepted_requests",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("answer", Json),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="accepted_requests_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="accepted_requests_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("node_id", "digest", name="uniq_accepted_requests0node_id0digest"),
        **table_args,
    )
    op.create_index("accepted_requests_digest_idx", "accepted_requests", ["digest"])
    op.create_table(
        "digest_keys",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("name", name="digest_keys_pkey"),
        **table_args,
    )
    op.add_column("node_history", sa.Column("request_id", sa.String(64)))
