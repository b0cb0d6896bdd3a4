"""Policies of ``/v1/conductors``."""

from __future__ import annotations

from ironic_rules.policies.base import READER, documented

GET = "baremetal:conductor:get"

RULES = [
    documented(GET, READER, "List and show conductors",
               ("GET", "/v1/conductors"), ("GET", "/v1/conductors/{hostname}")),
]
