"""Policies of ``/v1/runbooks``."""

from __future__ import annotations

from ironic_rules.policies.base import MEMBER, READER, documented, listed

LIST = "baremetal:runbook:list"
LIST_ALL = "baremetal:runbook:list_all"
GET = "baremetal:runbook:get"
CREATE = "baremetal:runbook:create"
UPDATE = "baremetal:runbook:update"
DELETE = "baremetal:runbook:delete"
UPDATE_PUBLIC = "baremetal:runbook:update:public"
UPDATE_OWNER = "baremetal:runbook:update:owner"
USE = "baremetal:runbook:use"

_RUNBOOK = "/v1/runbooks/{runbook_ident}"
_TRAITS = f"{_RUNBOOK}/traits"
_MANAGER = f"{MEMBER} or ((role:manager or role:service) and rule:is_runbook_owner)"
RULES = [
    *listed(LIST, LIST_ALL, "runbooks (and public ones)", ("GET", "/v1/runbooks")),
    documented(GET, f"{READER} or ((role:reader or role:service) and rule:is_runbook_owner)", "Show a runbook",
               ("GET", _RUNBOOK), ("GET", _TRAITS), of="runbook"),
    documented(CREATE, f"{MEMBER} or role:manager or role:service", "Create a runbook", ("POST", "/v1/runbooks"),
               of="project", everywhere=UPDATE_OWNER),
    documented(UPDATE, _MANAGER, "Change a runbook, and its traits", ("PATCH", _RUNBOOK), ("PUT", _TRAITS),
               ("PUT", f"{_TRAITS}/{{trait}}"), ("DELETE", _TRAITS), ("DELETE", f"{_TRAITS}/{{trait}}"), of="runbook"),
    documented(DELETE, _MANAGER, "Delete a runbook", ("DELETE", _RUNBOOK), of="runbook"),
    documented(UPDATE_PUBLIC, MEMBER, "Make a runbook public", ("POST", "/v1/runbooks"), ("PATCH", _RUNBOOK)),
    documented(UPDATE_OWNER, MEMBER, "Give a runbook to another project", ("POST", "/v1/runbooks"),
               ("PATCH", _RUNBOOK)),
    documented(USE, _MANAGER, "Clean or service a node by a runbook that is not public; "
               "baremetal:node:set_provision_state is required, too",
               ("PUT", "/v1/nodes/{node_ident}/states/provision")),
]
