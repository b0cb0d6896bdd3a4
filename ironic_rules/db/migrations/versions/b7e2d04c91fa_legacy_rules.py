"""Rules in the form of ironic-inspector.

Revision ID: b7e2d04c91fa
Revises: b7e25c90a4d3
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server
from ironic_rules.db.types import LONG_TEXT, Json, UTCDateTime

revision = "b7e2d04c91fa"
down_revision = "b7e25c90a4d3"


def upgrade() -> None:
    op.create_table(
        "legacy_rules",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("description", LONG_TEXT),
        sa.Column("scope", sa.String(255)),
        sa.Column("conditions", Json, nullable=False),
        sa.Column("actions", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("uuid", name="legacy_rules_pkey"),
        sa.UniqueConstraint("position", name="uniq_legacy_rules0position"),
        mysql_engine="InnoDB", mysql_charset="utf8mb4", mysql_collate=of_server(op.get_bind()),
    )
    op.create_index("legacy_rules_revision_idx", "legacy_rules", ["revision"])
    op.execute("INSERT INTO revisions (name, revision) VALUES ('legacy_rules', 0)")
