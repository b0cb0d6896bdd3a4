"""Policies of nodes and everything below ``/v1/nodes/{node}``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, MEMBER, READER, documented

LIST = "baremetal:node:list"
GET = "baremetal:node:get"
CREATE = "baremetal:node:create"
UPDATE = "baremetal:node:update"
DELETE = "baremetal:node:delete"
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
REAPPLY = "baremetal:node:inventory:reapply"
LIST_LEGACY_VALUES = "baremetal:node:legacy_value:list"

_NODE = "/v1/nodes/{node_ident}"
RULES = [
    documented(LIST, READER, "List nodes", ("GET", "/v1/nodes"), ("GET", "/v1/nodes/detail"),
               ("GET", "/v1/node_states"), ("GET", "/v1/node_failures")),
    documented(GET, READER, "Show a node", ("GET", _NODE)),
    documented(CREATE, ADMIN, "Create a node", ("POST", "/v1/nodes")),
    documented(UPDATE, MEMBER, "Change a node", ("PATCH", _NODE)),
    documented(DELETE, ADMIN, "Delete a node", ("DELETE", _NODE)),
    documented(VALIDATE, MEMBER, "Validate a node's interfaces", ("GET", f"{_NODE}/validate")),
    documented(GET_DEPLOY_STEPS, READER, "Show the steps that a node's deployment or automated cleaning would run",
               ("GET", f"{_NODE}/deploy_steps"), ("GET", f"{_NODE}/clean_steps")),
    documented(SET_MAINTENANCE, MEMBER, "Put a node into maintenance", ("PUT", f"{_NODE}/maintenance")),
    documented(CLEAR_MAINTENANCE, MEMBER, "Take a node out of maintenance", ("DELETE", f"{_NODE}/maintenance")),
    documented(GET_STATES, READER, "Show a node's states", ("GET", f"{_NODE}/states")),
    documented(SET_POWER_STATE, MEMBER, "Change a node's power state", ("PUT", f"{_NODE}/states/power")),
    documented(SET_PROVISION_STATE, MEMBER, "Change a node's provision state", ("PUT", f"{_NODE}/states/provision")),
    documented(LIST_TRAITS, READER, "List a node's traits", ("GET", f"{_NODE}/traits")),
    documented(SET_TRAITS, MEMBER, "Add a trait to a node or replace all",
               ("PUT", f"{_NODE}/traits"), ("PUT", f"{_NODE}/traits/{{trait}}")),
    documented(DELETE_TRAITS, MEMBER, "Remove one or all traits of a node",
               ("DELETE", f"{_NODE}/traits"), ("DELETE", f"{_NODE}/traits/{{trait}}")),
    documented(LIST_VIFS, READER, "List a node's VIFs", ("GET", f"{_NODE}/vifs")),
    documented(ATTACH_VIF, MEMBER, "Attach a VIF to a node", ("POST", f"{_NODE}/vifs")),
    documented(DETACH_VIF, MEMBER, "Detach a VIF from a node", ("DELETE", f"{_NODE}/vifs/{{vif_id}}")),
    documented(GET_BOOT_DEVICE, MEMBER, "Show a node's boot device, and those that it supports",
               ("GET", f"{_NODE}/management/boot_device"), ("GET", f"{_NODE}/management/boot_device/supported")),
    documented(SET_BOOT_DEVICE, MEMBER, "Set a node's boot device", ("PUT", f"{_NODE}/management/boot_device")),
    documented(INJECT_NMI, MEMBER, "Send an NMI to a node", ("PUT", f"{_NODE}/management/inject_nmi")),
    documented(SET_BOOT_MODE, MEMBER, "Change a node's boot mode", ("PUT", f"{_NODE}/states/boot_mode")),
    documented(SET_SECURE_BOOT, MEMBER, "Switch a node's secure boot", ("PUT", f"{_NODE}/states/secure_boot")),
    documented(SET_RAID, MEMBER, "Set a node's target RAID configuration", ("PUT", f"{_NODE}/states/raid")),
    documented(GET_CONSOLE, MEMBER, "Show how to reach a node's console", ("GET", f"{_NODE}/states/console")),
    documented(SET_CONSOLE, MEMBER, "Start or stop a node's console", ("PUT", f"{_NODE}/states/console")),
    documented(GET_VMEDIA, READER, "Show what is in a node's virtual drives", ("GET", f"{_NODE}/vmedia")),
    documented(ATTACH_VMEDIA, MEMBER, "Insert an image into a node's virtual drive", ("POST", f"{_NODE}/vmedia")),
    documented(DETACH_VMEDIA, MEMBER, "Eject images from a node's virtual drives", ("DELETE", f"{_NODE}/vmedia")),
    documented(VENDOR_PASSTHRU, ADMIN, "List and call the vendor methods of a node",
               ("GET", f"{_NODE}/vendor_passthru/methods"),
               *((method, f"{_NODE}/vendor_passthru?method={{method_name}}")
                 for method in ("GET", "POST", "PUT", "PATCH", "DELETE"))),
    documented(GET_BIOS, READER, "Show a node's BIOS settings",
               ("GET", f"{_NODE}/bios"), ("GET", f"{_NODE}/bios/{{setting}}")),
    documented(GET_FIRMWARE, READER, "Show the versions of a node's firmware", ("GET", f"{_NODE}/firmware")),
    documented(GET_HISTORY, READER, "Show a node's history",
               ("GET", f"{_NODE}/history"), ("GET", f"{_NODE}/history/{{event}}")),
    documented(GET_INSPECTIONS, READER, "Show a node's past inspections, and what rules changed in them",
               ("GET", f"{_NODE}/inspections"), ("GET", f"{_NODE}/inspections/{{inspection}}"),
               ("GET", f"{_NODE}/trait_origins")),
    documented(GET_INVENTORY, READER, "Show the data of a node's inspections, and how they differ",
               ("GET", f"{_NODE}/inventory"), ("GET", f"{_NODE}/inventory/versions"),
               ("GET", f"{_NODE}/inventory/diff")),
    documented(REAPPLY, ADMIN, "Run hooks and rules again over the data of past inspections",
               ("POST", f"{_NODE}/inventory/reapply"), ("POST", "/v1/nodes/reapply")),
    documented(LIST_LEGACY_VALUES, READER, "List what legacy rules have written on a node",
               ("GET", f"{_NODE}/legacy_values")),
]
