"""Policies of ``/v1/flavors``, of the same resources below ``/compute/v2.1``, and of the known extra specs."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

LIST = "baremetal:flavor:list"
GET = "baremetal:flavor:get"
CREATE = "baremetal:flavor:create"
UPDATE = "baremetal:flavor:update"
DELETE = "baremetal:flavor:delete"
EXPLAIN = "baremetal:flavor:explain"
LIST_EXTRA_SPECS = "baremetal:flavor:extra_specs:list"
GET_EXTRA_SPEC = "baremetal:flavor:extra_specs:get"
CREATE_EXTRA_SPECS = "baremetal:flavor:extra_specs:create"
UPDATE_EXTRA_SPEC = "baremetal:flavor:extra_specs:update"
DELETE_EXTRA_SPEC = "baremetal:flavor:extra_specs:delete"
LIST_KNOWN = "baremetal:extra_spec:list"
GET_KNOWN = "baremetal:extra_spec:get"
VALIDATE = "baremetal:extra_spec:validate"
LIST_IMAGE_PROPERTIES = "baremetal:image_property:list"

_PATHS = ("/v1/flavors", "/compute/v2.1/flavors")
_ONE = "/{flavor}"
_SPECS = "/{flavor}/os-extra_specs"
_SPEC = "/{flavor}/os-extra_specs/{key}"


def _on(method: str, below: str = "") -> tuple[tuple[str, str], ...]:
    return tuple((method, path + below) for path in _PATHS)


RULES = [
    documented(LIST, READER, "List flavors", *_on("GET"), *_on("GET", "/detail")),
    documented(GET, READER, "Show a flavor", *_on("GET", _ONE)),
    documented(CREATE, ADMIN, "Create a flavor", *_on("POST")),
    documented(UPDATE, ADMIN, "Change the description of a flavor", *_on("PUT", _ONE)),
    documented(DELETE, ADMIN, "Delete a flavor", *_on("DELETE", _ONE)),
    documented(EXPLAIN, READER, "Show what a flavor requires of nodes, and what its deployment runs",
               ("GET", "/v1/flavors/{flavor}/explanation")),
    documented(LIST_EXTRA_SPECS, READER, "List the extra specs of a flavor", *_on("GET", _SPECS)),
    documented(GET_EXTRA_SPEC, READER, "Show an extra spec of a flavor", *_on("GET", _SPEC)),
    documented(CREATE_EXTRA_SPECS, ADMIN, "Add extra specs to a flavor", *_on("POST", _SPECS)),
    documented(UPDATE_EXTRA_SPEC, ADMIN, "Set an extra spec of a flavor", *_on("PUT", _SPEC)),
    documented(DELETE_EXTRA_SPEC, ADMIN, "Remove an extra spec from a flavor", *_on("DELETE", _SPEC)),
    documented(LIST_KNOWN, READER, "List the extra specs that are known", ("GET", "/v1/extra_specs")),
    documented(GET_KNOWN, READER, "Show an extra spec that is known", ("GET", "/v1/extra_specs/{name}")),
    documented(VALIDATE, READER, "Check extra specs without a flavor", ("POST", "/v1/extra_specs/validate")),
    documented(LIST_IMAGE_PROPERTIES, READER, "List the image properties that are known",
               ("GET", "/v1/image_properties")),
]
