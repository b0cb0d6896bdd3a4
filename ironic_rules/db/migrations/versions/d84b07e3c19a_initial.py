"""The tables.

Revision ID: d84b07e3c19a
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from ironic_rules.db.types import LONG_TEXT, Json, UTCDateTime, collation_of_server

revision = "d84b07e3c19a"
down_revision = None
phase = "expand"

#: By which lists of nodes are sorted: in PostgreSQL NULL first, and text by its bytes.
_ORDERED = {"name": 'name COLLATE "C" NULLS FIRST', "updated_at": "updated_at NULLS FIRST"}


def upgrade() -> None:
    _create_conductors()
    _create_nodes()
    _create_discovery()
    _create_inspections()
    _create_ports()
    _create_allocations()
    _create_volumes()
    _create_inspection_rules()
    _create_legacy_rules()
    _create_operations()
    _create_steps()
    _create_flavors()
    _create_accepted_requests()
    _create_journal()
    _create_hardware()
    _create_revisions()


def _create(name: str, *parts: SchemaItem) -> None:
    op.create_table(name, *parts, mysql_engine="InnoDB", mysql_charset="utf8mb4",
                    mysql_collate=collation_of_server(op.get_bind()))


def _create_conductors() -> None:
    _create(
        "conductors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("conductor_group", sa.String(255), nullable=False),
        sa.Column("instance", sa.String(36), nullable=False),
        sa.Column("hardware_types", Json, nullable=False),
        sa.Column("online", sa.Boolean, nullable=False),
        sa.Column("pinned_release", sa.String(32)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="conductors_pkey"),
        sa.UniqueConstraint("hostname", name="uniq_conductors0hostname"),
    )
    _create(
        "periodic_tasks",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("started_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("name", name="periodic_tasks_pkey"),
    )


def _create_nodes() -> None:
    _create(
        "chassis",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("description", sa.String(255)),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="chassis_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_chassis0uuid"),
    )
    _create(
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
        sa.Column("allocation_uuid", sa.String(36)),
        sa.Column("extra", Json, nullable=False),
        sa.Column("network_data", Json, nullable=False),
        sa.Column("power_state", sa.String(15)),
        sa.Column("target_power_state", sa.String(15)),
        sa.Column("provision_state", sa.String(15), nullable=False),
        sa.Column("target_provision_state", sa.String(15)),
        sa.Column("provision_updated_at", UTCDateTime),
        sa.Column("last_error", sa.Text),
        sa.Column("reservation", sa.String(255)),
        sa.Column("reservation_token", sa.String(64)),
        sa.Column("reservation_purpose", sa.String(64)),
        sa.Column("reservation_resumptions", sa.Integer, nullable=False, server_default="0"),
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
        sa.Column("chassis_uuid", sa.String(36)),
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
        sa.ForeignKeyConstraint(["chassis_uuid"], ["chassis.uuid"], name="nodes_chassis_uuid_fkey"),
        sa.UniqueConstraint("uuid", name="uniq_nodes0uuid"),
        sa.UniqueConstraint("name", name="uniq_nodes0name"),
        sa.UniqueConstraint("instance_uuid", name="uniq_nodes0instance_uuid"),
    )
    op.create_index("nodes_auto_discovered_idx", "nodes", ["auto_discovered", "created_at"])
    op.create_index("nodes_chassis_uuid_idx", "nodes", ["chassis_uuid"])
    op.create_index("nodes_conductor_group_idx", "nodes", ["conductor_group"])
    op.create_index("nodes_driver_idx", "nodes", ["driver"])
    op.create_index("nodes_fault_idx", "nodes", ["fault"])
    op.create_index("nodes_inspection_scope_idx", "nodes", ["inspection_scope"])
    op.create_index("nodes_lessee_idx", "nodes", ["lessee"])
    op.create_index("nodes_maintenance_idx", "nodes", ["maintenance", "id"])
    op.create_index("nodes_owner_idx", "nodes", ["owner"])
    op.create_index("nodes_parent_node_idx", "nodes", ["parent_node"])
    op.create_index("nodes_provision_state_idx", "nodes", ["provision_state", "id"])
    op.create_index("nodes_reservation_idx", "nodes", ["reservation"])
    op.create_index("nodes_resource_class_idx", "nodes", ["resource_class"])
    op.create_index("nodes_retired_idx", "nodes", ["retired"])
    op.create_index("nodes_shard_idx", "nodes", ["shard"])
    _order_nodes()
    _create(
        "node_traits",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("trait", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "trait", name="node_traits_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_traits_node_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("node_traits_trait_idx", "node_traits", ["trait"])
    _create(
        "node_bmc_addresses",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("address", sa.String(45), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "address", name="node_bmc_addresses_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_bmc_addresses_node_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("node_bmc_addresses_address_idx", "node_bmc_addresses", ["address"])
    _create(
        "node_machine_ids",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "value", name="node_machine_ids_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_machine_ids_node_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("node_machine_ids_value_idx", "node_machine_ids", ["value"])


def _order_nodes() -> None:
    in_order = op.get_bind().dialect.name == "postgresql"
    for name, key in _ORDERED.items():
        op.create_index(f"nodes_{name}_order_idx", "nodes", [sa.text(key) if in_order else name])


def _create_discovery() -> None:
    _create(
        "discovered_macs",
        sa.Column("address", sa.String(17), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("address", name="discovered_macs_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="discovered_macs_node_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("discovered_macs_node_id_idx", "discovered_macs", ["node_id"])
    _create(
        "pending_discoveries",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="pending_discoveries_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="pending_discoveries_node_id_fkey", ondelete="CASCADE"),
    )
    _create(
        "unclaimed_discoveries",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="unclaimed_discoveries_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="unclaimed_discoveries_node_id_fkey",
                                ondelete="CASCADE"),
    )
    op.create_index("unclaimed_discoveries_created_at_idx", "unclaimed_discoveries", ["created_at"])


def _create_inspections() -> None:
    _create(
        "node_inventory",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("inventory_data", Json, nullable=False),
        sa.Column("received_plugin_data", Json, nullable=False),
        sa.Column("plugin_data", Json),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("refusal", sa.Text),
        sa.Column("request_id", sa.String(64)),
        sa.Column("node_id", sa.Integer),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="node_inventory_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_inventory_node_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("inventory_node_id_idx", "node_inventory", ["node_id", "status"])
    _create(
        "inventory_paths",
        sa.Column("path", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("path", name="inventory_paths_pkey"),
    )
    _create(
        "node_history",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("conductor", sa.String(255)),
        sa.Column("event_type", sa.String(255)),
        sa.Column("severity", sa.String(16)),
        sa.Column("event", sa.Text),
        sa.Column("user", sa.String(64)),
        sa.Column("inspection_uuid", sa.String(36)),
        sa.Column("request_id", sa.String(64)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="node_history_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_history_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_node_history0uuid"),
    )
    op.create_index("node_history_node_id_idx", "node_history", ["node_id"])
    _create(
        "node_inspections",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("started_at", UTCDateTime),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("source", sa.String(64)),
        sa.Column("conductor", sa.String(255)),
        sa.Column("request_id", sa.String(64)),
        sa.Column("inventory_id", sa.Integer),
        sa.Column("details", Json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="node_inspections_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="node_inspections_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_node_inspections0uuid"),
    )
    op.create_index("node_inspections_node_id_idx", "node_inspections", ["node_id"])


def _create_ports() -> None:
    _create(
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
    )
    op.create_index("portgroups_node_id_idx", "portgroups", ["node_id"])
    _create(
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
    )
    op.create_index("ports_node_id_idx", "ports", ["node_id"])
    op.create_index("ports_portgroup_id_idx", "ports", ["portgroup_id"])


def _create_allocations() -> None:
    _create(
        "allocations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("node_id", sa.Integer),
        sa.Column("state", sa.String(15), nullable=False),
        sa.Column("last_error", sa.Text),
        sa.Column("resource_class", sa.String(80)),
        sa.Column("traits", Json, nullable=False),
        sa.Column("candidate_nodes", Json, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="allocations_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="allocations_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_allocations0uuid"),
        sa.UniqueConstraint("name", name="uniq_allocations0name"),
        sa.UniqueConstraint("node_id", name="uniq_allocations0node_id"),
    )
    op.create_index("allocations_state_idx", "allocations", ["state"])


def _create_volumes() -> None:
    _create(
        "volume_connectors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("connector_id", sa.String(255), nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="volume_connectors_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="volume_connectors_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_volume_connectors0uuid"),
        sa.UniqueConstraint("connector_id", "type", name="uniq_volume_connectors0connector_id0type"),
    )
    op.create_index("volume_connectors_node_id_idx", "volume_connectors", ["node_id"])
    _create(
        "volume_targets",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("volume_type", sa.String(64), nullable=False),
        sa.Column("properties", Json, nullable=False),
        sa.Column("boot_index", sa.Integer, nullable=False),
        sa.Column("volume_id", sa.String(255), nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="volume_targets_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="volume_targets_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("uuid", name="uniq_volume_targets0uuid"),
        sa.UniqueConstraint("node_id", "boot_index", name="uniq_volume_targets0node_id0boot_index"),
    )


def _create_inspection_rules() -> None:
    _create(
        "inspection_rules",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("bundle", sa.String(255)),
        sa.Column("description", sa.String(255)),
        sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("scope", sa.String(255)),
        sa.Column("max_nodes", sa.Integer),
        sa.Column("sensitive", sa.Boolean, nullable=False),
        sa.Column("phase", sa.String(16)),
        sa.Column("conditions", Json, nullable=False),
        sa.Column("actions", Json, nullable=False),
        sa.Column("nodes_counted", sa.Integer, nullable=False, server_default="0"),
        sa.Column("ops", LONG_TEXT),
        sa.Column("writes", LONG_TEXT),
        sa.PrimaryKeyConstraint("uuid", name="inspection_rules_pkey"),
        sa.UniqueConstraint("position", name="uniq_inspection_rules0position"),
    )
    op.create_index("inspection_rules_bundle_idx", "inspection_rules", ["bundle"])
    op.create_index("inspection_rules_max_nodes_idx", "inspection_rules", ["max_nodes"])
    op.create_index("inspection_rules_name_idx", "inspection_rules", ["name"])
    op.create_index("inspection_rules_phase_idx", "inspection_rules", ["phase"])
    op.create_index("inspection_rules_revision_idx", "inspection_rules", ["revision"])
    op.create_index("inspection_rules_scope_idx", "inspection_rules", ["scope"])
    _create(
        "inspection_rule_nodes",
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("node_uuid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("rule_uuid", "node_uuid", name="inspection_rule_nodes_pkey"),
        sa.ForeignKeyConstraint(["rule_uuid"], ["inspection_rules.uuid"],
                                name="inspection_rule_nodes_rule_uuid_fkey", ondelete="CASCADE"),
    )
    _create(
        "inspection_rule_statistics",
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("stored_rule", sa.String(36)),
        sa.Column("considered", sa.BigInteger, nullable=False),
        sa.Column("evaluated", sa.BigInteger, nullable=False),
        sa.Column("matched", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("last_matched_at", UTCDateTime),
        sa.Column("last_node", sa.String(36)),
        sa.Column("nodes_changed", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("rule_uuid", name="inspection_rule_statistics_pkey"),
        sa.ForeignKeyConstraint(["stored_rule"], ["inspection_rules.uuid"],
                                name="inspection_rule_statistics_stored_rule_fkey", ondelete="CASCADE"),
    )
    op.create_index("inspection_rule_statistics_stored_rule_idx", "inspection_rule_statistics", ["stored_rule"])
    _create(
        "inspection_rule_changed_nodes",
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("rule_uuid", "node_id", name="inspection_rule_changed_nodes_pkey"),
        sa.ForeignKeyConstraint(["rule_uuid"], ["inspection_rule_statistics.rule_uuid"],
                                name="inspection_rule_changed_nodes_rule_uuid_fkey", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="inspection_rule_changed_nodes_node_id_fkey",
                                ondelete="CASCADE"),
    )
    op.create_index("inspection_rule_changed_nodes_node_id_idx", "inspection_rule_changed_nodes", ["node_id"])
    _create(
        "inspection_rule_revisions",
        sa.Column("revision", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("summary", sa.String(1024), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="inspection_rule_revisions_pkey"),
    )
    _create(
        "inspection_rule_versions",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("ended", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("bundle", sa.String(255)),
        sa.Column("description", sa.String(255)),
        sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("scope", sa.String(255)),
        sa.Column("max_nodes", sa.Integer),
        sa.Column("sensitive", sa.Boolean, nullable=False),
        sa.Column("phase", sa.String(16)),
        sa.Column("conditions", Json, nullable=False),
        sa.Column("actions", Json, nullable=False),
        sa.PrimaryKeyConstraint("uuid", "revision", name="inspection_rule_versions_pkey"),
    )
    op.create_index("inspection_rule_versions_ended_idx", "inspection_rule_versions", ["ended"])
    op.create_index("inspection_rule_versions_position_idx", "inspection_rule_versions", ["position"])


def _create_legacy_rules() -> None:
    _create(
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
    )
    op.create_index("legacy_rules_revision_idx", "legacy_rules", ["revision"])
    _create(
        "legacy_values",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("rule_uuid", sa.String(36), nullable=False),
        sa.Column("action", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("place", LONG_TEXT, nullable=False),
        sa.Column("is_set", sa.Boolean, nullable=False),
        sa.Column("written", Json),
        sa.Column("had_before", sa.Boolean, nullable=False),
        sa.Column("before", Json),
        sa.Column("made", sa.Integer, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="legacy_values_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="legacy_values_node_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("legacy_values_node_id_idx", "legacy_values", ["node_id", "id"])
    op.create_index("legacy_values_rule_uuid_idx", "legacy_values", ["rule_uuid"])


def _create_operations() -> None:
    _create(
        "operations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("filters", Json, nullable=False),
        sa.Column("user", sa.String(255)),
        sa.Column("counts", Json),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="operations_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_operations0uuid"),
    )
    op.create_index("operations_status_idx", "operations", ["status"])
    _create(
        "operation_items",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("operation_id", sa.Integer, nullable=False),
        sa.Column("node_uuid", sa.String(36), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("claimed_by", sa.String(64)),
        sa.Column("claimed_at", UTCDateTime),
        sa.Column("postponed", sa.Integer, nullable=False, server_default="0"),
        sa.Column("result", Json),
        sa.Column("result_hash", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="operation_items_pkey"),
        sa.ForeignKeyConstraint(["operation_id"], ["operations.id"], name="operation_items_operation_id_fkey",
                                ondelete="CASCADE"),
    )
    op.create_index("operation_items_node_uuid_idx", "operation_items", ["operation_id", "node_uuid"])
    op.create_index("operation_items_operation_id_idx", "operation_items", ["operation_id", "status", "id"])
    op.create_index("operation_items_result_hash_idx", "operation_items", ["operation_id", "result_hash", "id"])


def _create_steps() -> None:
    _create(
        "deploy_templates",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("description", sa.String(255)),
        sa.Column("extra", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="deploy_templates_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_deploy_templates0uuid"),
        sa.UniqueConstraint("name", name="uniq_deploy_templates0name"),
    )
    _create(
        "deploy_template_steps",
        sa.Column("deploy_template_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("interface", sa.String(255), nullable=False),
        sa.Column("step", sa.String(255), nullable=False),
        sa.Column("args", Json, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("deploy_template_id", "position", name="deploy_template_steps_pkey"),
        sa.ForeignKeyConstraint(["deploy_template_id"], ["deploy_templates.id"],
                                name="deploy_template_steps_deploy_template_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("deploy_template_steps_interface_idx", "deploy_template_steps", ["interface"])
    op.create_index("deploy_template_steps_step_idx", "deploy_template_steps", ["step"])
    _create(
        "runbooks",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("steps", Json, nullable=False),
        sa.Column("disable_ramdisk", sa.Boolean, nullable=False),
        sa.Column("extra", Json, nullable=False),
        sa.Column("public", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String(255)),
        sa.Column("traits", Json, nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="runbooks_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_runbooks0uuid"),
        sa.UniqueConstraint("name", name="uniq_runbooks0name"),
    )


def _create_flavors() -> None:
    _create(
        "flavors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("memory_mb", sa.Integer, nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("root_gb", sa.Integer, nullable=False),
        sa.Column("ephemeral_gb", sa.Integer, nullable=False),
        sa.Column("swap", sa.Integer, nullable=False),
        sa.Column("rxtx_factor", sa.Double, nullable=False),
        sa.Column("is_public", sa.Boolean, nullable=False),
        sa.Column("description", LONG_TEXT),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("id", name="flavors_pkey"),
        sa.UniqueConstraint("flavorid", name="uniq_flavors0flavorid"),
        sa.UniqueConstraint("name", name="uniq_flavors0name"),
    )
    _create(
        "flavor_extra_specs",
        sa.Column("flavor_id", sa.Integer, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("flavor_id", "key", name="flavor_extra_specs_pkey"),
        sa.ForeignKeyConstraint(["flavor_id"], ["flavors.id"], name="flavor_extra_specs_flavor_id_fkey",
                                ondelete="CASCADE"),
    )


def _create_accepted_requests() -> None:
    _create(
        "accepted_requests",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("content", sa.String(64), nullable=False),
        sa.Column("answer", Json),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="accepted_requests_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="accepted_requests_node_id_fkey", ondelete="CASCADE"),
        sa.UniqueConstraint("node_id", "digest", name="uniq_accepted_requests0node_id0digest"),
    )
    op.create_index("accepted_requests_digest_idx", "accepted_requests", ["digest"])
    _create(
        "digest_keys",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("name", name="digest_keys_pkey"),
    )
    _create(
        "pxe_filter_changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pxe_filter_changes_pkey"),
    )


def _create_journal() -> None:
    _create(
        "inspection_journal",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("seen_at", UTCDateTime, nullable=False),
        sa.Column("machine", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.Column("source", sa.String(64)),
        sa.Column("node_uuid", sa.String(36)),
        sa.Column("detail", sa.Text),
        sa.Column("macs", Json, nullable=False),
        sa.Column("bmc_addresses", Json, nullable=False),
        sa.Column("nodes", Json, nullable=False),
        sa.Column("report", Json),
        sa.PrimaryKeyConstraint("id", name="inspection_journal_pkey"),
        sa.UniqueConstraint("uuid", name="uniq_inspection_journal0uuid"),
        sa.UniqueConstraint("machine", name="uniq_inspection_journal0machine"),
    )
    op.create_index("inspection_journal_reason_id_idx", "inspection_journal", ["reason", "id"])
    op.create_index("inspection_journal_seen_at_idx", "inspection_journal", ["seen_at"])
    _create(
        "inspection_journal_keys",
        sa.Column("value", sa.String(64), nullable=False),
        sa.Column("entry_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("value", "entry_id", name="inspection_journal_keys_pkey"),
        sa.ForeignKeyConstraint(["entry_id"], ["inspection_journal.id"],
                                name="inspection_journal_keys_entry_id_fkey", ondelete="CASCADE"),
    )
    op.create_index("inspection_journal_keys_entry_id_idx", "inspection_journal_keys", ["entry_id"])


def _create_hardware() -> None:
    _create(
        "bios_settings",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("value", sa.Text),
        sa.Column("attribute_type", sa.String(255)),
        sa.Column("allowable_values", Json),
        sa.Column("lower_bound", sa.BigInteger),
        sa.Column("max_length", sa.BigInteger),
        sa.Column("min_length", sa.BigInteger),
        sa.Column("read_only", sa.Boolean),
        sa.Column("reset_required", sa.Boolean),
        sa.Column("unique", sa.Boolean),
        sa.Column("upper_bound", sa.BigInteger),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("node_id", "name", name="bios_settings_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="bios_settings_node_id_fkey", ondelete="CASCADE"),
    )
    _create(
        "firmware_components",
        sa.Column("node_id", sa.Integer, nullable=False),
        sa.Column("component", sa.String(255), nullable=False),
        sa.Column("initial_version", sa.String(255)),
        sa.Column("current_version", sa.String(255)),
        sa.Column("last_version_flashed", sa.String(255)),
        sa.Column("created_at", UTCDateTime, nullable=False),
        sa.Column("updated_at", UTCDateTime),
        sa.PrimaryKeyConstraint("node_id", "component", name="firmware_components_pkey"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="firmware_components_node_id_fkey", ondelete="CASCADE"),
    )


def _create_revisions() -> None:
    _create(
        "revisions",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="revisions_pkey"),
    )
    revisions = sa.table("revisions", sa.column("name"), sa.column("revision"))
    op.bulk_insert(revisions, [{"name": name, "revision": 0} for name in (
        "inspection_rules", "auto_discovery", "inventory_paths", "legacy_rules")])
