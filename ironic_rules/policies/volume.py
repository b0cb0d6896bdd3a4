"""Policies of ``/v1/volume``, whose collections are always empty."""

from __future__ import annotations

from ironic_rules.policies.base import READER, documented

LIST = "baremetal:volume:list_all"

RULES = [
    documented(LIST, READER, "List volume connectors and targets",
               ("GET", "/v1/volume"), ("GET", "/v1/volume/connectors"), ("GET", "/v1/volume/targets"),
               ("GET", "/v1/nodes/{node_ident}/volume"), ("GET", "/v1/nodes/{node_ident}/volume/connectors"),
               ("GET", "/v1/nodes/{node_ident}/volume/targets")),
]
