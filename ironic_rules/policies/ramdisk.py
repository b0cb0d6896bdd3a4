"""Policies of the endpoints that ramdisks call without authentication. ``!`` disables one."""

from __future__ import annotations

from ironic_rules.policies.base import PUBLIC, documented

LOOKUP = "baremetal:driver:ipa_lookup"
HEARTBEAT = "baremetal:node:ipa_heartbeat"
CONTINUE_INSPECTION = "baremetal:driver:ipa_continue_inspection"

RULES = [
    documented(LOOKUP, PUBLIC, "Look a node up by its addresses", ("GET", "/v1/lookup")),
    documented(HEARTBEAT, PUBLIC, "Send a heartbeat from a ramdisk", ("POST", "/v1/heartbeat/{node}")),
    documented(CONTINUE_INSPECTION, PUBLIC, "Send inspection data from a ramdisk", ("POST", "/v1/continue_inspection")),
]
