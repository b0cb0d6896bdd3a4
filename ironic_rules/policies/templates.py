"""Policies of deploy templates, runbooks, and flavors with the known extra specs.

Deploy templates have two paths, ``/v1/deploy-templates`` and, under Ironic's name, ``/v1/deploy_templates``; so have
flavors, below ``/v1`` and ``/compute/v2.1``.
"""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, MEMBER, READER, documented, listed

TEMPLATE_LIST = "baremetal:deploy_template:list"
TEMPLATE_GET = "baremetal:deploy_template:get"
TEMPLATE_CREATE = "baremetal:deploy_template:create"
TEMPLATE_UPDATE = "baremetal:deploy_template:update"
TEMPLATE_DELETE = "baremetal:deploy_template:delete"
TEMPLATE_LIST_NODES = "baremetal:deploy_template:list_nodes"

_TEMPLATE_PATHS = ("/v1/deploy-templates", "/v1/deploy_templates")


def _on(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in _TEMPLATE_PATHS)


_TEMPLATE_ONE = "/{template}"
TEMPLATE_RULES = [
    documented(TEMPLATE_LIST, READER, "List deploy templates", *_on("GET")),
    documented(TEMPLATE_GET, READER, "Show a deploy template", *_on("GET", _TEMPLATE_ONE)),
    documented(TEMPLATE_CREATE, ADMIN, "Create a deploy template", *_on("POST")),
    documented(TEMPLATE_UPDATE, ADMIN, "Change a deploy template", *_on("PATCH", _TEMPLATE_ONE)),
    documented(TEMPLATE_DELETE, ADMIN, "Delete a deploy template", *_on("DELETE", _TEMPLATE_ONE)),
    documented(TEMPLATE_LIST_NODES, READER, "List the nodes on which a deploy template is enabled",
               *_on("GET", f"{_TEMPLATE_ONE}/nodes")),
]


RUNBOOK_LIST = "baremetal:runbook:list"
RUNBOOK_LIST_ALL = "baremetal:runbook:list_all"
RUNBOOK_GET = "baremetal:runbook:get"
RUNBOOK_CREATE = "baremetal:runbook:create"
RUNBOOK_UPDATE = "baremetal:runbook:update"
RUNBOOK_DELETE = "baremetal:runbook:delete"
RUNBOOK_UPDATE_PUBLIC = "baremetal:runbook:update:public"
RUNBOOK_UPDATE_OWNER = "baremetal:runbook:update:owner"
RUNBOOK_USE = "baremetal:runbook:use"

_RUNBOOK_RUNBOOK = "/v1/runbooks/{runbook_ident}"
_RUNBOOK_TRAITS = f"{_RUNBOOK_RUNBOOK}/traits"
_RUNBOOK_MANAGER = f"{MEMBER} or ((role:manager or role:service) and rule:is_runbook_owner)"
RUNBOOK_RULES = [
    *listed(RUNBOOK_LIST, RUNBOOK_LIST_ALL, "runbooks (and public ones)", ("GET", "/v1/runbooks")),
    documented(RUNBOOK_GET, f"{READER} or ((role:reader or role:service) and rule:is_runbook_owner)", "Show a runbook",
               ("GET", _RUNBOOK_RUNBOOK), ("GET", _RUNBOOK_TRAITS), of="runbook"),
    documented(RUNBOOK_CREATE, f"{MEMBER} or role:manager or role:service", "Create a runbook",
               ("POST", "/v1/runbooks"),
               of="project", everywhere=RUNBOOK_UPDATE_OWNER),
    documented(RUNBOOK_UPDATE, _RUNBOOK_MANAGER, "Change a runbook, and its traits", ("PATCH", _RUNBOOK_RUNBOOK),
               ("PUT", _RUNBOOK_TRAITS),
               ("PUT", f"{_RUNBOOK_TRAITS}/{{trait}}"), ("DELETE", _RUNBOOK_TRAITS),
               ("DELETE", f"{_RUNBOOK_TRAITS}/{{trait}}"), of="runbook"),
    documented(RUNBOOK_DELETE, _RUNBOOK_MANAGER, "Delete a runbook", ("DELETE", _RUNBOOK_RUNBOOK), of="runbook"),
    documented(RUNBOOK_UPDATE_PUBLIC, MEMBER, "Make a runbook public", ("POST", "/v1/runbooks"),
               ("PATCH", _RUNBOOK_RUNBOOK)),
    documented(RUNBOOK_UPDATE_OWNER, MEMBER, "Give a runbook to another project", ("POST", "/v1/runbooks"),
               ("PATCH", _RUNBOOK_RUNBOOK)),
    documented(RUNBOOK_USE, _RUNBOOK_MANAGER, "Clean or service a node by a runbook that is not public; "
               "baremetal:node:set_provision_state is required, too",
               ("PUT", "/v1/nodes/{node_ident}/states/provision")),
]


FLAVOR_LIST = "baremetal:flavor:list"
FLAVOR_GET = "baremetal:flavor:get"
FLAVOR_CREATE = "baremetal:flavor:create"
FLAVOR_UPDATE = "baremetal:flavor:update"
FLAVOR_DELETE = "baremetal:flavor:delete"
FLAVOR_EXPLAIN = "baremetal:flavor:explain"
FLAVOR_LIST_EXTRA_SPECS = "baremetal:flavor:extra_specs:list"
FLAVOR_GET_EXTRA_SPEC = "baremetal:flavor:extra_specs:get"
FLAVOR_CREATE_EXTRA_SPECS = "baremetal:flavor:extra_specs:create"
FLAVOR_UPDATE_EXTRA_SPEC = "baremetal:flavor:extra_specs:update"
FLAVOR_DELETE_EXTRA_SPEC = "baremetal:flavor:extra_specs:delete"
FLAVOR_LIST_KNOWN = "baremetal:extra_spec:list"
FLAVOR_GET_KNOWN = "baremetal:extra_spec:get"
FLAVOR_VALIDATE = "baremetal:extra_spec:validate"
FLAVOR_LIST_IMAGE_PROPERTIES = "baremetal:image_property:list"

_FLAVOR_PATHS = ("/v1/flavors", "/compute/v2.1/flavors")
_FLAVOR_ONE = "/{flavor}"
_FLAVOR_SPECS = "/{flavor}/os-extra_specs"
_FLAVOR_SPEC = "/{flavor}/os-extra_specs/{key}"


def _on_flavors(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in _FLAVOR_PATHS)


FLAVOR_RULES = [
    documented(FLAVOR_LIST, READER, "List flavors", *_on_flavors("GET"), *_on_flavors("GET", "/detail")),
    documented(FLAVOR_GET, READER, "Show a flavor", *_on_flavors("GET", _FLAVOR_ONE)),
    documented(FLAVOR_CREATE, ADMIN, "Create a flavor", *_on_flavors("POST")),
    documented(FLAVOR_UPDATE, ADMIN, "Change the description of a flavor", *_on_flavors("PUT", _FLAVOR_ONE)),
    documented(FLAVOR_DELETE, ADMIN, "Delete a flavor", *_on_flavors("DELETE", _FLAVOR_ONE)),
    documented(FLAVOR_EXPLAIN, READER, "Show what a flavor requires of nodes, and what its deployment runs",
               ("GET", "/v1/flavors/{flavor}/explanation")),
    documented(FLAVOR_LIST_EXTRA_SPECS, READER, "List the extra specs of a flavor", *_on_flavors("GET", _FLAVOR_SPECS)),
    documented(FLAVOR_GET_EXTRA_SPEC, READER, "Show an extra spec of a flavor", *_on_flavors("GET", _FLAVOR_SPEC)),
    documented(FLAVOR_CREATE_EXTRA_SPECS, ADMIN, "Add extra specs to a flavor", *_on_flavors("POST", _FLAVOR_SPECS)),
    documented(FLAVOR_UPDATE_EXTRA_SPEC, ADMIN, "Set an extra spec of a flavor", *_on_flavors("PUT", _FLAVOR_SPEC)),
    documented(FLAVOR_DELETE_EXTRA_SPEC, ADMIN, "Remove an extra spec from a flavor",
               *_on_flavors("DELETE", _FLAVOR_SPEC)),
    documented(FLAVOR_LIST_KNOWN, READER, "List the extra specs that are known", ("GET", "/v1/extra_specs")),
    documented(FLAVOR_GET_KNOWN, READER, "Show an extra spec that is known", ("GET", "/v1/extra_specs/{name}")),
    documented(FLAVOR_VALIDATE, READER, "Check extra specs without a flavor", ("POST", "/v1/extra_specs/validate")),
    documented(FLAVOR_LIST_IMAGE_PROPERTIES, READER, "List the image properties that are known",
               ("GET", "/v1/image_properties")),
]
