"""Policies of ``/v1/inspection_rules``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:inspection_rule:list_all"
GET = "baremetal:inspection_rule:get"
CREATE = "baremetal:inspection_rule:create"
UPDATE = "baremetal:inspection_rule:update"
DELETE = "baremetal:inspection_rule:delete"

_ALL = "/v1/inspection_rules"
_ONE = "/v1/inspection_rules/{uuid}"
RULES = [
    documented(LIST, READER, "List inspection rules", ("GET", _ALL)),
    documented(GET, READER, "Show an inspection rule", ("GET", _ONE)),
    documented(CREATE, ADMIN, "Create an inspection rule", ("POST", _ALL)),
    documented(UPDATE, ADMIN, "Change an inspection rule", ("PATCH", _ONE)),
    documented(DELETE, ADMIN, "Delete one or all inspection rules", ("DELETE", _ONE), ("DELETE", _ALL)),
]
