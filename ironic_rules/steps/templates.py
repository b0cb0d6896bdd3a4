"""Which deploy templates count for an instance: those that are named after its traits (document 003)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ironic_rules.models.deploy_templates import DeployTemplate
from ironic_rules.models.steps import Step
from ironic_rules.text import printable

#: Problems that are told of one node; more would not be read.
MAX_PROBLEMS = 100


def requested_traits(instance_info: Mapping[str, Any]) -> list[str]:
    """Return the traits that an instance asks for, each once; what is no text is left out."""
    traits = instance_info.get("traits")
    return list(dict.fromkeys(item for item in traits if isinstance(item, str))) if isinstance(traits, list) else []


def trait_problems(instance_info: Mapping[str, Any], traits: Collection[str]) -> list[str]:
    """Return what is wrong with the traits that an instance asks for, of a node that has ``traits``."""
    asked = instance_info.get("traits")
    if asked is None:
        return []
    if not isinstance(asked, list) or not all(isinstance(item, str) for item in asked):
        return ["/instance_info/traits: must be a list of traits"]
    return [f"/instance_info/traits/{index}: the node does not have the trait {printable(trait, 255)}"
            for index, trait in enumerate(asked) if trait not in traits][:MAX_PROBLEMS]


def steps_of(templates: Iterable[DeployTemplate], requested: Iterable[Step] = ()) -> list[Step]:
    """Return all steps that are asked for, those of the request last."""
    return [*(step for template in templates for step in template.steps), *requested]


def left_out(templates: Iterable[DeployTemplate], requested: Iterable[Step]) -> list[str]:
    """Return the names of the steps that are asked for with priority 0, such as ``raid.create_configuration``."""
    return sorted({step.name for step in steps_of(templates, requested) if step.priority == 0})
