"""The first schema.

Revision ID: b3f1c2a94d07
Revises:
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ironic_rules.db.types import Json, UTCDateTime

revision = "b3f1c2a94d07"
down_revision = None

TABLE_ARGS: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": "utf8mb4_bin"}


def upgrade() -> None:
    op.create_table(
        "conductors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("conductor_group", sa.String(255), nullable=False),
        sa.Column("instance", sa.String(36), nullable=False),
        sa.Column("hardware_types", Json, nullable=False),
        sa.Column("online", sa.Boolean, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="conductors_pkey"),
        sa.UniqueConstraint("hostname", name="uniq_conductors0hostname"),
        **TABLE_ARGS,
    )
    op.create_table(
        "inspection_rules",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("description", sa.String(255)),
        sa.Column("scope", sa.String(255)),
        sa.Column("sensitive", sa.Boolean, nullable=False),
        sa.Column("phase", sa.String(16)),
        sa.Column("conditions", Json, nullable=False),
        sa.Column("actions", Json, nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="inspection_rules_pkey"),
        sa.UniqueConstraint("position", name="uniq_inspection_rules0position"),
        **TABLE_ARGS,
    )
    op.create_index("inspection_rules_phase_idx", "inspection_rules", ["phase"])
    op.create_index("inspection_rules_scope_idx", "inspection_rules", ["scope"])
    op.create_table(
        "nodes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("driver", sa.String(255), nullable=False),
        sa.Column("driver_info", Json, nullable=False),
        sa.Column("driver_internal_info", Json, nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("instance_info", Json, nullable=False),
        sa.Column("instance_uuid", sa.String(36)),
        sa.Column("extra", Json, nullable=False),
        sa.Column("network_data", Json, nullable=False),
        sa.Column("power_state", sa.String(15)),
        sa.Column("target_power_state", sa.String(15)),
        sa.Column("provision_state", sa.String(15), nullable=False),
        sa.Column("target_provision_state", sa.String(15)),
        sa.Column("provision_updated_at", UTCDateTime),
        sa.Column("last_error", sa.Text),
        sa.Column("reservation", sa.String(255)),
        sa.Column("reservation_purpose", sa.String(64)),
        sa.Column("reserved_at", UTCDateTime),
        sa.Column("agent_token_hash", sa.String(64)),
        sa.Column("clean_step", Json, nullable=False),
        sa.Column("deploy_step", Json, nullable=False),
        sa.Column("service_step", Json, nullable=False),
        sa.Column("raid_config", Json, nullable=False),
        sa.Column("target_raid_config", Json, nullable=False),
        sa.Column("bios_interface", sa.String(255)),
        sa.Column("boot_interface", sa.String(255)),
        sa.Column("console_interface", sa.String(255)),
        sa.Column("deploy_interface", sa.String(255)),
        sa.Column("firmware_interface", sa.String(255)),
        sa.Column("inspect_interface", sa.String(255)),
        sa.Column("management_interface", sa.String(255)),
        sa.Column("network_interface", sa.String(255)),
        sa.Column("power_interface", sa.String(255)),
        sa.Column("raid_interface", sa.String(255)),
        sa.Column("rescue_interface", sa.String(255)),
        sa.Column("storage_interface", sa.String(255)),
        sa.Column("vendor_interface", sa.String(255)),
        sa.Column("console_enabled", sa.Boolean, nullable=False),
        sa.Column("maintenance", sa.Boolean, nullable=False),
        sa.Column("maintenance_reason", sa.Text),
        sa.Column("fault", sa.String(255)),
        sa.Column("resource_class", sa.String(80)),
        sa.Column("conductor_group", sa.String(255), nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("lessee", sa.String(255)),
        sa.Column("shard", sa.String(255)),
        sa.Column("parent_node", sa.String(36)),
        sa.Column("description", sa.Text),
        sa.Column("automated_clean", sa.Boolean),
        sa.Column("protected", sa.Boolean, nullable=False),
        sa.Column("protected_reason", sa.Text),
        sa.Column("retired", sa.Boolean, nullable=False),
        sa.Column("retired_reason", sa.Text),
        sa.Column("boot_mode", sa.String(16)),
        sa.Column("secure_boot", sa.Boolean),
        sa.Column("disable_power_off", sa.Boolean, nullable=False),
        sa.Column("inspection_started_at", UTCDateTime),
        sa.Column("inspection_finished_at", UTCDateTime),
        sa.Column("auto_discovered", sa.Boolean, nullable=False),
        sa.Column("inspection_scope", sa.String(255)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="nodes_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_nodes0uuid"),
        sa.UniqueConstraint("name", name="uniq_nodes0name"),
        sa.UniqueConstraint("instance_uuid", name="uniq_nodes0instance_uuid"),
        **TABLE_ARGS,
    )
    op.create_index("nodes_lessee_idx", "nodes", ["lessee"])
    op.create_index("nodes_owner_idx", "nodes", ["owner"])
    op.create_index("nodes_parent_node_idx", "nodes", ["parent_node"])
    op.create_index("nodes_provision_state_idx", "nodes", ["provision_state"])
    op.create_index("nodes_reservation_idx", "nodes", ["reservation"])
    op.create_index("nodes_shard_idx", "nodes", ["shard"])
    op.create_table(
        "revisions",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="revisions_pkey"),
        **TABLE_ARGS,
    )
    op.create_table(
        "node_bmc_addresses",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("address", sa.String(45), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "address", name="node_bmc_addresses_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_bmc_addresses_node_id_fkey", ondelete="CASCADE"),
        **TABLE_ARGS,
    )
    op.create_index("node_bmc_addresses_address_idx", "node_bmc_addresses", ["address"])
    op.create_table(
        "node_history",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("conductor", sa.String(255)),
        sa.Column("event_type", sa.String(255)),
        sa.Column("severity", sa.String(16)),
        sa.Column("event", sa.Text),
        sa.Column("user", sa.String(64)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="node_history_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_history_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_node_history0uuid"),
        **TABLE_ARGS,
    )
    op.create_index("node_history_node_id_idx", "node_history", ["node_id"])
    op.create_table(
        "node_inventory",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("inventory_data", Json, nullable=False),
        sa.Column("received_plugin_data", Json, nullable=False),
        sa.Column("plugin_data", Json),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("request_id", sa.String(64)),
        sa.Column("node_id", sa.Integer),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="node_inventory_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_inventory_node_id_fkey", ondelete="CASCADE"),
        **TABLE_ARGS,
    )
    op.create_index("inventory_node_id_idx", "node_inventory", ["node_id", "status"])
    op.create_table(
        "node_traits",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("trait", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "trait", name="node_traits_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_traits_node_id_fkey", ondelete="CASCADE"),
        **TABLE_ARGS,
    )
    op.create_index("node_traits_trait_idx", "node_traits", ["trait"])
    op.create_table(
        "portgroups",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("address", sa.String(17)),
        sa.Column("mode", sa.String(255), nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("internal_info", Json, nullable=False),
        sa.Column("standalone_ports_supported", sa.Boolean, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="portgroups_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="portgroups_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_portgroups0uuid"),
        sa.UniqueConstraint("name", name="uniq_portgroups0name"),
        sa.UniqueConstraint("address", name="uniq_portgroups0address"),
        **TABLE_ARGS,
    )
    op.create_index("portgroups_node_id_idx", "portgroups", ["node_id"])
    op.create_table(
        "ports",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("address", sa.String(17), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("portgroup_id", sa.Integer),
        sa.Column("pxe_enabled", sa.Boolean, nullable=False),
        sa.Column("local_link_connection", Json, nullable=False),
        sa.Column("physical_network", sa.String(64)),
        sa.Column("is_smartnic", sa.Boolean, nullable=False),
        sa.Column("internal_info", Json, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="ports_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="ports_node_id_fkey", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["portgroup_id"], ["portgroups.id"], name="ports_portgroup_id_fkey"),
        sa.UniqueConstraint("uuid", name="uniq_ports0uuid"),
        sa.UniqueConstraint("name", name="uniq_ports0name"),
        sa.UniqueConstraint("address", name="uniq_ports0address"),
        **TABLE_ARGS,
    )
    op.create_index("ports_node_id_idx", "ports", ["node_id"])
    op.create_index("ports_portgroup_id_idx", "ports", ["portgroup_id"])
    revisions = sa.table("revisions", sa.column("name"), sa.column("revision"))
    op.bulk_insert(revisions, [{"name": "inspection_rules", "revision": 0}])
