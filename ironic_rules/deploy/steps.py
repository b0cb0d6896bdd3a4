"""Which deploy steps run, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ironic_rules.models.steps import STEP_INTERFACES, Step

#: Where steps come from; those of a template have ``template NAME``.
CODE, CONFIGURATION, REQUEST = "code", "configuration", "request"
#: ``(interface, step)`` of the steps that make a deployment one: they can be left out, and never moved.
CORE = frozenset(("deploy", step) for step in (
    "deploy", "write_image", "prepare_instance_boot", "tear_down_agent", "switch_to_tenant_network", "boot_instance"))

_RANKS = {interface: rank for rank, interface in enumerate(STEP_INTERFACES)}


class StepLike(Protocol):
    """A step as a template has it."""

    @property
    def interface(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def args(self) -> Mapping[str, Any]: ...
    @property
    def priority(self) -> int: ...


class TemplateLike(Protocol):
    """A deploy template, such as ``models.deploy_templates.DeployTemplate``."""

    @property
    def name(self) -> str: ...
    @property
    def steps(self) -> Sequence[StepLike]: ...


@dataclass(frozen=True, slots=True)
class ScheduledStep(Step):
    """One run of a step: ``source`` is ``code``, ``configuration``, ``template NAME`` or ``request``."""

    source: str

    def as_dict(self) -> dict[str, Any]:
        """Return the step as ``node.deploy_step`` and the API have it, without its source."""
        return {**self.to_wire(), "args": dict(self.args)}


class _Place(NamedTuple):
    """What a run is sorted by; no two runs have the same."""

    after_higher_priorities: int
    interface: int
    #: 0: default, 1: template, 2: request
    origin: int
    template: str
    position: int


def requested(steps: Iterable[Mapping[str, Any]]) -> list[ScheduledStep]:
    """Return the steps of a request (``deploy_steps``, valid against its schema) as steps."""
    return [ScheduledStep(step["interface"], step["step"], step.get("args") or {}, int(step["priority"]), REQUEST)
            for step in steps]


def merge(defaults: Iterable[ScheduledStep], templates: Iterable[TemplateLike], requested: Iterable[ScheduledStep],
          core: Collection[tuple[str, str]] = CORE) -> list[ScheduledStep]:
    """Return the runs of one deployment in their order.

    A step that a template names takes the place of the default of that name, with its own arguments and priority; one
    that the request names, also that of the templates'. The same step may come several times, and each of them is a run
    unless its priority is 0. Of a core step nothing counts but priority 0, which leaves it out.

    :param defaults: every step that the node's interfaces have, with their default priorities
    :param core: ``(interface, step)`` of the core steps
    :returns: priority descending, then ``INTERFACES``, then defaults, templates by name, request, then position
    """
    given: dict[tuple[str, str], list[tuple[_Place, ScheduledStep]]] = {}
    for template in templates:
        name, source = template.name, f"template {template.name}"
        for position, asked in enumerate(template.steps):
            step = ScheduledStep(asked.interface, asked.step, asked.args, asked.priority, source)
            given.setdefault((step.interface, step.step), []).append(_placed(step, 1, name, position))
    by_request: dict[tuple[str, str], list[tuple[_Place, ScheduledStep]]] = {}
    for position, step in enumerate(requested):
        by_request.setdefault((step.interface, step.step), []).append(_placed(step, 2, "", position))
    given.update(by_request)

    runs = [_placed(step, 0, "", position) for position, step in enumerate(defaults)
            if step.priority > 0 and not _is_replaced(step, given, core)]
    runs += [run for key, steps in given.items() if key not in core for run in steps if run[1].priority > 0]
    runs.sort(key=lambda run: run[0])
    return [step for _, step in runs]


def _placed(step: ScheduledStep, origin: int, template: str, position: int) -> tuple[_Place, ScheduledStep]:
    rank = _RANKS.get(step.interface, len(_RANKS))
    return _Place(-step.priority, rank, origin, template, position), step


def _is_replaced(default: ScheduledStep, given: Mapping[tuple[str, str], list[tuple[_Place, ScheduledStep]]],
                 core: Collection[tuple[str, str]]) -> bool:
    key = (default.interface, default.step)
    if key in core:
        return any(step.priority == 0 for _, step in given.get(key, ()))
    return key in given
