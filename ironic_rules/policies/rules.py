"""Policies of ``/v1/rules``, the rules of ironic-inspector."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:legacy_rule:list_all"
GET = "baremetal:legacy_rule:get"
GET_DETAILS = "baremetal:legacy_rule:get_details"
CREATE = "baremetal:legacy_rule:create"
UPDATE = "baremetal:legacy_rule:update"
DELETE = "baremetal:legacy_rule:delete"

_ALL = "/v1/rules"
_ONE = "/v1/rules/{uuid}"
RULES = [
    documented(LIST, READER, "List legacy rules without conditions and actions", ("GET", _ALL)),
    documented(GET, READER, "Show a legacy rule without conditions and actions", ("GET", _ONE)),
    documented(GET_DETAILS, ADMIN, "See conditions and actions of legacy rules", ("GET", _ALL), ("GET", _ONE)),
    documented(CREATE, ADMIN, "Create a legacy rule", ("POST", _ALL), ("PUT", _ONE)),
    documented(UPDATE, ADMIN, "Replace a legacy rule", ("PUT", _ONE)),
    documented(DELETE, ADMIN, "Delete legacy rules", ("DELETE", _ONE), ("DELETE", _ALL)),
]
