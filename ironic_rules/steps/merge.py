"""Merge of steps by default and steps of templates and requests: those that run, in their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.steps import MAX_PRIORITY, STEP_INTERFACES, DeployTemplate, Step
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.offers import Offer
from ironic_rules.steps.procedures import DEPLOYMENT, Procedure

#: Sources of steps; that of a template's steps is ``template NAME``.
CODE, CONFIGURATION, REQUEST = "code", "configuration", "request"
#: The step that boots the ramdisk.
BOOT = ("deploy", DEPLOYMENT.boot_step)

_RANKS = {interface: rank for rank, interface in enumerate(STEP_INTERFACES)}


@dataclass(frozen=True, slots=True)
class ScheduledStep(Step):
    """One run of a step: ``source`` is ``code``, ``configuration``, ``template NAME`` or ``request``."""

    source: str

    @classmethod
    def by_default(cls, info: StepInfo) -> ScheduledStep:
        """Return the run of a step that runs by default."""
        return cls(info.interface, info.step, {}, info.priority, CONFIGURATION if info.configured else CODE)

    def as_dict(self) -> JSONObject:
        """Return the step as in ``node.deploy_step`` and the API, without its source."""
        return {**self.to_wire(), "args": dict(self.args)}


class _Place(NamedTuple):
    """The sort key of a run; it is unique."""

    after_higher_priorities: int
    interface: int
    #: 0: default, 1: template, 2: request
    origin: int
    template: str
    position: int


_Placed = tuple[_Place, ScheduledStep]


def requested_steps(steps: Sequence[Mapping[str, Any]]) -> list[ScheduledStep]:
    """Return the steps of a request, already validated against its schema.

    Steps of ``clean_steps`` and ``service_steps`` have no priorities: they get such as keep their order.
    """
    return [ScheduledStep(step["interface"], step["step"], step.get("args") or {},
                          int(step.get("priority", len(steps) - index)), REQUEST)
            for index, step in enumerate(steps)]


def in_order(offer: Offer, procedure: Procedure, requested: Iterable[ScheduledStep] | None = None,
             ) -> list[ScheduledStep]:
    """Return the runs, in order, of a procedure to which no templates apply: cleaning or servicing.

    The node's ramdisk, if its steps are part of the offer, is booted before them and ended after them.

    :param requested: None: those that run by default
    """
    if requested is None:
        steps = [ScheduledStep.by_default(info) for info in offer.steps if info.priority > 0 and not info.core]
        steps.sort(key=lambda step: (-step.priority, _RANKS[step.interface]))
    else:
        steps = list(requested)
    own = {info.key for info in offer.steps if info.core}
    around = [ScheduledStep("deploy", name, {}, priority, CODE)
              for name, priority in ((procedure.boot_step, MAX_PRIORITY), (procedure.end_step, 0))
              if name is not None and ("deploy", name) in own]
    return [*around[:1], *steps, *around[1:]]


def order(offer: Offer, templates: Iterable[DeployTemplate],
          requested: Iterable[ScheduledStep] = ()) -> list[ScheduledStep]:
    """Return the steps that a node runs in order: :func:`merge`, with all steps of a ramdisk after it is booted."""
    steps = merge(offer.steps, templates, requested)
    return _behind_boot(steps, offer) if offer.in_ramdisk else steps


def merge(offered: Collection[StepInfo], templates: Iterable[DeployTemplate],
          requested: Iterable[ScheduledStep]) -> list[ScheduledStep]:
    """Return the runs of one procedure in order.

    A step that a template names replaces the default of that name, with its own arguments and priority; one that the
    request names also replaces those of the templates. The same step may occur several times, and each of them is a
    run unless its priority is 0. For a core step only priority 0 has an effect: it skips the step.

    :param offered: every step that the node's interfaces have, with their default priorities
    :returns: priority descending, then ``STEP_INTERFACES``, then defaults, templates by name, request, then position
    """
    core = frozenset(info.key for info in offered if info.core)
    runs_by_step: dict[tuple[str, str], list[_Placed]] = {}
    for template in templates:
        name, source = template.name, f"template {template.name}"
        for position, item in enumerate(template.steps):
            step = ScheduledStep(item.interface, item.step, item.args, item.priority, source)
            runs_by_step.setdefault(step.key, []).append(_placed(step, 1, name, position))
    by_request: dict[tuple[str, str], list[_Placed]] = {}
    for position, step in enumerate(requested):
        by_request.setdefault(step.key, []).append(_placed(step, 2, "", position))
    runs_by_step.update(by_request)

    runs = [_placed(ScheduledStep.by_default(info), 0, "", position) for position, info in enumerate(offered)
            if info.priority > 0 and not _is_replaced(info, runs_by_step)]
    runs += [run for key, steps in runs_by_step.items() if key not in core for run in steps if run[1].priority > 0]
    runs.sort(key=lambda run: run[0])
    return [step for _, step in runs]


def _placed(step: ScheduledStep, origin: int, template: str, position: int) -> _Placed:
    rank = _RANKS.get(step.interface, len(_RANKS))
    return _Place(-step.priority, rank, origin, template, position), step


def _is_replaced(default: StepInfo, runs_by_step: Mapping[tuple[str, str], list[_Placed]]) -> bool:
    if default.core:
        return any(step.priority == 0 for _, step in runs_by_step.get(default.key, ()))
    return default.key in runs_by_step


def _behind_boot(steps: Sequence[ScheduledStep], offer: Offer) -> list[ScheduledStep]:
    """Return the steps with all of the ramdisk's after the one that boots it."""
    own = {info.key for info in offer.steps}
    boot = next((index for index, step in enumerate(steps) if step.key == BOOT), None)
    if boot is None:
        return list(steps)
    early = [step for step in steps[:boot] if step.key not in own]
    return [*(step for step in steps[:boot] if step not in early), steps[boot], *early, *steps[boot + 1:]]
