"""Policies of ``/v1/operations``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:operation:list_all"
GET = "baremetal:operation:get"
CANCEL = "baremetal:operation:cancel"

_ALL = "/v1/operations"
_ONE = "/v1/operations/{uuid}"
RULES = [
    documented(LIST, READER, "List operations on many nodes", ("GET", _ALL)),
    documented(GET, READER, "Show an operation on many nodes", ("GET", _ONE),
               ("GET", f"{_ONE}/nodes"), ("GET", f"{_ONE}/groups")),
    documented(CANCEL, ADMIN, "Cancel an operation on many nodes", ("DELETE", _ONE)),
]
