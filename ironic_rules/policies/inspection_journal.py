"""Policies of the journal of refused callbacks."""

from __future__ import annotations

from ironic_rules.policies.base import ADMIN, documented

GET = "baremetal:inspection_journal:get"
ENROLL = "baremetal:inspection_journal:enroll"

RULES = [
    documented(GET, ADMIN, "Show refused callbacks of ramdisks: which machines call, and why they are refused",
               ("GET", "/v1/inspection_journal"), ("GET", "/v1/inspection_journal/{entry}"),
               ("GET", "/v1/nodes/{node_ident}/inspection_journal")),
    documented(ENROLL, ADMIN, "Create a node for a machine whose callback was refused",
               ("POST", "/v1/inspection_journal/{entry}/enroll")),
]
