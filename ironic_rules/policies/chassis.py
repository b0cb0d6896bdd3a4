"""Policies of ``/v1/chassis``."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, READER, documented

GET = "baremetal:chassis:get"
CREATE = "baremetal:chassis:create"
UPDATE = "baremetal:chassis:update"
DELETE = "baremetal:chassis:delete"

_CHASSIS = "/v1/chassis/{chassis_uuid}"
RULES = [
    documented(GET, READER, "List and show chassis",
               ("GET", "/v1/chassis"), ("GET", "/v1/chassis/detail"), ("GET", _CHASSIS)),
    documented(CREATE, ADMIN, "Create a chassis", ("POST", "/v1/chassis")),
    documented(UPDATE, ADMIN, "Change a chassis", ("PATCH", _CHASSIS)),
    documented(DELETE, ADMIN, "Delete a chassis", ("DELETE", _CHASSIS)),
]
