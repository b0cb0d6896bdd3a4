"""The fields of nodes and ports: which are JSON, what types they take, and who may write them.

One table serves the database (columns), the API (PATCH and microversions) and the rules (``set-attribute``), so that
none of them can allow what another refuses.
"""

from __future__ import annotations

INTERFACES = (
    "bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue",
    "storage", "vendor",
)
INTERFACE_FIELDS = tuple(f"{kind}_interface" for kind in INTERFACES)

OBJECT = "object"
STRING = "string"
BOOLEAN = "boolean"

#: JSON type of each node field that somebody may write; ``null`` is allowed where NULLABLE says so.
TYPES: dict[str, str] = {
    "name": STRING, "driver": STRING, "driver_info": OBJECT, "properties": OBJECT, "extra": OBJECT,
    "instance_info": OBJECT, "network_data": OBJECT, "instance_uuid": STRING, "resource_class": STRING,
    "description": STRING, "owner": STRING, "lessee": STRING, "conductor_group": STRING, "shard": STRING,
    "parent_node": STRING, "automated_clean": BOOLEAN, "protected": BOOLEAN, "protected_reason": STRING,
    "retired": BOOLEAN, "retired_reason": STRING, "maintenance": BOOLEAN, "maintenance_reason": STRING,
    "disable_power_off": BOOLEAN, "inspection_scope": STRING,
    **dict.fromkeys(INTERFACE_FIELDS, STRING),
}
NOT_NULLABLE = frozenset({
    "driver", "driver_info", "properties", "extra", "instance_info", "network_data", "conductor_group", "protected",
    "retired", "maintenance", "disable_power_off",
})
MAX_LENGTHS: dict[str, int] = {
    "name": 255, "driver": 255, "resource_class": 80, "description": 4096, "owner": 255, "lessee": 255,
    "conductor_group": 255, "shard": 255, "protected_reason": 4096, "retired_reason": 4096, "maintenance_reason": 4096,
    "inspection_scope": 255, "instance_uuid": 36, "parent_node": 36, **dict.fromkeys(INTERFACE_FIELDS, 255),
}

#: JSON columns of the nodes table.
JSON_FIELDS = frozenset({
    "driver_info", "driver_internal_info", "properties", "instance_info", "extra", "network_data", "clean_step",
    "deploy_step", "service_step", "raid_config", "target_raid_config",
})

#: What a PATCH on a node may write.
PATCHABLE = frozenset(TYPES) - {"maintenance_reason"}
#: What ``set-attribute`` and its like may write (DECISIONS, "Inspection rules"); traits go through ``/traits``.
RULE_WRITABLE = frozenset({
    "name", "driver", "driver_info", "properties", "extra", "instance_info", "resource_class", "description", "owner",
    "lessee", "conductor_group", "automated_clean", "protected", "retired", "retired_reason", "inspection_scope",
    *INTERFACE_FIELDS,
})

PORT_JSON_FIELDS = frozenset({"extra", "local_link_connection", "internal_info"})
PORT_TYPES: dict[str, str] = {
    "address": STRING, "extra": OBJECT, "local_link_connection": OBJECT, "pxe_enabled": BOOLEAN,
    "physical_network": STRING, "is_smartnic": BOOLEAN, "name": STRING,
}
PORT_NOT_NULLABLE = frozenset({"address", "extra", "local_link_connection", "pxe_enabled", "is_smartnic"})
#: What ``set-port-attribute`` and its like may write.
PORT_WRITABLE = frozenset({"extra", "local_link_connection", "pxe_enabled", "physical_network", "is_smartnic", "name"})
PORT_MAX_LENGTHS: dict[str, int] = {"physical_network": 64, "name": 255}
