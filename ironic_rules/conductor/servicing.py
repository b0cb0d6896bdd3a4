"""Servicing in the conductor: the steps of a request on a node with a running instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironic_rules.conductor import requested_steps, step_loop
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.models.task import Task
from ironic_rules.steps.procedures import SERVICE
from ironic_rules.steps.progress import Progress


def validate(conductor: Conductor, task: Task, steps: Sequence[Mapping[str, Any]], *, disable_ramdisk: bool) -> None:
    """Check the ``service_steps`` of a request.

    :raises Invalid: with every problem, each with its JSON pointer
    """
    requested_steps.validate(conductor, task, SERVICE, steps, disable_ramdisk=disable_ramdisk)


def service(conductor: Conductor, task: Task) -> StateResult:
    """SERVICING: take the next step. The node stays in this state until no step is left."""
    progress = Progress(SERVICE, task.node)
    result = step_loop.advance(conductor, task, SERVICE, requested_steps.planner(SERVICE))
    if result.event == "fail" and progress.is_begun:
        result.maintenance, result.fault = result.error, "service failure"
    return result


def clean_up(conductor: Conductor, task: Task) -> None:
    """Clean up after a servicing that has failed or was aborted."""
    step_loop.clean_up(conductor, task, SERVICE, power_off=True)
