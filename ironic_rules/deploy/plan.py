"""Which deploy steps a node runs, and what is wrong with those that it is asked for.

What a node's interfaces offer comes from this process's hardware (``steps_for``), or from whoever knows it: in the API
that is what conductors have registered.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from ironic_rules.deploy import step_checks, steps
from ironic_rules.deploy.steps import ScheduledStep, StepLike, TemplateLike
from ironic_rules.hardware.registry import Hardware
from ironic_rules.hardware.steps import StepInfo, with_priorities
from ironic_rules.models.nodes import Node
from ironic_rules.text import printable

#: Problems that are told of one node; more would not be read.
MAX_PROBLEMS = 100


def steps_for(hardware: Hardware, conf: cfg.ConfigOpts, node: Node, templates: Iterable[TemplateLike],
              requested: Iterable[ScheduledStep] = ()) -> list[ScheduledStep]:
    """Return the steps of a deployment of ``node`` in their order.

    :param templates: those that are asked for
    :param requested: the steps of the request itself
    :raises DriverNotFound, InterfaceNotFound: this process does not serve the node
    """
    return order(with_priorities(hardware.deploy_steps(node), conf.deploy.step_priorities), templates, requested)


def order(offered: Collection[StepInfo], templates: Iterable[TemplateLike],
          requested: Iterable[ScheduledStep] = ()) -> list[ScheduledStep]:
    """Return the steps of a deployment of a node whose interfaces offer ``offered``, in their order."""
    defaults = [ScheduledStep(info.interface, info.step, {}, info.priority,
                     steps.CONFIGURATION if info.configured else steps.CODE) for info in offered]
    return steps.merge(defaults, templates, requested, _core(offered))


def problems(offered: Iterable[StepInfo], templates: Iterable[TemplateLike], requested: Iterable[ScheduledStep] = (),
             disallowed: Collection[str] = ()) -> list[str]:
    """Return what keeps a node whose interfaces offer ``offered`` from running the steps; at most MAX_PROBLEMS.

    :param disallowed: names of steps that must not run, whenever their templates were made
    """
    return _problems(offered, _asked(templates, requested), disallowed)


def problems_of_runs(offered: Iterable[StepInfo], runs: Iterable[ScheduledStep]) -> list[str]:
    """As :func:`problems`, for steps in the order in which they run; each text names the step's source."""
    return _problems(offered, ((f"the {step.source}", step) for step in runs))


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


def _core(offered: Iterable[StepInfo]) -> frozenset[tuple[str, str]]:
    return frozenset((info.interface, info.step) for info in offered if info.core)


def _asked(templates: Iterable[TemplateLike], requested: Iterable[ScheduledStep]) -> Iterator[tuple[str, StepLike]]:
    """Yield each step that is asked for, and before it where that is."""
    for template in templates:
        for position, step in enumerate(template.steps):
            yield f"deploy template {template.name}, /steps/{position}", step
    for position, step in enumerate(requested):
        yield f"the request, /steps/{position}", step


def _problems(offered: Iterable[StepInfo], asked: Iterable[tuple[str, StepLike]],
              disallowed: Collection[str] = ()) -> list[str]:
    known = {(info.interface, info.step): info for info in offered}
    texts = (f"{where} ({step.interface}.{printable(step.step, 255)}): {text}" for where, step in asked
             for text in _wrong(known.get((step.interface, step.step)), step, disallowed))
    return list(itertools.islice(texts, MAX_PROBLEMS))


def _wrong(info: StepInfo | None, step: StepLike, disallowed: Collection[str]) -> Iterator[str]:
    # What is left out does no harm.
    if step.priority and f"{step.interface}.{step.step}" in disallowed:
        yield f"the step is not allowed ({step_checks.DISALLOWED})"
    elif info is None:
        yield f"the {step.interface} interface of the node does not offer this step"
    else:
        for problem in step_checks.against(info, step):
            yield f"{printable(problem.where, 128)}: {problem.text}"
