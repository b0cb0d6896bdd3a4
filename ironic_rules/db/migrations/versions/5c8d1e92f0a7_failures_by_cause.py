"""Causes of failed inspections, names in the order of their numbers, and indexes for what the page counts.

Revision ID: 5c8d1e92f0a7
Revises: 9c21d7e4f0a8
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.models.nodes import natural_name

revision = "5c8d1e92f0a7"
down_revision = "9c21d7e4f0a8"
phase = "expand"

_ROWS = 1000
_NODES = sa.table("nodes", sa.column("id"), sa.column("name"), sa.column("natural_name"))


def upgrade() -> None:
    for name, length in (("failed_rule", 36), ("failed_hook", 255), ("error_template", 300), ("natural_name", 255)):
        op.add_column("nodes", sa.Column(name, sa.String(length)))
    while migrate(op.get_bind(), _ROWS):
        pass
    in_order = op.get_bind().dialect.name == "postgresql"
    key = 'natural_name COLLATE "C" NULLS FIRST'
    op.create_index("nodes_natural_name_order_idx", "nodes", [sa.text(key) if in_order else "natural_name"])
    op.create_index("node_inspections_created_at_idx", "node_inspections", ["created_at", "outcome"])
    op.drop_index("node_traits_trait_idx", "node_traits")
    op.create_index("node_traits_trait_idx", "node_traits", ["trait", "node_id"])


def migrate(conn: sa.Connection, limit: int) -> int:
    """Write the natural names of nodes that have none: a release without them writes names only."""
    rows = conn.execute(sa.select(_NODES.c.id, _NODES.c.name).where(
        _NODES.c.name.is_not(None), _NODES.c.natural_name.is_(None)).order_by(_NODES.c.id).limit(limit)).all()
    change = sa.update(_NODES).where(_NODES.c.id == sa.bindparam("of")).values(natural_name=sa.bindparam("to"))
    if rows:
        conn.execute(change, [{"of": row.id, "to": natural_name(row.name)} for row in rows])
    return len(rows)
