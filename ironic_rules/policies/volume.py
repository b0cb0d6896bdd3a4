"""Policies of ``/v1/volume``: volume connectors and targets."""

from __future__ import annotations

from ironic_rules.policies.base import MEMBER, READER, documented

LIST = "baremetal:volume:list_all"
GET = "baremetal:volume:get"
CREATE = "baremetal:volume:create"
UPDATE = "baremetal:volume:update"
DELETE = "baremetal:volume:delete"

_CONNECTORS = "/v1/volume/connectors"
_TARGETS = "/v1/volume/targets"


def _on(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in (_CONNECTORS, _TARGETS))


RULES = [
    documented(LIST, READER, "List volume connectors and targets",
               ("GET", "/v1/volume"), *_on("GET"),
               ("GET", "/v1/nodes/{node_ident}/volume"), ("GET", "/v1/nodes/{node_ident}/volume/connectors"),
               ("GET", "/v1/nodes/{node_ident}/volume/targets")),
    documented(GET, READER, "Show a volume connector or target", *_on("GET", "/{uuid}")),
    documented(CREATE, MEMBER, "Create a volume connector or target", *_on("POST")),
    documented(UPDATE, MEMBER, "Change a volume connector or target", *_on("PATCH", "/{uuid}")),
    documented(DELETE, MEMBER, "Delete a volume connector or target", *_on("DELETE", "/{uuid}")),
]
