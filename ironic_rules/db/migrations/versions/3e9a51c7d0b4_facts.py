"""Facts: their definitions, their values by nodes, and the changes of these.

Revision ID: 3e9a51c7d0b4
Revises: 6b0f4d92e7a1
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import Json, UTCDateTime, collation_of_server

revision = "3e9a51c7d0b4"
down_revision = "6b0f4d92e7a1"
phase = "expand"


def upgrade() -> None:
    _create(
        "facts",
        sa.Column("id", sa.SmallInteger, nullable=False, autoincrement=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("defined", sa.Integer, nullable=False),
        sa.Column("value", Json, nullable=False),
        sa.Column("loop", Json),
        sa.Column("conditions", Json, nullable=False),
        sa.Column("combine", sa.String(255)),
        sa.Column("unit", sa.String(32)),
        sa.Column("description", sa.String(255)),
        sa.Column("watched", sa.Boolean, nullable=False),
        sa.Column("bundle", sa.String(255)),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("type", sa.String(16)),
        sa.Column("is_list", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="facts_pkey"),
        sa.UniqueConstraint("name", name="uniq_facts0name"),
    )
    op.create_index("facts_bundle_idx", "facts", ["bundle"])
    _create_of_nodes()
    revisions = sa.table("revisions", sa.column("name"), sa.column("revision"))
    op.execute(revisions.insert().values(name="facts", revision=0))


def _create_of_nodes() -> None:
    for name, value in (("fact_texts", sa.String(255)), ("fact_numbers", sa.Double())):
        _create(
            name, *_owners(name),
            sa.Column("position", sa.SmallInteger, nullable=False, autoincrement=False),
            sa.Column("value", value, nullable=False),
            sa.PrimaryKeyConstraint("node_id", "fact_id", "position", name=f"{name}_pkey"),
        )
        op.create_index(f"{name}_value_idx", name, ["fact_id", "value", "node_id"])
    _create(
        "fact_problems", *_owners("fact_problems"),
        sa.Column("problem", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "fact_id", name="fact_problems_pkey"),
    )
    op.create_index("fact_problems_fact_id_idx", "fact_problems", ["fact_id", "node_id"])
    _create(
        "fact_states",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(16), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="fact_states_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fact_states_node_id_fkey", ondelete="CASCADE"),
    )
    _create(
        "fact_changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        *_owners("fact_changes"),
        sa.Column("before", Json),
        sa.Column("after", Json),
        sa.Column("inspection_uuid", sa.String(36)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="fact_changes_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_fact_changes0uuid"),
    )
    op.create_index("fact_changes_node_id_idx", "fact_changes", ["node_id", "id"])
    op.create_index("fact_changes_fact_id_idx", "fact_changes", ["fact_id", "id"])
    op.create_index("fact_changes_created_at_idx", "fact_changes", ["created_at"])


def _owners(table: str) -> list[Any]:
    """Return the columns of node and fact, with their foreign keys."""
    return [
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("fact_id", sa.SmallInteger, nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=f"{table}_node_id_fkey", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["fact_id"], ["facts.id"], name=f"{table}_fact_id_fkey", ondelete="CASCADE"),
    ]


def _create(name: str, *columns: Any) -> None:
    op.create_table(name, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4",
                    mysql_collate=collation_of_server(op.get_bind()))
