"""Policies of ports."""

from __future__ import annotations

from ironic_rules.policies.base import MEMBER, READER, SERVICE, documented

LIST = "baremetal:port:list"
GET = "baremetal:port:get"
CREATE = "baremetal:port:create"
UPDATE = "baremetal:port:update"
DELETE = "baremetal:port:delete"

_PORT = "/v1/ports/{port_ident}"
RULES = [
    documented(LIST, READER, "List ports", ("GET", "/v1/ports"), ("GET", "/v1/ports/detail"),
               ("GET", "/v1/nodes/{node_ident}/ports"), ("GET", "/v1/nodes/{node_ident}/ports/detail"),
               ("GET", "/v1/portgroups/{portgroup_ident}/ports"),
               ("GET", "/v1/portgroups/{portgroup_ident}/ports/detail")),
    documented(GET, READER, "Show a port", ("GET", _PORT)),
    documented(CREATE, SERVICE, "Create a port", ("POST", "/v1/ports")),
    documented(UPDATE, MEMBER, "Change a port", ("PATCH", _PORT)),
    documented(DELETE, SERVICE, "Delete a port", ("DELETE", _PORT)),
]
