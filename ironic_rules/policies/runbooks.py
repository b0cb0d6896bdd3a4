"""Policies of ``/v1/runbooks``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, MEMBER, READER, documented

LIST = "baremetal:runbook:list"
GET = "baremetal:runbook:get"
CREATE = "baremetal:runbook:create"
UPDATE = "baremetal:runbook:update"
DELETE = "baremetal:runbook:delete"
USE = "baremetal:runbook:use"

_RUNBOOK = "/v1/runbooks/{runbook_ident}"
_TRAITS = f"{_RUNBOOK}/traits"
RULES = [
    documented(LIST, READER, "List runbooks", ("GET", "/v1/runbooks")),
    documented(GET, READER, "Show a runbook", ("GET", _RUNBOOK), ("GET", _TRAITS)),
    documented(CREATE, ADMIN, "Create a runbook", ("POST", "/v1/runbooks")),
    documented(UPDATE, ADMIN, "Change a runbook, and its traits", ("PATCH", _RUNBOOK), ("PUT", _TRAITS),
               ("PUT", f"{_TRAITS}/{{trait}}"), ("DELETE", _TRAITS), ("DELETE", f"{_TRAITS}/{{trait}}")),
    documented(DELETE, ADMIN, "Delete a runbook", ("DELETE", _RUNBOOK)),
    documented(USE, MEMBER, "Clean or service a node by a runbook; baremetal:node:set_provision_state is required, too",
               ("PUT", "/v1/nodes/{node_ident}/states/provision")),
]
