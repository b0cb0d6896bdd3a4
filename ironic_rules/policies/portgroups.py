"""Policies of port groups."""

from __future__ import annotations

from ironic_rules.policies.base import NODE_READER, OWNER_ADMIN, SERVICE_OR_OWNER_ADMIN, documented, listed

LIST = "baremetal:portgroup:list"
LIST_ALL = "baremetal:portgroup:list_all"
GET = "baremetal:portgroup:get"
CREATE = "baremetal:portgroup:create"
UPDATE = "baremetal:portgroup:update"
DELETE = "baremetal:portgroup:delete"

_PORTGROUP = "/v1/portgroups/{portgroup_ident}"
RULES = [
    *listed(LIST, LIST_ALL, "port groups", ("GET", "/v1/portgroups"), ("GET", "/v1/portgroups/detail"),
            ("GET", "/v1/nodes/{node_ident}/portgroups"), ("GET", "/v1/nodes/{node_ident}/portgroups/detail")),
    documented(GET, NODE_READER, "Show a port group", ("GET", _PORTGROUP), of="node"),
    documented(CREATE, SERVICE_OR_OWNER_ADMIN, "Create a port group", ("POST", "/v1/portgroups"), of="node"),
    documented(UPDATE, OWNER_ADMIN, "Change a port group", ("PATCH", _PORTGROUP), of="node"),
    documented(DELETE, SERVICE_OR_OWNER_ADMIN, "Delete a port group", ("DELETE", _PORTGROUP), of="node"),
]
