"""Policies of ``/v1/volume``: volume connectors and targets."""

from __future__ import annotations

from ironic_rules.policies.base import (
    NODE_READER,
    OWNER_MEMBER_OR_LESSEE_ADMIN,
    OWNER_OR_LESSEE_ADMIN,
    documented,
    listed,
)

LIST = "baremetal:volume:list"
LIST_ALL = "baremetal:volume:list_all"
GET = "baremetal:volume:get"
CREATE = "baremetal:volume:create"
UPDATE = "baremetal:volume:update"
DELETE = "baremetal:volume:delete"

_CONNECTORS = "/v1/volume/connectors"
_TARGETS = "/v1/volume/targets"


def _on(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in (_CONNECTORS, _TARGETS))


RULES = [
    *listed(LIST, LIST_ALL, "volume connectors and targets",
            ("GET", "/v1/volume"), *_on("GET"),
            ("GET", "/v1/nodes/{node_ident}/volume"), ("GET", "/v1/nodes/{node_ident}/volume/connectors"),
            ("GET", "/v1/nodes/{node_ident}/volume/targets")),
    documented(GET, NODE_READER, "Show a volume connector or target", *_on("GET", "/{uuid}"), of="node"),
    documented(CREATE, OWNER_OR_LESSEE_ADMIN, "Create a volume connector or target", *_on("POST"), of="node"),
    documented(UPDATE, OWNER_MEMBER_OR_LESSEE_ADMIN, "Change a volume connector or target",
               *_on("PATCH", "/{uuid}"), of="node"),
    documented(DELETE, OWNER_OR_LESSEE_ADMIN, "Delete a volume connector or target",
               *_on("DELETE", "/{uuid}"), of="node"),
]
