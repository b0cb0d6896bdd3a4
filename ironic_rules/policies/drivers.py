"""Policies of ``/v1/drivers``."""

from __future__ import annotations

from ironic_rules.policies.base import READER, documented

GET = "baremetal:driver:get"
GET_PROPERTIES = "baremetal:driver:get_properties"

RULES = [
    documented(GET, READER, "List and show drivers", ("GET", "/v1/drivers"), ("GET", "/v1/drivers/{driver}")),
    documented(GET_PROPERTIES, READER, "Show the properties of a driver", ("GET", "/v1/drivers/{driver}/properties")),
]
