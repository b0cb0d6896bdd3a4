"""Discovery of machines that are not enrolled; BMC addresses of nodes in every state.

Revision ID: 8e816a9bd7c3
Revises: b3f1c2a94d07
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import Json, UTCDateTime
from ironic_rules.models import addresses

revision = "8e816a9bd7c3"
down_revision = "b3f1c2a94d07"

TABLE_ARGS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def upgrade() -> None:
    op.create_table(
        "discovered_macs",
        sa.Column("address", sa.String(17), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("address", name="discovered_macs_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="discovered_macs_node_id_fkey", ondelete="CASCADE"),
        **TABLE_ARGS,
    )
    op.create_index("discovered_macs_node_id_idx", "discovered_macs", ["node_id"])
    op.create_table(
        "pending_discoveries",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="pending_discoveries_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="pending_discoveries_node_id_fkey",
                                ondelete="CASCADE"),
        **TABLE_ARGS,
    )
    op.create_index("nodes_auto_discovered_idx", "nodes", ["auto_discovered", "created_at"])
    revisions = sa.table("revisions", sa.column("name"), sa.column("revision"))
    op.bulk_insert(revisions, [{"name": "auto_discovery", "revision": 0}])
    _fill_bmc_addresses(op.get_bind())


def _fill_bmc_addresses(conn: sa.Connection) -> None:
    """Write the IP addresses in the ``driver_info`` of every node; before, only waiting nodes had them."""
    nodes = sa.table("nodes", sa.column("id", sa.Integer), sa.column("driver_info", Json))
    table = sa.table("node_bmc_addresses", sa.column("node_id", sa.Integer), sa.column("address", sa.String))
    present = {(row.node_id, row.address) for row in conn.execute(sa.select(table))}
    known = {(row.id, address) for row in conn.execute(sa.select(nodes))
             for address in addresses.literals(row.driver_info)}
    if known - present:
        op.bulk_insert(table, [{"node_id": node_id, "address": address}
                               for node_id, address in sorted(known - present)])
