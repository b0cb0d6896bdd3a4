"""Procedures that run the steps of a request in their order: manual cleaning and servicing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.step_loop import Planner, StepPlan
from ironic_rules.exceptions import Invalid
from ironic_rules.models.task import Task
from ironic_rules.steps import checks, merge
from ironic_rules.steps.procedures import Procedure
from ironic_rules.steps.progress import Progress


def validate(conductor: Conductor, task: Task, procedure: Procedure, steps: Sequence[Mapping[str, Any]], *,
             disable_ramdisk: bool) -> None:
    """Check that the node can run the steps; those that its ramdisk may have are checked when it runs.

    :raises Invalid: with every problem, each with the JSON pointer of its place in the request
    """
    offer = conductor.hardware.offer_to(task, procedure)
    if problems := checks.request_problems(
            offer, procedure, merge.requested_steps(steps), ramdisk=not disable_ramdisk,
            disallowed=conductor.conf.api.disallow_deploy_steps):
        raise Invalid("; ".join(problems))
    if offer.in_ramdisk and not disable_ramdisk:
        conductor.hardware.interface(task.node, "deploy").validate_ramdisk(task)


def planner(procedure: Procedure) -> Planner:
    """Return what plans the requested steps of a node, with the ramdisk around them unless the request excludes it."""

    def plan(conductor: Conductor, task: Task, progress: Progress) -> StepPlan:
        requested = progress.requested()
        without = progress.without_ramdisk
        offer = conductor.hardware.offer_to(task, procedure)
        # The request was checked when it came; the node's interfaces may have changed since.
        if problems := checks.request_problems(offer, procedure, requested, ramdisk=not without,
                                               disallowed=conductor.conf.api.disallow_deploy_steps):
            raise Invalid("; ".join(problems))
        return StepPlan(merge.in_order(offer.only_out_of_band if without else offer, procedure, requested))

    return plan
