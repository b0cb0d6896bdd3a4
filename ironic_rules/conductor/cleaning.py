"""Cleaning in the conductor: automated before a node becomes available, and manual with the steps of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oslo_log import log as logging

from ironic_rules.conductor import requested_steps, step_loop
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.conductor.step_loop import StepPlan
from ironic_rules.exceptions import Invalid
from ironic_rules.models import states
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.steps import checks, merge
from ironic_rules.steps.procedures import CLEANING
from ironic_rules.steps.progress import Progress

LOG = logging.getLogger(__name__)


def validate(conductor: Conductor, task: Task, steps: Sequence[Mapping[str, Any]], *, disable_ramdisk: bool) -> None:
    """Check the ``clean_steps`` of a request.

    :raises Invalid: with every problem, each with its JSON pointer
    """
    requested_steps.validate(conductor, task, CLEANING, steps, disable_ramdisk=disable_ramdisk)


def clean(conductor: Conductor, task: Task) -> StateResult:
    """CLEANING: take the next step. The node stays in this state until no step is left, or is not cleaned at all."""
    node = task.node
    progress = Progress(CLEANING, node)
    if _is_automated(node) and not progress.is_started and (reason := _why_not(conductor, node)):
        node.clean_step = {}
        return StateResult(_end(node), history=f"The node was not cleaned: {reason}.")
    result = step_loop.advance(conductor, task, CLEANING, _plan_automated if _is_automated(node)
                               else requested_steps.planner(CLEANING))
    if result.event == "done":
        result.event = _end(node)
    elif result.event == "fail" and progress.is_begun:
        # As in Ironic: what a failed clean step has left behind needs a person.
        result.maintenance, result.fault = result.error, "clean failure"
    return result


def clean_up(conductor: Conductor, task: Task) -> None:
    """Clean up after a cleaning that has failed or was aborted."""
    step_loop.clean_up(conductor, task, CLEANING, power_off=True)


def _is_automated(node: Node) -> bool:
    return node.target_provision_state != states.MANAGEABLE


def _why_not(conductor: Conductor, node: Node) -> str | None:
    if node.automated_clean is not None:
        return None if node.automated_clean else "automated_clean of the node is false"
    return None if conductor.conf.conductor.automated_clean else "[conductor]automated_clean is false"


def _end(node: Node) -> str:
    """Return the event that ends cleaning: a retired node does not become available."""
    return "done" if _is_automated(node) and not node.retired else "manage-done"


def _plan_automated(conductor: Conductor, task: Task, progress: Progress) -> StepPlan:
    offer = conductor.hardware.offer(task.node, CLEANING)
    if problems := checks.cleaning_problems(offer):
        raise Invalid("; ".join(problems))
    return StepPlan(merge.in_order(offer, CLEANING))
