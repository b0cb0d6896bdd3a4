"""Policies of ``/v1/deploy-templates`` and, under Ironic's name, ``/v1/deploy_templates``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:deploy_template:list"
GET = "baremetal:deploy_template:get"
CREATE = "baremetal:deploy_template:create"
UPDATE = "baremetal:deploy_template:update"
DELETE = "baremetal:deploy_template:delete"
LIST_NODES = "baremetal:deploy_template:list_nodes"

_PATHS = ("/v1/deploy-templates", "/v1/deploy_templates")


def _on(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in _PATHS)


_ONE = "/{template}"
RULES = [
    documented(LIST, READER, "List deploy templates", *_on("GET")),
    documented(GET, READER, "Show a deploy template", *_on("GET", _ONE)),
    documented(CREATE, ADMIN, "Create a deploy template", *_on("POST")),
    documented(UPDATE, ADMIN, "Change a deploy template", *_on("PATCH", _ONE)),
    documented(DELETE, ADMIN, "Delete a deploy template", *_on("DELETE", _ONE)),
    documented(LIST_NODES, READER, "List the nodes on which a deploy template is enabled",
               *_on("GET", f"{_ONE}/nodes")),
]
