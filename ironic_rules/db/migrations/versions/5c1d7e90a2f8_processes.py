"""Processes with the revision that their code knows, and the revisions of the schema with their phases.

Revision ID: 5c1d7e90a2f8
Revises: 5c8d1e92f0a7
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import UTCDateTime, collation_of_server

revision = "5c1d7e90a2f8"
down_revision = "5c8d1e92f0a7"
phase = "expand"

#: All of them are of this phase.
_BEFORE = ("d84b07e3c19a", "6b0f4d92e7a1", "3e9a51c7d0b4", "9c21d7e4f0a8", "5c8d1e92f0a7")


def upgrade() -> None:
    _create(
        "processes",
        sa.Column("instance", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("release", sa.String(64), nullable=False),
        sa.Column("schema_revision", sa.String(32), nullable=False),
        sa.Column("updated_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("instance", name="processes_pkey"))
    _create(
        "schema_revisions",
        sa.Column("revision", sa.String(32), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="schema_revisions_pkey"))
    made = sa.table("schema_revisions", sa.column("revision"), sa.column("phase"))
    op.bulk_insert(made, [{"revision": each, "phase": "expand"} for each in _BEFORE])


def _create(name: str, *columns: Any) -> None:
    op.create_table(name, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4",
                    mysql_collate=collation_of_server(op.get_bind()))
