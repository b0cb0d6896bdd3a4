"""How often a node's work was resumed is a number of its own, no longer a part of the lock's purpose.

Revision ID: a46d20f7be91
Revises: 7e41c09ab5d6
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "a46d20f7be91"
down_revision = "7e41c09ab5d6"

#: What stood between the purpose and the number.
SEPARATOR = ", resumed: "


def upgrade() -> None:
    # The server's default lets processes of the previous version insert nodes until they are upgraded, too.
    op.add_column("nodes", sa.Column("reservation_resumptions", sa.Integer, nullable=False, server_default="0"))
    nodes = sa.table("nodes", sa.column("id", sa.Integer), sa.column("reservation_purpose", sa.String),
                     sa.column("reservation_resumptions", sa.Integer))
    conn = op.get_bind()
    resumed = sa.select(nodes.c.id, nodes.c.reservation_purpose).where(
        nodes.c.reservation_purpose.contains(SEPARATOR, autoescape=True))
    for row in conn.execute(resumed).all():
        purpose, _, number = row.reservation_purpose.partition(SEPARATOR)
        conn.execute(sa.update(nodes).where(nodes.c.id == row.id).values(
            reservation_purpose=purpose, reservation_resumptions=int(number)))
