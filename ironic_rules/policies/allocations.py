"""Policies of ``/v1/allocations``, and of the allocation of a node."""

from __future__ import annotations

from ironic_rules.policies.base import MEMBER, READER, documented

LIST = "baremetal:allocation:list"
GET = "baremetal:allocation:get"
CREATE = "baremetal:allocation:create"
UPDATE = "baremetal:allocation:update"
DELETE = "baremetal:allocation:delete"

_ALLOCATION = "/v1/allocations/{allocation_ident}"
_OF_NODE = "/v1/nodes/{node_ident}/allocation"
RULES = [
    documented(LIST, READER, "List allocations", ("GET", "/v1/allocations")),
    documented(GET, READER, "Show an allocation", ("GET", _ALLOCATION), ("GET", _OF_NODE)),
    documented(CREATE, MEMBER, "Create an allocation", ("POST", "/v1/allocations")),
    documented(UPDATE, MEMBER, "Change an allocation", ("PATCH", _ALLOCATION)),
    documented(DELETE, MEMBER, "Delete an allocation", ("DELETE", _ALLOCATION), ("DELETE", _OF_NODE)),
]
