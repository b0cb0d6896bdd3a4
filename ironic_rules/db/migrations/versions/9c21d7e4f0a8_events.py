"""The outbox: events, and their deliveries; webhooks.

Revision ID: 9c21d7e4f0a8
Revises: 3e9a51c7d0b4
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import LONG_TEXT, Json, UTCDateTime, collation_of_server

revision = "9c21d7e4f0a8"
down_revision = "3e9a51c7d0b4"
phase = "expand"

_BIG_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create(
        "events",
        sa.Column("id", _BIG_KEY, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("payload_type", sa.String(64), nullable=False),
        sa.Column("service", sa.String(32), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("context", Json, nullable=False),
        sa.Column("payload", LONG_TEXT, nullable=False),
        sa.Column("routed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="events_pkey"),
    )
    op.create_index("events_routed_id_idx", "events", ["routed", "id"])
    _create(
        "event_deliveries",
        sa.Column("id", _BIG_KEY, nullable=False),
        sa.Column("event_id", _BIG_KEY, nullable=False),
        sa.Column("webhook_id", sa.Integer, nullable=False),
        sa.Column("dead", sa.Boolean, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("due_at", UTCDateTime, nullable=False),
        sa.Column("claimed_by", sa.String(64)),
        sa.Column("error", sa.String(255)),
        sa.PrimaryKeyConstraint("id", name="event_deliveries_pkey"),
        sa.ForeignKeyConstraint(["event_id"], ["events.id"], name="event_deliveries_event_id_fkey",
                                ondelete="CASCADE"),
    )
    op.create_index("event_deliveries_due_idx", "event_deliveries", ["webhook_id", "dead", "due_at"])
    op.create_index("event_deliveries_dead_idx", "event_deliveries", ["dead", "created_at"])
    op.create_index("event_deliveries_event_id_idx", "event_deliveries", ["event_id"])
    _create(
        "webhooks",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("description", sa.String(255)),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.String(255), nullable=False),
        sa.Column("events", Json, nullable=False),
        sa.Column("level", sa.String(8), nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("retry_at", UTCDateTime),
        sa.Column("last_error", sa.String(255)),
        sa.Column("delivered_at", UTCDateTime),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="webhooks_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_webhooks0uuid"),
        sa.UniqueConstraint("name", name="uniq_webhooks0name"),
    )


def _create(name: str, *parts: Any) -> None:
    op.create_table(name, *parts, mysql_engine="InnoDB", mysql_charset="utf8mb4",
                    mysql_collate=collation_of_server(op.get_bind()))
