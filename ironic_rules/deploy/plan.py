"""Which deploy steps a node runs, and what is wrong with those that it is asked for.

What a node's interfaces offer comes from this process's hardware (``steps_for``, ``problems_of``), or from what
conductors have registered (``order``, ``problems``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from ironic_rules.deploy import steps
from ironic_rules.deploy.steps import Step, StepLike, TemplateLike
from ironic_rules.hardware.registry import Hardware
from ironic_rules.hardware.steps import StepInfo, with_priorities, wrong_arguments
from ironic_rules.rules.base import printable

#: Problems that are told of one node; more would not be read.
MAX_PROBLEMS = 100


def steps_for(hardware: Hardware, conf: cfg.ConfigOpts, node: Any, templates: Iterable[TemplateLike],
              requested: Iterable[Step] = ()) -> list[Step]:
    """Return the steps of a deployment of ``node`` in their order.

    :param templates: those that are asked for
    :param requested: the steps of the request itself
    :raises DriverNotFound, InterfaceNotFound: this process does not serve the node
    """
    return order(_offered(hardware, conf, node), templates, requested)


def problems_of(hardware: Hardware, conf: cfg.ConfigOpts, node: Any, templates: Iterable[TemplateLike],
                requested: Iterable[Step] = ()) -> list[str]:
    """Return what keeps ``node`` from running the steps: each text names template, step and argument.

    :raises DriverNotFound, InterfaceNotFound: this process does not serve the node
    """
    return problems(_offered(hardware, conf, node), templates, requested)


def order(offered: Collection[StepInfo], templates: Iterable[TemplateLike],
          requested: Iterable[Step] = ()) -> list[Step]:
    """Return the steps of a deployment of a node whose interfaces offer ``offered``, in their order."""
    defaults = [Step(info.interface, info.step, {}, info.priority,
                     steps.CONFIGURATION if info.configured else steps.CODE) for info in offered]
    return steps.merge(defaults, templates, requested, _core(offered))


def problems(offered: Collection[StepInfo], templates: Iterable[TemplateLike],
             requested: Iterable[Step] = ()) -> list[str]:
    """Return what keeps a node whose interfaces offer ``offered`` from running the steps; at most MAX_PROBLEMS."""
    known = {(info.interface, info.step): info for info in offered}
    found = []
    for title, asked in _asked(templates, requested):
        for position, step in enumerate(asked):
            for text in _wrong(known.get((step.interface, step.step)), step):
                found.append(f"{title}, /steps/{position} ({step.interface}.{printable(step.step[:255])}): {text}")
                if len(found) == MAX_PROBLEMS:
                    return found
    return found


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
    return [f"/instance_info/traits/{index}: the node does not have the trait {printable(trait[:255])}"
            for index, trait in enumerate(asked) if trait not in traits][:MAX_PROBLEMS]


def _offered(hardware: Hardware, conf: cfg.ConfigOpts, node: Any) -> list[StepInfo]:
    return with_priorities(hardware.deploy_steps(node), conf.deploy.step_priorities)


def _core(offered: Iterable[StepInfo]) -> frozenset[tuple[str, str]]:
    return frozenset((info.interface, info.step) for info in offered if info.core)


def _asked(templates: Iterable[TemplateLike], requested: Iterable[Step]) -> Iterator[tuple[str, Iterable[StepLike]]]:
    for template in templates:
        yield f"deploy template {template.name}", template.steps
    yield "the request", requested


def _wrong(info: StepInfo | None, step: StepLike) -> Iterator[str]:
    if info is None:
        yield f"the {step.interface} interface of the node does not offer this step"
        return
    if info.core and step.priority:
        yield "a core step can only be left out, with priority 0"
    if step.priority:
        for name, text in wrong_arguments(info.argsinfo, step.args):
            yield f"/args/{printable(name[:64])}: {text}"
