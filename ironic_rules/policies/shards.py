"""The policy of ``/v1/shards``."""

from __future__ import annotations

from ironic_rules.policies.base import READER, documented

GET = "baremetal:shards:get"

RULES = [documented(GET, READER, "List shards, with the numbers of their nodes", ("GET", "/v1/shards"))]
