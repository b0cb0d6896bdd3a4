"""Which deploy templates apply to an instance: those that are named after its traits (document 003)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ironic_rules.models.documents import JSON
from ironic_rules.models.steps import DeployTemplate, Step
from ironic_rules.text import printable

#: Maximum number of problems reported for one node.
MAX_PROBLEMS = 100


def requested_traits(instance_info: Mapping[str, JSON]) -> list[str]:
    """Return the traits that an instance requests, without duplicates; items that are not strings are left out."""
    traits = instance_info.get("traits")
    return list(dict.fromkeys(item for item in traits if isinstance(item, str))) if isinstance(traits, list) else []


def trait_problems(instance_info: Mapping[str, JSON], traits: Collection[str]) -> list[str]:
    """Return the problems of the traits that an instance requests, for a node that has ``traits``."""
    asked = instance_info.get("traits")
    if asked is None:
        return []
    if not isinstance(asked, list) or not all(isinstance(item, str) for item in asked):
        return ["/instance_info/traits: must be a list of traits"]
    return [f"/instance_info/traits/{index}: the node does not have the trait {printable(trait, 255)}"
            for index, trait in enumerate(asked) if trait not in traits][:MAX_PROBLEMS]


def steps_of(templates: Iterable[DeployTemplate], requested: Iterable[Step] = ()) -> list[Step]:
    """Return all requested steps, those of the request last."""
    return [*(step for template in templates for step in template.steps), *requested]


def left_out(templates: Iterable[DeployTemplate], requested: Iterable[Step]) -> list[str]:
    """Return the names of the steps that are requested with priority 0, such as ``raid.create_configuration``."""
    return sorted({step.name for step in steps_of(templates, requested) if step.priority == 0})
