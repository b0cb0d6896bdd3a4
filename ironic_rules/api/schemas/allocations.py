"""Bodies of requests on allocations."""

from __future__ import annotations

from ironic_rules.api import schema
from ironic_rules.api.schemas.nodes import Trait
from ironic_rules.models.resources import ALLOCATION, MAX_CANDIDATES, MAX_TRAITS

_IDENT = schema.Text(255, min_length=1)
_SPECIAL = {"traits": schema.List(Trait(), max_items=MAX_TRAITS, nullable=True),
            "candidate_nodes": schema.List(_IDENT, max_items=MAX_CANDIDATES, nullable=True)}

CREATE = schema.Object({
    **schema.of(ALLOCATION, ALLOCATION.where(lambda entry: entry.create), _SPECIAL),
    "node": schema.Text(255, min_length=1, nullable=True)})
#: Every field that a PATCH may write. ``null`` means the field's default.
PATCHED = schema.Object(schema.of(ALLOCATION, ALLOCATION.patchable))
