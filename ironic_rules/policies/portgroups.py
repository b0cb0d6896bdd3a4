"""Policies of port groups."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:portgroup:list"
GET = "baremetal:portgroup:get"
CREATE = "baremetal:portgroup:create"
UPDATE = "baremetal:portgroup:update"
DELETE = "baremetal:portgroup:delete"

_PORTGROUP = "/v1/portgroups/{portgroup_ident}"
RULES = [
    documented(LIST, READER, "List port groups", ("GET", "/v1/portgroups"), ("GET", "/v1/portgroups/detail"),
               ("GET", "/v1/nodes/{node_ident}/portgroups"), ("GET", "/v1/nodes/{node_ident}/portgroups/detail")),
    documented(GET, READER, "Show a port group", ("GET", _PORTGROUP)),
    documented(CREATE, ADMIN, "Create a port group", ("POST", "/v1/portgroups")),
    documented(UPDATE, ADMIN, "Change a port group", ("PATCH", _PORTGROUP)),
    documented(DELETE, ADMIN, "Delete a port group", ("DELETE", _PORTGROUP)),
]
