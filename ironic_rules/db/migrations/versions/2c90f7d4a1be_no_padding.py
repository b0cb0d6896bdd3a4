"""On MariaDB and MySQL, texts that differ only in blanks at their end are different texts, as on other databases.

Revision ID: 2c90f7d4a1be
Revises: f06b2d9c4e81
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.collation import of_server

revision = "2c90f7d4a1be"
down_revision = "f06b2d9c4e81"

_TABLES = (
    "conductors", "periodic_tasks", "nodes", "node_traits", "node_bmc_addresses", "discovered_macs",
    "pending_discoveries", "node_inventory", "inventory_paths", "node_history", "portgroups", "ports",
    "inspection_rules", "inspection_rule_nodes", "inspection_rule_revisions", "inspection_rule_versions",
    "deploy_templates", "deploy_template_steps", "revisions", "pxe_filter_changes",
)


#: The only foreign key of texts. MariaDB converts neither of its columns while it exists.
_KEY, _OF, _TO = "inspection_rule_nodes_rule_uuid_fkey", "inspection_rule_nodes", "inspection_rules"


def upgrade() -> None:
    conn = op.get_bind()
    if conn.dialect.name != "mysql":
        return
    collation = of_server(conn)
    # Each statement commits; after an interruption the migration is run again from the start.
    if any(key["name"] == _KEY for key in sa.inspect(conn).get_foreign_keys(_OF)):
        op.drop_constraint(_KEY, _OF, type_="foreignkey")
    for table in _TABLES:
        conn.execute(sa.text(f"ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE {collation}"))
    op.create_foreign_key(_KEY, _OF, _TO, ["rule_uuid"], ["uuid"], ondelete="CASCADE")
