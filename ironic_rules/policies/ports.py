"""Policies of ports."""

from __future__ import annotations

from ironic_rules.policies.base import NODE_READER, OWNER_ADMIN, SERVICE_OR_OWNER_ADMIN, documented, listed

LIST = "baremetal:port:list"
LIST_ALL = "baremetal:port:list_all"
GET = "baremetal:port:get"
CREATE = "baremetal:port:create"
UPDATE = "baremetal:port:update"
DELETE = "baremetal:port:delete"

_PORT = "/v1/ports/{port_ident}"
RULES = [
    *listed(LIST, LIST_ALL, "ports", ("GET", "/v1/ports"), ("GET", "/v1/ports/detail"),
            ("GET", "/v1/nodes/{node_ident}/ports"), ("GET", "/v1/nodes/{node_ident}/ports/detail"),
            ("GET", "/v1/portgroups/{portgroup_ident}/ports"),
            ("GET", "/v1/portgroups/{portgroup_ident}/ports/detail")),
    documented(GET, NODE_READER, "Show a port", ("GET", _PORT), of="node"),
    documented(CREATE, SERVICE_OR_OWNER_ADMIN, "Create a port", ("POST", "/v1/ports"), of="node"),
    documented(UPDATE, OWNER_ADMIN, "Change a port", ("PATCH", _PORT), of="node"),
    documented(DELETE, SERVICE_OR_OWNER_ADMIN, "Delete a port", ("DELETE", _PORT), of="node"),
]
