"""Every table of the service, as SQLAlchemy Core tables. ``migrations/`` creates them; a test compares the two."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)

from ironic_rules.db import types
from ironic_rules.db.types import LONG_TEXT, Json, UTCDateTime
from ironic_rules.models.documents import JSONObject

#: Names are fixed, so that migrations can refer to them on every database. oslo.db gets the column from the name of a
#: violated unique constraint if it has this form.
metadata = sa.MetaData(naming_convention={
    "ix": "%(table_name)s_%(column_0_name)s_idx",
    "uq": "uniq_%(table_name)s0%(column_0_name)s",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "pk": "%(table_name)s_pkey",
})

#: Text compares byte by byte, as on SQLite and PostgreSQL: names that differ in case, or in a blank at the end, are
#: different names. Migrations use the collation of the server's kind, ``types.collation_of_server``.
_TABLE_ARGS: JSONObject = {
    "mysql_engine": "InnoDB", "mysql_charset": "utf8mb4", "mysql_collate": types.MARIADB_COLLATION,
}


def _node_id(**kwargs: Any) -> Column[int]:
    return Column("node_id", Integer, ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False, **kwargs)


def _timestamps() -> list[Column[object]]:
    return [Column("created_at", UTCDateTime, nullable=False), Column("updated_at", UTCDateTime)]


conductors = sa.Table(
    "conductors", metadata,
    Column("id", Integer, primary_key=True),
    Column("hostname", String(255), nullable=False),
    Column("conductor_group", String(255), nullable=False, default=""),
    # Identifies one run of the process, so that two processes with the same host name detect each other.
    Column("instance", String(36), nullable=False),
    Column("hardware_types", Json, nullable=False),
    Column("online", Boolean, nullable=False, default=True),
    Column("pinned_release", String(32)),
    *_timestamps(),
    UniqueConstraint("hostname"),
    **_TABLE_ARGS,
)

periodic_tasks = sa.Table(
    "periodic_tasks", metadata,
    Column("name", String(255), primary_key=True),
    # The conductor that ran it last.
    Column("hostname", String(255), nullable=False),
    Column("started_at", UTCDateTime, nullable=False),
    **_TABLE_ARGS,
)

chassis = sa.Table(
    "chassis", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("description", String(255)),
    Column("extra", Json, nullable=False, default=dict),
    *_timestamps(),
    UniqueConstraint("uuid"),
    **_TABLE_ARGS,
)

nodes = sa.Table(
    "nodes", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    # Counts the changes of the row, so that a read-modify-write detects a concurrent change.
    Column("revision", Integer, nullable=False, default=1),
    Column("driver", String(255), nullable=False),
    Column("driver_info", Json, nullable=False, default=dict),
    Column("driver_internal_info", Json, nullable=False, default=dict),
    Column("properties", Json, nullable=False, default=dict),
    Column("instance_info", Json, nullable=False, default=dict),
    Column("instance_uuid", String(36)),
    # As instance_uuid, where the instance is an allocation.
    Column("allocation_uuid", String(36)),
    Column("extra", Json, nullable=False, default=dict),
    Column("network_data", Json, nullable=False, default=dict),
    Column("power_state", String(15)),
    Column("target_power_state", String(15)),
    Column("provision_state", String(15), nullable=False),
    Column("target_provision_state", String(15)),
    Column("provision_updated_at", UTCDateTime),
    Column("last_error", Text),
    Column("reservation", String(255)),
    # Token of this acquisition of the lock; NULL: by a process of a version without tokens.
    Column("reservation_token", String(64)),
    Column("reservation_purpose", String(64)),
    Column("reservation_resumptions", Integer, nullable=False, server_default="0"),
    Column("reserved_at", UTCDateTime),
    Column("agent_token_hash", String(64)),
    Column("clean_step", Json, nullable=False, default=dict),
    Column("deploy_step", Json, nullable=False, default=dict),
    Column("service_step", Json, nullable=False, default=dict),
    Column("raid_config", Json, nullable=False, default=dict),
    Column("target_raid_config", Json, nullable=False, default=dict),
    *[Column(f"{kind}_interface", String(255)) for kind in (
        "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue",
        "storage", "vendor")],
    Column("console_enabled", Boolean, nullable=False, default=False),
    Column("maintenance", Boolean, nullable=False, default=False),
    Column("maintenance_reason", Text),
    Column("fault", String(255)),
    Column("resource_class", String(80)),
    Column("conductor_group", String(255), nullable=False, default=""),
    Column("owner", String(255)),
    Column("lessee", String(255)),
    Column("shard", String(255)),
    Column("parent_node", String(36)),
    # Not its id: lists of nodes show it without a join.
    Column("chassis_uuid", String(36), ForeignKey("chassis.uuid")),
    Column("description", Text),
    Column("automated_clean", Boolean),
    Column("protected", Boolean, nullable=False, default=False),
    Column("protected_reason", Text),
    Column("retired", Boolean, nullable=False, default=False),
    Column("retired_reason", Text),
    Column("boot_mode", String(16)),
    Column("secure_boot", Boolean),
    Column("disable_power_off", Boolean, nullable=False, default=False),
    Column("inspection_started_at", UTCDateTime),
    Column("inspection_finished_at", UTCDateTime),
    Column("auto_discovered", Boolean, nullable=False, default=False),
    Column("inspection_scope", String(255)),
    # The rule or the hook that failed the inspection, and its message before values were filled in.
    Column("failed_rule", String(36)),
    Column("failed_hook", String(255)),
    Column("error_template", String(300)),
    # By which names are sorted as people count: see models.nodes.natural_name.
    Column("natural_name", String(255)),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    UniqueConstraint("instance_uuid"),
    # With the id: PostgreSQL otherwise prefers all nodes in their order when it believes that many have a value.
    *[Index(f"nodes_{name}_idx", name, "id") for name in ("provision_state", "maintenance")],
    Index("nodes_reservation_idx", "reservation"),
    Index("nodes_shard_idx", "shard"),
    Index("nodes_owner_idx", "owner"),
    Index("nodes_lessee_idx", "lessee"),
    # By which flavors select nodes.
    Index("nodes_resource_class_idx", "resource_class"),
    Index("nodes_parent_node_idx", "parent_node"),
    Index("nodes_chassis_uuid_idx", "chassis_uuid"),
    # For lists of the few nodes that have a certain value among many.
    *[Index(f"nodes_{name}_idx", name) for name in (
        "conductor_group", "driver", "fault", "inspection_scope", "retired")],
    # For nodes in the order of these columns; in PostgreSQL NULL first, and text by its bytes, as pages are sorted.
    # Besides the unique index of names, because MariaDB does not sort by that and the id.
    Index("nodes_name_order_idx", "name"),
    Index("nodes_updated_at_order_idx", "updated_at"),
    Index("nodes_natural_name_order_idx", "natural_name"),
    # For the number of nodes that were discovered in the last minute.
    Index("nodes_auto_discovered_idx", "auto_discovered", "created_at"),
    **_TABLE_ARGS,
)

node_traits = sa.Table(
    "node_traits", metadata,
    _node_id(primary_key=True),
    Column("trait", String(255), primary_key=True),
    # With the node: traits are counted in the index alone.
    Index("node_traits_trait_idx", "trait", "node_id"),
    **_TABLE_ARGS,
)

node_bmc_addresses = sa.Table(
    "node_bmc_addresses", metadata,
    _node_id(primary_key=True),
    Column("address", String(45), primary_key=True),
    Index("node_bmc_addresses_address_idx", "address"),
    **_TABLE_ARGS,
)

#: Serial numbers and UUIDs of machines: discovery compares with them.
node_machine_ids = sa.Table(
    "node_machine_ids", metadata,
    _node_id(primary_key=True),
    Column("value", String(64), primary_key=True),
    Index("node_machine_ids_value_idx", "value"),
    **_TABLE_ARGS,
)

#: MAC addresses of discovered machines that have no port ([inspector]add_ports): the machines are known by them too.
discovered_macs = sa.Table(
    "discovered_macs", metadata,
    Column("address", String(17), primary_key=True),
    _node_id(),
    Index("discovered_macs_node_id_idx", "node_id"),
    **_TABLE_ARGS,
)

#: MAC addresses that the machine of a node has reported, and another node has, or its machine has reported as well.
shared_macs = sa.Table(
    "shared_macs", metadata,
    _node_id(primary_key=True),
    Column("address", String(17), primary_key=True),
    Column("created_at", UTCDateTime, nullable=False),
    Index("shared_macs_address_idx", "address"),
    **_TABLE_ARGS,
)

#: Nodes that discovery has created and whose data no conductor has accepted yet.
pending_discoveries = sa.Table(
    "pending_discoveries", metadata,
    _node_id(primary_key=True),
    Column("created_at", UTCDateTime, nullable=False),
    **_TABLE_ARGS,
)

#: Discovered nodes for which no provision state was requested yet, and the size in bytes of the report of each.
unclaimed_discoveries = sa.Table(
    "unclaimed_discoveries", metadata,
    _node_id(primary_key=True),
    Column("created_at", UTCDateTime, nullable=False),
    Column("size", Integer, nullable=False),
    Index("unclaimed_discoveries_created_at_idx", "created_at"),
    **_TABLE_ARGS,
)

node_inventory = sa.Table(
    "node_inventory", metadata,
    Column("id", Integer, primary_key=True),
    # As the ramdisk sent them; hooks and rules never change the inventory, and work on a copy of the plugin data.
    Column("inventory_data", Json, nullable=False),
    Column("received_plugin_data", Json, nullable=False),
    Column("plugin_data", Json),
    Column("status", String(16), nullable=False),  # received | waiting | processed | failed
    # Why the inspection has to fail: known before the data were stored.
    Column("refusal", Text),
    Column("request_id", String(64)),
    # Nullable, as in the document.
    Column("node_id", Integer, ForeignKey("nodes.id", ondelete="CASCADE")),
    *_timestamps(),
    Index("inventory_node_id_idx", "node_id", "status"),
    **_TABLE_ARGS,
)

#: Paths of stored inventories, without those that ramdisks are known to send; see ``models.inventories``.
inventory_paths = sa.Table(
    "inventory_paths", metadata,
    Column("path", String(255), primary_key=True),
    **_TABLE_ARGS,
)

node_history = sa.Table(
    "node_history", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    _node_id(),
    Column("conductor", String(255)),
    Column("event_type", String(255)),
    Column("severity", String(16)),
    Column("event", Text),
    Column("user", String(64)),
    # The entry in node_inspections, which may be gone.
    Column("inspection_uuid", String(36)),
    Column("request_id", String(64)),
    *_timestamps(),
    UniqueConstraint("uuid"),
    Index("node_history_node_id_idx", "node_id"),
    **_TABLE_ARGS,
)

#: Inspections that have ended, a row each.
node_inspections = sa.Table(
    "node_inspections", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    _node_id(),
    Column("created_at", UTCDateTime, nullable=False),
    Column("started_at", UTCDateTime),
    Column("kind", String(16), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("user", String(255)),
    # The address that sent the data.
    Column("source", String(64)),
    Column("conductor", String(255)),
    Column("request_id", String(64)),
    # Not a foreign key: older data are deleted first.
    Column("inventory_id", Integer),
    Column("details", Json, nullable=False),
    UniqueConstraint("uuid"),
    Index("node_inspections_node_id_idx", "node_id"),
    # For the outcomes of the last day.
    Index("node_inspections_created_at_idx", "created_at", "outcome"),
    **_TABLE_ARGS,
)

portgroups = sa.Table(
    "portgroups", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    _node_id(),
    Column("address", String(17)),
    Column("mode", String(255), nullable=False),
    Column("properties", Json, nullable=False, default=dict),
    Column("extra", Json, nullable=False, default=dict),
    Column("internal_info", Json, nullable=False, default=dict),
    Column("standalone_ports_supported", Boolean, nullable=False, default=True),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    UniqueConstraint("address"),
    Index("portgroups_node_id_idx", "node_id"),
    **_TABLE_ARGS,
)

ports = sa.Table(
    "ports", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    Column("address", String(17), nullable=False),
    _node_id(),
    Column("portgroup_id", Integer, ForeignKey("portgroups.id")),
    Column("pxe_enabled", Boolean, nullable=False, default=True),
    Column("local_link_connection", Json, nullable=False, default=dict),
    Column("physical_network", String(64)),
    Column("is_smartnic", Boolean, nullable=False, default=False),
    Column("internal_info", Json, nullable=False, default=dict),
    Column("extra", Json, nullable=False, default=dict),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    UniqueConstraint("address"),
    Index("ports_node_id_idx", "node_id"),
    Index("ports_portgroup_id_idx", "portgroup_id"),
    **_TABLE_ARGS,
)


allocations = sa.Table(
    "allocations", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    Column("node_id", Integer, ForeignKey("nodes.id", ondelete="CASCADE")),
    Column("state", String(15), nullable=False),
    Column("last_error", Text),
    Column("resource_class", String(80)),
    Column("traits", Json, nullable=False, default=list),
    Column("candidate_nodes", Json, nullable=False, default=list),
    Column("extra", Json, nullable=False, default=dict),
    Column("owner", String(255)),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    UniqueConstraint("node_id"),
    Index("allocations_state_idx", "state"),
    **_TABLE_ARGS,
)

volume_connectors = sa.Table(
    "volume_connectors", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    _node_id(),
    Column("type", String(32), nullable=False),
    Column("connector_id", String(255), nullable=False),
    Column("extra", Json, nullable=False, default=dict),
    *_timestamps(),
    UniqueConstraint("uuid"),
    # The selective column first: oslo.db knows the columns of a violated key by its name.
    UniqueConstraint("connector_id", "type", name="uniq_volume_connectors0connector_id0type"),
    Index("volume_connectors_node_id_idx", "node_id"),
    **_TABLE_ARGS,
)

volume_targets = sa.Table(
    "volume_targets", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    _node_id(),
    Column("volume_type", String(64), nullable=False),
    Column("properties", Json, nullable=False, default=dict),
    Column("boot_index", Integer, nullable=False),
    Column("volume_id", String(255), nullable=False),
    Column("extra", Json, nullable=False, default=dict),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("node_id", "boot_index", name="uniq_volume_targets0node_id0boot_index"),
    **_TABLE_ARGS,
)


def _rule_fields() -> list[Column[Any]]:
    """Return the columns of a rule that its versions have, too."""
    return [
        Column("created_at", UTCDateTime, nullable=False),
        Column("updated_at", UTCDateTime),
        # Creation order: unique, and independent of the clock.
        Column("position", Integer, nullable=False),
        Column("priority", Integer, nullable=False, default=0),
        Column("name", String(255)),
        Column("bundle", String(255)),
        Column("description", String(255)),
        Column("enabled", Boolean, nullable=False, default=True, server_default=sa.true()),
        Column("scope", String(255)),
        Column("max_nodes", Integer),
        Column("sensitive", Boolean, nullable=False, default=False),
        Column("phase", String(16)),
        Column("conditions", Json, nullable=False, default=list),
        Column("actions", Json, nullable=False, default=list),
    ]


inspection_rules = sa.Table(
    "inspection_rules", metadata,
    Column("uuid", String(36), primary_key=True),
    # The rule set's revision at the last change of this rule: its ETag.
    Column("revision", Integer, nullable=False),
    *_rule_fields(),
    # The number of its rows in inspection_rule_nodes.
    Column("nodes_counted", Integer, nullable=False, default=0, server_default="0"),
    # Terms for the search in lists, derived from conditions and actions; NULL for sensitive rules.
    Column("ops", LONG_TEXT),
    Column("writes", LONG_TEXT),
    Index("inspection_rules_scope_idx", "scope"),
    Index("inspection_rules_phase_idx", "phase"),
    Index("inspection_rules_name_idx", "name"),
    Index("inspection_rules_bundle_idx", "bundle"),
    # By which processes find what has changed.
    Index("inspection_rules_revision_idx", "revision"),
    Index("inspection_rules_max_nodes_idx", "max_nodes"),
    UniqueConstraint("position"),
    **_TABLE_ARGS,
)

#: The nodes to which rules with ``max_nodes`` have been applied; see ``ironic_rules.db.rule_records``.
inspection_rule_nodes = sa.Table(
    "inspection_rule_nodes", metadata,
    Column("rule_uuid", String(36), ForeignKey("inspection_rules.uuid", ondelete="CASCADE"), primary_key=True),
    # Not a foreign key: a node that is deleted stays counted.
    Column("node_uuid", String(36), primary_key=True),
    **_TABLE_ARGS,
)

#: Statistics of rules, stored and built-in ones; see ``ironic_rules.db.rule_records``.
inspection_rule_statistics = sa.Table(
    "inspection_rule_statistics", metadata,
    Column("rule_uuid", String(36), primary_key=True),
    # The same, so that the row ends with the rule; NULL for a built-in rule.
    Column("stored_rule", String(36), ForeignKey("inspection_rules.uuid", ondelete="CASCADE")),
    Column("considered", BigInteger, nullable=False),
    Column("evaluated", BigInteger, nullable=False),
    Column("matched", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("last_matched_at", UTCDateTime),
    Column("last_node", String(36)),
    # The number of rows that it has had in inspection_rule_changed_nodes.
    Column("nodes_changed", Integer, nullable=False),
    Index("inspection_rule_statistics_stored_rule_idx", "stored_rule"),
    **_TABLE_ARGS,
)

#: The nodes that rules have changed, so that none is counted twice.
inspection_rule_changed_nodes = sa.Table(
    "inspection_rule_changed_nodes", metadata,
    Column("rule_uuid", String(36), ForeignKey("inspection_rule_statistics.rule_uuid", ondelete="CASCADE"),
           primary_key=True),
    Column("node_id", Integer, ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True),
    Index("inspection_rule_changed_nodes_node_id_idx", "node_id"),
    **_TABLE_ARGS,
)

#: Revisions of the rule set that are kept; see ``ironic_rules.db.rule_revisions``.
inspection_rule_revisions = sa.Table(
    "inspection_rule_revisions", metadata,
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("created_at", UTCDateTime, nullable=False),
    Column("user", String(255)),
    Column("summary", String(1024), nullable=False),
    **_TABLE_ARGS,
)

#: Rules as they were before they were changed or deleted.
inspection_rule_versions = sa.Table(
    "inspection_rule_versions", metadata,
    Column("uuid", String(36), primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    # The first revision of the set without this version.
    Column("ended", Integer, nullable=False),
    *_rule_fields(),
    Index("inspection_rule_versions_ended_idx", "ended"),
    Index("inspection_rule_versions_position_idx", "position"),
    **_TABLE_ARGS,
)

#: Rules of ``/v1/rules``, in the form of ironic-inspector.
legacy_rules = sa.Table(
    "legacy_rules", metadata,
    Column("uuid", String(36), primary_key=True),
    # The revision of the set at the last change of this rule: its ETag.
    Column("revision", Integer, nullable=False),
    # Creation order: unique, and independent of the clock.
    Column("position", Integer, nullable=False),
    Column("description", LONG_TEXT),
    Column("scope", String(255)),
    Column("conditions", Json, nullable=False, default=list),
    Column("actions", Json, nullable=False, default=list),
    *_timestamps(),
    Index("legacy_rules_revision_idx", "revision"),
    UniqueConstraint("position"),
    **_TABLE_ARGS,
)

#: Values that legacy rules have written on nodes, and have to take back when they no longer match.
legacy_values = sa.Table(
    "legacy_values", metadata,
    Column("id", Integer, primary_key=True),
    _node_id(),
    # Not a foreign key: a rule that is deleted with cleanup owns its values until they are taken back.
    Column("rule_uuid", String(36), nullable=False),
    # The index of the action in the rule.
    Column("action", Integer, nullable=False),
    Column("kind", String(32), nullable=False),
    # The path, or the name of the capability or trait.
    Column("place", LONG_TEXT, nullable=False),
    Column("is_set", Boolean, nullable=False),
    Column("written", Json),
    Column("had_before", Boolean, nullable=False),
    Column("before", Json),
    Column("made", Integer, nullable=False),
    Column("created_at", UTCDateTime, nullable=False),
    Index("legacy_values_node_id_idx", "node_id", "id"),
    Index("legacy_values_rule_uuid_idx", "rule_uuid"),
    **_TABLE_ARGS,
)

#: Work on many nodes that was requested at once; see ``ironic_rules.db.operations``.
operations = sa.Table(
    "operations", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("kind", String(64), nullable=False),
    Column("status", String(16), nullable=False),
    # Request of the operation, in the form of its kind.
    Column("filters", Json, nullable=False),
    Column("user", String(255)),
    # Numbers of its items in each state, once it has ended; null: they have to be counted.
    Column("counts", Json),
    *_timestamps(),
    UniqueConstraint("uuid"),
    Index("operations_status_idx", "status"),
    **_TABLE_ARGS,
)

#: The nodes of operations, each with its result.
operation_items = sa.Table(
    "operation_items", metadata,
    Column("id", Integer, primary_key=True),
    Column("operation_id", Integer, ForeignKey("operations.id", ondelete="CASCADE"), nullable=False),
    # Not a foreign key: a node that is deleted stays counted, with that as its result.
    Column("node_uuid", String(36), nullable=False),
    Column("status", String(16), nullable=False),
    Column("error", Text),
    # Who works on it, and since when: after some time another conductor may.
    Column("claimed_by", String(64)),
    Column("claimed_at", UTCDateTime),
    # Number of times that it was postponed because its node was locked.
    Column("postponed", Integer, nullable=False, server_default="0"),
    # Result of a dry run, and a hash of it: equal ones are a group.
    Column("result", Json),
    Column("result_hash", String(64)),
    Index("operation_items_operation_id_idx", "operation_id", "status", "id"),
    Index("operation_items_result_hash_idx", "operation_id", "result_hash", "id"),
    Index("operation_items_node_uuid_idx", "operation_id", "node_uuid"),
    **_TABLE_ARGS,
)

#: Definitions of facts, also the built-in ones. The ids are small: each value has one, and its indexes have it, too.
facts = sa.Table(
    "facts", metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("name", String(63), nullable=False),
    # The revision of the set of facts at the last change of this one: its ETag.
    Column("revision", Integer, nullable=False),
    # The same of the last change by which its values may be others.
    Column("defined", Integer, nullable=False),
    # In the form of a request.
    Column("value", Json, nullable=False),
    Column("loop", Json),
    Column("conditions", Json, nullable=False, default=list),
    Column("combine", String(255)),
    Column("unit", String(32)),
    Column("description", String(255)),
    Column("watched", Boolean, nullable=False, default=False),
    Column("bundle", String(255)),
    Column("origin", String(16), nullable=False),  # built-in | operator
    # Type of its newest value: text | address | mac, which are in fact_texts; integer | number | boolean, in
    # fact_numbers; NULL: it has had no value yet.
    Column("type", String(16)),
    # Whether any node has had a list of values.
    Column("is_list", Boolean, nullable=False, default=False, server_default=sa.false()),
    *_timestamps(),
    UniqueConstraint("name"),
    Index("facts_bundle_idx", "bundle"),
    **_TABLE_ARGS,
)


def _fact_id(**kwargs: Any) -> Column[int]:
    return Column("fact_id", SmallInteger, ForeignKey("facts.id", ondelete="CASCADE"), nullable=False, **kwargs)


def _fact_values(name: str, value: sa.types.TypeEngine[Any]) -> sa.Table:
    # In this order, PostgreSQL adds no bytes between the columns.
    return sa.Table(
        name, metadata,
        _node_id(primary_key=True),
        _fact_id(primary_key=True),
        # The place in a list.
        Column("position", SmallInteger, primary_key=True, autoincrement=False),
        Column("value", value, nullable=False),
        Index(f"{name}_value_idx", "fact_id", "value", "node_id"),
        **_TABLE_ARGS,
    )


#: Values of facts by nodes: texts, and addresses in their canonical form.
fact_texts = _fact_values("fact_texts", String(255))
#: Numbers, and 0 or 1 for false and true.
fact_numbers = _fact_values("fact_numbers", sa.Double())

#: Why nodes do not have a fact, or not all of its values; nothing is here of facts that the inventory has no data for.
fact_problems = sa.Table(
    "fact_problems", metadata,
    _node_id(primary_key=True),
    _fact_id(primary_key=True),
    Column("problem", String(255), nullable=False),
    Index("fact_problems_fact_id_idx", "fact_id", "node_id"),
    **_TABLE_ARGS,
)

#: The state of the facts of each node: whether they have to be written.
fact_states = sa.Table(
    "fact_states", metadata,
    _node_id(primary_key=True),
    # A hash of all its values and problems.
    Column("digest", String(16), nullable=False),
    # The revision of the set of facts by which they were found.
    Column("revision", Integer, nullable=False),
    **_TABLE_ARGS,
)

#: Values of facts that an inspection has changed.
fact_changes = sa.Table(
    "fact_changes", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    _node_id(),
    _fact_id(),
    # A value, or a list; NULL: there was none.
    Column("before", Json),
    Column("after", Json),
    # The entry in node_inspections, which may be gone.
    Column("inspection_uuid", String(36)),
    Column("created_at", UTCDateTime, nullable=False),
    UniqueConstraint("uuid"),
    Index("fact_changes_node_id_idx", "node_id", "id"),
    Index("fact_changes_fact_id_idx", "fact_id", "id"),
    Index("fact_changes_created_at_idx", "created_at"),
    **_TABLE_ARGS,
)

deploy_templates = sa.Table(
    "deploy_templates", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255), nullable=False),
    # Counts the changes of the template and its steps: its ETag.
    Column("revision", Integer, nullable=False, default=1),
    Column("description", String(255)),
    Column("extra", Json, nullable=False, default=dict),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    **_TABLE_ARGS,
)

deploy_template_steps = sa.Table(
    "deploy_template_steps", metadata,
    # The primary key is also the index of the steps of one template.
    Column("deploy_template_id", Integer, ForeignKey("deploy_templates.id", ondelete="CASCADE"), primary_key=True),
    # The same step may occur several times: its position in the template distinguishes it.
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("interface", String(255), nullable=False),
    Column("step", String(255), nullable=False),
    Column("args", Json, nullable=False),
    Column("priority", Integer, nullable=False),
    Index("deploy_template_steps_interface_idx", "interface"),
    Index("deploy_template_steps_step_idx", "step"),
    **_TABLE_ARGS,
)

runbooks = sa.Table(
    "runbooks", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255), nullable=False),
    Column("steps", Json, nullable=False),
    Column("disable_ramdisk", Boolean, nullable=False, default=False),
    Column("extra", Json, nullable=False, default=dict),
    Column("public", Boolean, nullable=False, default=False),
    Column("owner", String(255)),
    Column("traits", Json, nullable=False, default=list),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    **_TABLE_ARGS,
)

flavors = sa.Table(
    "flavors", metadata,
    Column("id", Integer, primary_key=True),
    # The id for clients: chosen by them, or a UUID.
    Column("flavorid", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("memory_mb", Integer, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("root_gb", Integer, nullable=False),
    Column("ephemeral_gb", Integer, nullable=False, default=0),
    Column("swap", Integer, nullable=False, default=0),
    Column("rxtx_factor", sa.Double, nullable=False, default=1.0),
    Column("is_public", Boolean, nullable=False, default=True),
    Column("description", LONG_TEXT),
    *_timestamps(),
    UniqueConstraint("flavorid"),
    UniqueConstraint("name"),
    **_TABLE_ARGS,
)

flavor_extra_specs = sa.Table(
    "flavor_extra_specs", metadata,
    Column("flavor_id", Integer, ForeignKey("flavors.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("value", String(255), nullable=False),
    **_TABLE_ARGS,
)

#: One row for each kind of serialized and counted changes: "inspection_rules", "legacy_rules", "auto_discovery",
#: "inventory_paths" and "facts".
revisions = sa.Table(
    "revisions", metadata,
    Column("name", String(64), primary_key=True),
    Column("revision", Integer, nullable=False),
    **_TABLE_ARGS,
)

#: The processes that use the database; see ``ironic_rules.db.processes``.
processes = sa.Table(
    "processes", metadata,
    Column("instance", String(36), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("hostname", String(255), nullable=False),
    Column("release", String(64), nullable=False),
    # The newest that its code knows.
    Column("schema_revision", String(32), nullable=False),
    Column("updated_at", UTCDateTime, nullable=False),
    **_TABLE_ARGS,
)

#: The revisions of the schema that were reached: processes learn from them whether they can use one that is newer.
schema_revisions = sa.Table(
    "schema_revisions", metadata,
    Column("revision", String(32), primary_key=True),
    Column("phase", String(16), nullable=False),  # expand | contract
    **_TABLE_ARGS,
)

#: Requests and reports that conductors have accepted, for some minutes; see ``ironic_rules.db.accepted_requests``.
accepted_requests = sa.Table(
    "accepted_requests", metadata,
    Column("id", Integer, primary_key=True),
    _node_id(),
    Column("digest", String(64), nullable=False),
    Column("content", String(64), nullable=False),
    Column("answer", Json),
    Column("created_at", UTCDateTime, nullable=False),
    UniqueConstraint("node_id", "digest", name="uniq_accepted_requests0node_id0digest"),
    Index("accepted_requests_digest_idx", "digest"),
    **_TABLE_ARGS,
)

#: Keys of digests, hexadecimal, which all processes share.
digest_keys = sa.Table(
    "digest_keys", metadata,
    Column("name", String(64), primary_key=True),
    Column("value", String(64), nullable=False),
    **_TABLE_ARGS,
)

#: The nodes whose ports were created, deleted or moved, or got another address; see ``ironic_rules.db.pxe_filter``.
pxe_filter_changes = sa.Table(
    "pxe_filter_changes", metadata,
    Column("id", Integer, primary_key=True),
    # Not a foreign key: the node may have been deleted.
    Column("node_id", Integer, nullable=False),
    **_TABLE_ARGS,
)

#: Rejected reports: a row for each machine and reason.
inspection_journal = sa.Table(
    "inspection_journal", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("created_at", UTCDateTime, nullable=False),
    Column("seen_at", UTCDateTime, nullable=False),
    # A digest of the reason and of what the machine sent about itself.
    Column("machine", String(64), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("times", Integer, nullable=False),
    Column("source", String(64)),
    Column("node_uuid", String(36)),
    Column("detail", Text),
    Column("macs", Json, nullable=False),
    Column("bmc_addresses", Json, nullable=False),
    Column("nodes", Json, nullable=False),
    Column("report", Json),
    UniqueConstraint("uuid"),
    UniqueConstraint("machine"),
    # Only PostgreSQL's indexes do not have the primary key at their end.
    Index("inspection_journal_reason_id_idx", "reason", "id"),
    Index("inspection_journal_seen_at_idx", "seen_at"),
    **_TABLE_ARGS,
)

#: MAC and BMC addresses, and UUIDs of nodes, by which entries of the journal are found.
inspection_journal_keys = sa.Table(
    "inspection_journal_keys", metadata,
    Column("value", String(64), primary_key=True),
    Column("entry_id", Integer, ForeignKey("inspection_journal.id", ondelete="CASCADE"), primary_key=True),
    Index("inspection_journal_keys_entry_id_idx", "entry_id"),
    **_TABLE_ARGS,
)

#: BIOS settings that BMCs reported last; see ``ironic_rules.db.hardware_cache``.
bios_settings = sa.Table(
    "bios_settings", metadata,
    _node_id(primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("value", Text),
    Column("attribute_type", String(255)),
    Column("allowable_values", Json),
    Column("lower_bound", BigInteger),
    Column("max_length", BigInteger),
    Column("min_length", BigInteger),
    Column("read_only", Boolean),
    Column("reset_required", Boolean),
    Column("unique", Boolean),
    Column("upper_bound", BigInteger),
    *_timestamps(),
    **_TABLE_ARGS,
)

firmware_components = sa.Table(
    "firmware_components", metadata,
    _node_id(primary_key=True),
    Column("component", String(255), primary_key=True),
    Column("initial_version", String(255)),
    Column("current_version", String(255)),
    Column("last_version_flashed", String(255)),
    *_timestamps(),
    **_TABLE_ARGS,
)

#: Keys of tables from which rows are deleted as fast as they are added.
_BIG_KEY = BigInteger().with_variant(Integer, "sqlite")

#: The outbox: what has happened, written in the transactions of the changes. See ``ironic_rules.db.outbox``.
events = sa.Table(
    "events", metadata,
    Column("id", _BIG_KEY, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("created_at", UTCDateTime, nullable=False),
    Column("type", String(64), nullable=False),
    Column("level", String(8), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("payload_type", String(64), nullable=False),
    Column("service", String(32), nullable=False),
    Column("host", String(255), nullable=False),
    # The caller: of the request, or of the work that it has begun.
    Column("context", Json, nullable=False),
    Column("payload", LONG_TEXT, nullable=False),
    # Set when the event has its deliveries.
    Column("routed", Boolean, nullable=False, default=False),
    Index("events_routed_id_idx", "routed", "id"),
    **_TABLE_ARGS,
)

#: Deliveries that are left, a row for each receiver, and dead letters.
event_deliveries = sa.Table(
    "event_deliveries", metadata,
    Column("id", _BIG_KEY, primary_key=True),
    Column("event_id", _BIG_KEY, ForeignKey("events.id", ondelete="CASCADE"), nullable=False),
    # Not a foreign key: 0 is the message bus, and a webhook with a million of them is deleted at once.
    Column("webhook_id", Integer, nullable=False),
    Column("dead", Boolean, nullable=False, default=False),
    Column("attempts", Integer, nullable=False, default=0),
    # Time of the event, or of the request to deliver it again.
    Column("created_at", UTCDateTime, nullable=False),
    # Time of the next attempt; while a conductor tries it, the time after which another one may.
    Column("due_at", UTCDateTime, nullable=False),
    Column("claimed_by", String(64)),
    Column("error", String(255)),
    Index("event_deliveries_due_idx", "webhook_id", "dead", "due_at"),
    Index("event_deliveries_dead_idx", "dead", "created_at"),
    Index("event_deliveries_event_id_idx", "event_id"),
    **_TABLE_ARGS,
)

webhooks = sa.Table(
    "webhooks", metadata,
    Column("id", Integer, primary_key=True),
    Column("uuid", String(36), nullable=False),
    Column("name", String(255)),
    Column("description", String(255)),
    Column("url", Text, nullable=False),
    Column("secret", String(255), nullable=False),
    # Patterns of the types of events.
    Column("events", Json, nullable=False),
    Column("level", String(8), nullable=False),
    Column("enabled", Boolean, nullable=False),
    # Failures in a row, and the time of the next attempt after them.
    Column("failures", Integer, nullable=False, default=0),
    Column("retry_at", UTCDateTime),
    Column("last_error", String(255)),
    Column("delivered_at", UTCDateTime),
    *_timestamps(),
    UniqueConstraint("uuid"),
    UniqueConstraint("name"),
    **_TABLE_ARGS,
)
