"""Allocations: requests for any node that fits, which keep the node that they have got."""

from __future__ import annotations

import datetime
from typing import Protocol

from ironic_rules.models.fields import Fields, Filter, Text, field, form
from ironic_rules.models.json_values import JSONObject

ALLOCATING = "allocating"
ACTIVE = "active"
ERROR = "error"
STATES = (ALLOCATING, ACTIVE, ERROR)
#: Candidate nodes and traits that one allocation may name.
MAX_CANDIDATES = 1000
MAX_TRAITS = 50


@form
class Allocation(Protocol):
    """A node for an instance with the UUID of the allocation. ``traits`` and ``candidate_nodes`` restrict which one."""

    id: int = field(shown=False)
    node_id: int | None = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    name: str | None = field(patch=True, text=Text.NAME)
    state: str = field(filter=52, choices=STATES)
    last_error: str | None = field()
    resource_class: str | None = field(create=True, filter=52, max_length=80, min_length=1)
    traits: list[str] = field(create=True)
    candidate_nodes: list[str] = field(create=True)
    extra: JSONObject = field(patch=True)
    owner: str | None = field(since=60, create=True, filter=60)
    node_uuid: str | None = field(column=False, text=Text.UUID)


ALLOCATION = Fields.of(Allocation, made={"links": 1}, inputs={"node": 58}, filters=(Filter("node"),))
