"""Policies of port groups."""

from __future__ import annotations

from ironic_rules.policies.base import MEMBER, READER, SERVICE, documented

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
    documented(CREATE, SERVICE, "Create a port group", ("POST", "/v1/portgroups")),
    documented(UPDATE, MEMBER, "Change a port group", ("PATCH", _PORTGROUP)),
    documented(DELETE, SERVICE, "Delete a port group", ("DELETE", _PORTGROUP)),
]
