"""Policies of ``/metrics``."""

from __future__ import annotations

from ironic_rules.policies.base import READER, documented

GET = "baremetal:metrics:get"

RULES = [
    documented(GET, READER, "Read the metrics of an API process", ("GET", "/metrics")),
]
