"""Policies of nodes and everything below ``/v1/nodes/{node}``, of resources that belong to nodes, and of the fleet.

Ports, port groups, volumes, allocations and chassis; shards, conductors and drivers.
"""

from __future__ import annotations

from ironic_rules.models.nodes import INTERFACE_FIELDS
from ironic_rules.policies.base import (
    ADMIN,
    MEMBER,
    NODE_MEMBER,
    NODE_READER,
    OWNER_ADMIN,
    OWNER_MEMBER,
    OWNER_MEMBER_OR_LESSEE_ADMIN,
    OWNER_OR_LESSEE_ADMIN,
    OWNER_READER,
    READER,
    SERVICE_OR_OWNER_ADMIN,
    documented,
    listed,
)

LIST = "baremetal:node:list"
LIST_ALL = "baremetal:node:list_all"
GET = "baremetal:node:get"
CREATE = "baremetal:node:create"
CREATE_OWN = "baremetal:node:create:self_owned_node"
UPDATE = "baremetal:node:update"
DELETE = "baremetal:node:delete"
DELETE_OWN = "baremetal:node:delete:self_owned_node"
DISABLE_CLEANING = "baremetal:node:disable_cleaning"
UPDATE_OWNER_PROVISIONED = "baremetal:node:update_owner_provisioned"
VALIDATE = "baremetal:node:validate"
GET_DEPLOY_STEPS = "baremetal:node:get_deploy_steps"
SET_MAINTENANCE = "baremetal:node:set_maintenance"
CLEAR_MAINTENANCE = "baremetal:node:clear_maintenance"
GET_STATES = "baremetal:node:get_states"
SET_POWER_STATE = "baremetal:node:set_power_state"
SET_PROVISION_STATE = "baremetal:node:set_provision_state"
LIST_TRAITS = "baremetal:node:traits:list"
SET_TRAITS = "baremetal:node:traits:set"
DELETE_TRAITS = "baremetal:node:traits:delete"
LIST_VIFS = "baremetal:node:vif:list"
ATTACH_VIF = "baremetal:node:vif:attach"
DETACH_VIF = "baremetal:node:vif:detach"
GET_BOOT_DEVICE = "baremetal:node:get_boot_device"
SET_BOOT_DEVICE = "baremetal:node:set_boot_device"
GET_INDICATOR = "baremetal:node:get_indicator_state"
SET_INDICATOR = "baremetal:node:set_indicator_state"
INJECT_NMI = "baremetal:node:inject_nmi"
SET_BOOT_MODE = "baremetal:node:set_boot_mode"
SET_SECURE_BOOT = "baremetal:node:set_secure_boot"
SET_RAID = "baremetal:node:set_raid_state"
GET_CONSOLE = "baremetal:node:get_console"
SET_CONSOLE = "baremetal:node:set_console_state"
GET_VMEDIA = "baremetal:node:vmedia:get"
ATTACH_VMEDIA = "baremetal:node:vmedia:attach"
DETACH_VMEDIA = "baremetal:node:vmedia:detach"
VENDOR_PASSTHRU = "baremetal:node:vendor_passthru"
GET_BIOS = "baremetal:node:bios:get"
GET_FIRMWARE = "baremetal:node:firmware:get"
GET_HISTORY = "baremetal:node:history:get"
GET_INSPECTIONS = "baremetal:node:inspections:get"
GET_INVENTORY = "baremetal:node:inventory:get"
GET_FACTS = "baremetal:node:facts:get"
REAPPLY = "baremetal:node:inventory:reapply"
LIST_LEGACY_VALUES = "baremetal:node:legacy_value:list"

_UPDATE, _GET = "baremetal:node:update", "baremetal:node:get"
#: Field -> the policy of its changes, and its default. Every other field has ``baremetal:node:update``.
_FIELDS = {
    "instance_info": (f"{_UPDATE}_instance_info", OWNER_MEMBER_OR_LESSEE_ADMIN),
    "instance_name": (f"{_UPDATE}_instance_info", OWNER_MEMBER_OR_LESSEE_ADMIN),
    "extra": (f"{_UPDATE}_extra", NODE_MEMBER),
    **{name: (f"{_UPDATE}:{name}", OWNER_MEMBER) for name in (
        "driver_info", "properties", "instance_uuid", "lessee", "network_data", "name", "retired",
        "inspection_scope")},
    "retired_reason": (f"{_UPDATE}:retired", OWNER_MEMBER),
    **{name: (f"{_UPDATE}:{name}", MEMBER) for name in ("owner", "conductor_group", "parent_node")},
    **{name: (f"{_UPDATE}:{name}", ADMIN) for name in ("chassis_uuid", "shard", "disable_power_off")},
    **dict.fromkeys(("driver", *INTERFACE_FIELDS), (f"{_UPDATE}:driver_interfaces", OWNER_ADMIN)),
}
UPDATE_FIELD = {name: policy for name, (policy, _) in _FIELDS.items()}
#: Field -> the policy without which callers who are confined to their project see that it is hidden.
GET_FIELD = {name: f"{_GET}:{name}" for name in ("last_error", "reservation", "driver_internal_info", "driver_info")}

_NODE = "/v1/nodes/{node_ident}"


def _named(policy: str) -> str:
    return ", ".join(name for name, entry in _FIELDS.items() if entry[0] == policy)


RULES = [
    *listed(LIST, LIST_ALL, "nodes", ("GET", "/v1/nodes"), ("GET", "/v1/nodes/detail"),
            ("POST", "/v1/nodes/search"), ("GET", "/v1/search"),
            only_all=(("GET", "/v1/node_states"), ("GET", "/v1/node_failures"),
                      ("GET", "/v1/inspection_outcomes"))),
    documented(GET, NODE_READER, "Show a node", ("GET", _NODE), of="node"),
    documented(CREATE, ADMIN, "Create a node", ("POST", "/v1/nodes"), of="project", own=CREATE_OWN),
    documented(CREATE_OWN, f"{ADMIN} or role:admin or role:service", "Create a node that one's own project owns",
               ("POST", "/v1/nodes")),
    documented(UPDATE, NODE_MEMBER, "Change a node", ("PATCH", _NODE), of="node"),
    *(documented(policy, check, f"Change {_named(policy)} of a node", ("PATCH", _NODE))
      for policy, check in dict(_FIELDS.values()).items()),
    documented(UPDATE_OWNER_PROVISIONED, ADMIN, "Change the owner of a node in state active", ("PATCH", _NODE)),
    documented(DISABLE_CLEANING, ADMIN, "Switch automated cleaning of a node off", ("PATCH", _NODE)),
    *(documented(policy, OWNER_READER, f"See {name} of a node, for callers who are confined to their project",
                 ("GET", "/v1/nodes"), ("GET", "/v1/nodes/detail"), ("GET", _NODE))
      for name, policy in GET_FIELD.items()),
    documented(DELETE, ADMIN, "Delete a node", ("DELETE", _NODE), of="node", own=DELETE_OWN),
    documented(DELETE_OWN, f"{ADMIN} or (role:admin and rule:is_node_owner)",
               "Delete a node that one's own project owns", ("DELETE", _NODE)),
    documented(VALIDATE, OWNER_MEMBER_OR_LESSEE_ADMIN, "Validate a node's interfaces",
               ("GET", f"{_NODE}/validate"), of="node"),
    documented(GET_DEPLOY_STEPS, OWNER_READER,
               "Show the steps that a node's deployment or automated cleaning would run",
               ("GET", f"{_NODE}/deploy_steps"), ("GET", f"{_NODE}/clean_steps"), of="node"),
    documented(SET_MAINTENANCE, OWNER_MEMBER_OR_LESSEE_ADMIN, "Put a node into maintenance",
               ("PUT", f"{_NODE}/maintenance"), of="node"),
    documented(CLEAR_MAINTENANCE, OWNER_MEMBER_OR_LESSEE_ADMIN, "Take a node out of maintenance",
               ("DELETE", f"{_NODE}/maintenance"), of="node"),
    documented(GET_STATES, NODE_READER, "Show a node's states", ("GET", f"{_NODE}/states"), of="node"),
    documented(SET_POWER_STATE, NODE_MEMBER, "Change a node's power state",
               ("PUT", f"{_NODE}/states/power"), of="node"),
    documented(SET_PROVISION_STATE, OWNER_MEMBER_OR_LESSEE_ADMIN, "Change a node's provision state",
               ("PUT", f"{_NODE}/states/provision"), of="node"),
    documented(LIST_TRAITS, NODE_READER, "List a node's traits", ("GET", f"{_NODE}/traits"), of="node"),
    documented(SET_TRAITS, OWNER_ADMIN, "Add a trait to a node or replace all",
               ("PUT", f"{_NODE}/traits"), ("PUT", f"{_NODE}/traits/{{trait}}"), of="node"),
    documented(DELETE_TRAITS, OWNER_ADMIN, "Remove one or all traits of a node",
               ("DELETE", f"{_NODE}/traits"), ("DELETE", f"{_NODE}/traits/{{trait}}"), of="node"),
    documented(LIST_VIFS, NODE_READER, "List a node's VIFs", ("GET", f"{_NODE}/vifs"), of="node"),
    documented(ATTACH_VIF, OWNER_MEMBER_OR_LESSEE_ADMIN, "Attach a VIF to a node",
               ("POST", f"{_NODE}/vifs"), of="node"),
    documented(DETACH_VIF, OWNER_MEMBER_OR_LESSEE_ADMIN, "Detach a VIF from a node",
               ("DELETE", f"{_NODE}/vifs/{{vif_id}}"), of="node"),
    documented(GET_BOOT_DEVICE, OWNER_ADMIN, "Show a node's boot device, and those that it supports",
               ("GET", f"{_NODE}/management/boot_device"), ("GET", f"{_NODE}/management/boot_device/supported"),
               of="node"),
    documented(SET_BOOT_DEVICE, OWNER_ADMIN, "Set a node's boot device",
               ("PUT", f"{_NODE}/management/boot_device"), of="node"),
    documented(GET_INDICATOR, NODE_READER, "Show a node's indicators, such as LEDs, and their states",
               ("GET", f"{_NODE}/management/indicators"), ("GET", f"{_NODE}/management/indicators/{{indicator}}"),
               of="node"),
    documented(SET_INDICATOR, OWNER_MEMBER, "Switch an indicator of a node",
               ("PUT", f"{_NODE}/management/indicators/{{indicator}}"), of="node"),
    documented(INJECT_NMI, OWNER_ADMIN, "Send an NMI to a node", ("PUT", f"{_NODE}/management/inject_nmi"), of="node"),
    documented(SET_BOOT_MODE, NODE_MEMBER, "Change a node's boot mode",
               ("PUT", f"{_NODE}/states/boot_mode"), of="node"),
    documented(SET_SECURE_BOOT, NODE_MEMBER, "Switch a node's secure boot",
               ("PUT", f"{_NODE}/states/secure_boot"), of="node"),
    documented(SET_RAID, OWNER_MEMBER, "Set a node's target RAID configuration",
               ("PUT", f"{_NODE}/states/raid"), of="node"),
    documented(GET_CONSOLE, OWNER_MEMBER, "Show how to reach a node's console",
               ("GET", f"{_NODE}/states/console"), of="node"),
    documented(SET_CONSOLE, OWNER_MEMBER, "Start or stop a node's console",
               ("PUT", f"{_NODE}/states/console"), of="node"),
    documented(GET_VMEDIA, NODE_READER, "Show what is in a node's virtual drives",
               ("GET", f"{_NODE}/vmedia"), of="node"),
    documented(ATTACH_VMEDIA, NODE_MEMBER, "Insert an image into a node's virtual drive",
               ("POST", f"{_NODE}/vmedia"), of="node"),
    documented(DETACH_VMEDIA, NODE_MEMBER, "Eject images from a node's virtual drives",
               ("DELETE", f"{_NODE}/vmedia"), of="node"),
    documented(VENDOR_PASSTHRU, ADMIN, "List and call the vendor methods of a node",
               ("GET", f"{_NODE}/vendor_passthru/methods"),
               *((method, f"{_NODE}/vendor_passthru?method={{method_name}}")
                 for method in ("GET", "POST", "PUT", "PATCH", "DELETE")), of="node"),
    documented(GET_BIOS, NODE_READER, "Show a node's BIOS settings",
               ("GET", f"{_NODE}/bios"), ("GET", f"{_NODE}/bios/{{setting}}"), of="node"),
    documented(GET_FIRMWARE, NODE_READER, "Show the versions of a node's firmware",
               ("GET", f"{_NODE}/firmware"), of="node"),
    documented(GET_HISTORY, OWNER_READER, "Show a node's history",
               ("GET", f"{_NODE}/history"), ("GET", f"{_NODE}/history/{{event}}"), of="node"),
    documented(GET_INSPECTIONS, OWNER_READER, "Show a node's past inspections, and what rules changed in them",
               ("GET", f"{_NODE}/inspections"), ("GET", f"{_NODE}/inspections/{{inspection}}"),
               ("GET", f"{_NODE}/trait_origins"), of="node"),
    documented(GET_INVENTORY, OWNER_READER, "Show the data of a node's inspections, and how they differ",
               ("GET", f"{_NODE}/inventory"), ("GET", f"{_NODE}/inventory/versions"),
               ("GET", f"{_NODE}/inventory/diff"), of="node"),
    documented(GET_FACTS, OWNER_READER, "Show a node's facts", ("GET", f"{_NODE}/facts"), of="node"),
    documented(REAPPLY, ADMIN, "Run hooks and rules again over the data of past inspections",
               ("POST", f"{_NODE}/inventory/reapply"), ("POST", "/v1/nodes/reapply")),
    documented(LIST_LEGACY_VALUES, OWNER_READER, "List what legacy rules have written on a node",
               ("GET", f"{_NODE}/legacy_values"), of="node"),
]


CHASSIS_GET = "baremetal:chassis:get"
CHASSIS_CREATE = "baremetal:chassis:create"
CHASSIS_UPDATE = "baremetal:chassis:update"
CHASSIS_DELETE = "baremetal:chassis:delete"

_CHASSIS_CHASSIS = "/v1/chassis/{chassis_uuid}"
CHASSIS_RULES = [
    documented(CHASSIS_GET, READER, "List and show chassis",
               ("GET", "/v1/chassis"), ("GET", "/v1/chassis/detail"), ("GET", _CHASSIS_CHASSIS)),
    documented(CHASSIS_CREATE, ADMIN, "Create a chassis", ("POST", "/v1/chassis")),
    documented(CHASSIS_UPDATE, ADMIN, "Change a chassis", ("PATCH", _CHASSIS_CHASSIS)),
    documented(CHASSIS_DELETE, ADMIN, "Delete a chassis", ("DELETE", _CHASSIS_CHASSIS)),
]


CONDUCTOR_GET = "baremetal:conductor:get"

CONDUCTOR_RULES = [
    documented(CONDUCTOR_GET, READER, "List and show conductors",
               ("GET", "/v1/conductors"), ("GET", "/v1/conductors/{hostname}")),
]


DRIVER_GET = "baremetal:driver:get"
DRIVER_GET_PROPERTIES = "baremetal:driver:get_properties"
DRIVER_GET_RAID = "baremetal:driver:get_raid_logical_disk_properties"
DRIVER_VENDOR_PASSTHRU = "baremetal:driver:vendor_passthru"

DRIVER_RULES = [
    documented(DRIVER_GET, READER, "List and show drivers", ("GET", "/v1/drivers"), ("GET", "/v1/drivers/{driver}")),
    documented(DRIVER_GET_PROPERTIES, READER, "Show the properties of a driver",
               ("GET", "/v1/drivers/{driver}/properties")),
    documented(DRIVER_GET_RAID, READER, "Show the properties of a driver's logical disks",
               ("GET", "/v1/drivers/{driver}/raid/logical_disk_properties")),
    documented(DRIVER_VENDOR_PASSTHRU, ADMIN, "List and call the vendor methods of a driver",
               ("GET", "/v1/drivers/{driver}/vendor_passthru/methods"),
               *((method, "/v1/drivers/{driver}/vendor_passthru?method={method_name}")
                 for method in ("GET", "POST", "PUT", "PATCH", "DELETE"))),
]


SHARD_GET = "baremetal:shards:get"

SHARD_RULES = [documented(SHARD_GET, READER, "List shards, with the numbers of their nodes", ("GET", "/v1/shards"))]


PORT_LIST = "baremetal:port:list"
PORT_LIST_ALL = "baremetal:port:list_all"
PORT_GET = "baremetal:port:get"
PORT_CREATE = "baremetal:port:create"
PORT_UPDATE = "baremetal:port:update"
PORT_DELETE = "baremetal:port:delete"

_PORT_PORT = "/v1/ports/{port_ident}"
PORT_RULES = [
    *listed(PORT_LIST, PORT_LIST_ALL, "ports", ("GET", "/v1/ports"), ("GET", "/v1/ports/detail"),
            ("GET", "/v1/nodes/{node_ident}/ports"), ("GET", "/v1/nodes/{node_ident}/ports/detail"),
            ("GET", "/v1/portgroups/{portgroup_ident}/ports"),
            ("GET", "/v1/portgroups/{portgroup_ident}/ports/detail")),
    documented(PORT_GET, NODE_READER, "Show a port", ("GET", _PORT_PORT), of="node"),
    documented(PORT_CREATE, SERVICE_OR_OWNER_ADMIN, "Create a port", ("POST", "/v1/ports"), of="node"),
    documented(PORT_UPDATE, OWNER_ADMIN, "Change a port", ("PATCH", _PORT_PORT), of="node"),
    documented(PORT_DELETE, SERVICE_OR_OWNER_ADMIN, "Delete a port", ("DELETE", _PORT_PORT), of="node"),
]


PORTGROUP_LIST = "baremetal:portgroup:list"
PORTGROUP_LIST_ALL = "baremetal:portgroup:list_all"
PORTGROUP_GET = "baremetal:portgroup:get"
PORTGROUP_CREATE = "baremetal:portgroup:create"
PORTGROUP_UPDATE = "baremetal:portgroup:update"
PORTGROUP_DELETE = "baremetal:portgroup:delete"

_PORTGROUP_PORTGROUP = "/v1/portgroups/{portgroup_ident}"
PORTGROUP_RULES = [
    *listed(PORTGROUP_LIST, PORTGROUP_LIST_ALL, "port groups", ("GET", "/v1/portgroups"),
            ("GET", "/v1/portgroups/detail"),
            ("GET", "/v1/nodes/{node_ident}/portgroups"), ("GET", "/v1/nodes/{node_ident}/portgroups/detail")),
    documented(PORTGROUP_GET, NODE_READER, "Show a port group", ("GET", _PORTGROUP_PORTGROUP), of="node"),
    documented(PORTGROUP_CREATE, SERVICE_OR_OWNER_ADMIN, "Create a port group", ("POST", "/v1/portgroups"), of="node"),
    documented(PORTGROUP_UPDATE, OWNER_ADMIN, "Change a port group", ("PATCH", _PORTGROUP_PORTGROUP), of="node"),
    documented(PORTGROUP_DELETE, SERVICE_OR_OWNER_ADMIN, "Delete a port group", ("DELETE", _PORTGROUP_PORTGROUP),
               of="node"),
]


VOLUME_LIST = "baremetal:volume:list"
VOLUME_LIST_ALL = "baremetal:volume:list_all"
VOLUME_GET = "baremetal:volume:get"
VOLUME_CREATE = "baremetal:volume:create"
VOLUME_UPDATE = "baremetal:volume:update"
VOLUME_DELETE = "baremetal:volume:delete"

_VOLUME_CONNECTORS = "/v1/volume/connectors"
_VOLUME_TARGETS = "/v1/volume/targets"


def _on(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in (_VOLUME_CONNECTORS, _VOLUME_TARGETS))


VOLUME_RULES = [
    *listed(VOLUME_LIST, VOLUME_LIST_ALL, "volume connectors and targets",
            ("GET", "/v1/volume"), *_on("GET"),
            ("GET", "/v1/nodes/{node_ident}/volume"), ("GET", "/v1/nodes/{node_ident}/volume/connectors"),
            ("GET", "/v1/nodes/{node_ident}/volume/targets")),
    documented(VOLUME_GET, NODE_READER, "Show a volume connector or target", *_on("GET", "/{uuid}"), of="node"),
    documented(VOLUME_CREATE, OWNER_OR_LESSEE_ADMIN, "Create a volume connector or target", *_on("POST"), of="node"),
    documented(VOLUME_UPDATE, OWNER_MEMBER_OR_LESSEE_ADMIN, "Change a volume connector or target",
               *_on("PATCH", "/{uuid}"), of="node"),
    documented(VOLUME_DELETE, OWNER_OR_LESSEE_ADMIN, "Delete a volume connector or target",
               *_on("DELETE", "/{uuid}"), of="node"),
]


ALLOCATION_LIST = "baremetal:allocation:list"
ALLOCATION_GET = "baremetal:allocation:get"
ALLOCATION_CREATE = "baremetal:allocation:create"
ALLOCATION_UPDATE = "baremetal:allocation:update"
ALLOCATION_DELETE = "baremetal:allocation:delete"

_ALLOCATION_ALLOCATION = "/v1/allocations/{allocation_ident}"
_ALLOCATION_OF_NODE = "/v1/nodes/{node_ident}/allocation"
ALLOCATION_RULES = [
    documented(ALLOCATION_LIST, READER, "List allocations", ("GET", "/v1/allocations")),
    documented(ALLOCATION_GET, READER, "Show an allocation", ("GET", _ALLOCATION_ALLOCATION),
               ("GET", _ALLOCATION_OF_NODE)),
    documented(ALLOCATION_CREATE, MEMBER, "Create an allocation", ("POST", "/v1/allocations")),
    documented(ALLOCATION_UPDATE, MEMBER, "Change an allocation", ("PATCH", _ALLOCATION_ALLOCATION)),
    documented(ALLOCATION_DELETE, MEMBER, "Delete an allocation", ("DELETE", _ALLOCATION_ALLOCATION),
               ("DELETE", _ALLOCATION_OF_NODE)),
]
