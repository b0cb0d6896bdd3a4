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


def upgrade() -> None:
    for name, length in (("failed_rule", 36), ("failed_hook", 255), ("error_template", 300), ("natural_name", 255)):
        op.add_column("nodes", sa.Column(name, sa.String(length)))
    _name()
    in_order = op.get_bind().dialect.name == "postgresql"
    key = 'natural_name COLLATE "C" NULLS FIRST'
    op.create_index("nodes_natural_name_order_idx", "nodes", [sa.text(key) if in_order else "natural_name"])
    op.create_index("node_inspections_created_at_idx", "node_inspections", ["created_at", "outcome"])
    op.drop_index("node_traits_trait_idx", "node_traits")
    op.create_index("node_traits_trait_idx", "node_traits", ["trait", "node_id"])


def _name() -> None:
    """Write the natural names of the nodes that have a name."""
    nodes = sa.table("nodes", sa.column("id"), sa.column("name"), sa.column("natural_name"))
    conn, last = op.get_bind(), 0
    query = sa.select(nodes.c.id, nodes.c.name).where(nodes.c.name.is_not(None)).order_by(nodes.c.id).limit(_ROWS)
    change = sa.update(nodes).where(nodes.c.id == sa.bindparam("of")).values(natural_name=sa.bindparam("to"))
    while rows := conn.execute(query.where(nodes.c.id > last)).all():
        conn.execute(change, [{"of": row.id, "to": natural_name(row.name)} for row in rows])
        last = rows[-1].id
