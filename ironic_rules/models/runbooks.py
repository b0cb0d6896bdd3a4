"""Runbooks: steps in a fixed order, with which an operator lets others clean or service nodes."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import Protocol

from ironic_rules.models.fields import Fields, Text, field, form
from ironic_rules.models.json_values import JSONObject

MAX_STEPS = 256
#: Names of the fields of a step: ``order`` says when it runs, the lowest first.
RUNBOOK_STEP_FIELDS = ("interface", "step", "args", "order")


@form
class Runbook(Protocol):
    """A stored runbook. Its name is a trait: it may be used on nodes with that trait, or with one of ``traits``."""

    id: int = field(shown=False)

    uuid: str = field(create=True, text=Text.UUID, summary=True)
    created_at: datetime.datetime = field()
    updated_at: datetime.datetime | None = field()
    name: str = field(patch=True, required=True, summary=True)
    steps: list[JSONObject] = field(patch=True, required=True, secret=True)
    disable_ramdisk: bool = field(patch=True)
    extra: JSONObject = field(patch=True)
    public: bool = field(patch=True)
    owner: str | None = field(patch=True)
    traits: list[str] = field()


RUNBOOK = Fields.of(Runbook, made={"links": 1})


def fits(runbook: Runbook, traits: Collection[str]) -> bool:
    """Return whether a runbook may be used on a node with these traits."""
    return runbook.name in traits or not set(runbook.traits).isdisjoint(traits)


def steps_to_run(runbook: Runbook) -> list[JSONObject]:
    """Return the steps as a request for cleaning or servicing has them, in the order in which they run."""
    ordered = sorted(runbook.steps, key=lambda step: int(step["order"]))
    return [{name: step[name] for name in RUNBOOK_STEP_FIELDS if name != "order"} for step in ordered]
