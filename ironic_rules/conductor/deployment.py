"""Deployment in the conductor: which steps run, in which order, and how the work of a dead conductor is resumed.

A step takes two passes of :func:`ironic_rules.conductor.state_machine.run`, each one transaction under the node's
lock: the first records that the step has begun; the second executes it and saves what it changed together with the
progress. So a finished step is never repeated, and a step that is recorded as begun when a conductor resumes the node
is one in which another conductor died.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_log import log as logging

from ironic_rules.conductor import state_machine, wait_states
from ironic_rules.conductor.conductor import Conductor, Result
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, deploy_templates, nodes
from ironic_rules.exceptions import Invalid, IronicRulesError
from ironic_rules.models import states
from ironic_rules.models.deploy_templates import DeployTemplate
from ironic_rules.models.kept import Kept
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.models.watch import STEP
from ironic_rules.steps import checks, execution, merge, templates
from ironic_rules.steps import progress as step_progress
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.procedures import DEPLOYMENT
from ironic_rules.steps.progress import Progress, Run

LOG = logging.getLogger(__name__)


def validate(conductor: Conductor, task: Task, requested: Iterable[Mapping[str, Any]] = ()) -> None:
    """Check the node's deploy templates (those named after its traits), its instance's traits and ``requested`` steps.

    :param requested: ``deploy_steps`` of the request
    :raises Invalid: with every problem
    """
    node = task.node
    with conductor.db.reader() as conn:
        enabled = [] if _is_pinned(conductor) else deploy_templates.for_traits(conn, node.traits)
    problems = templates.trait_problems(node.instance_info, node.traits)
    if problems := problems + _problems(conductor, task, enabled, merge.requested_steps(requested)):
        raise Invalid("; ".join(problems))


def _problems(conductor: Conductor, task: Task, templates: list[DeployTemplate],
              requested: list[ScheduledStep]) -> list[str]:
    return checks.node_problems(conductor.hardware.offer(task.node), templates, requested,
                                conductor.conf.api.disallow_deploy_steps)


def _is_pinned(conductor: Conductor) -> bool:
    return bool(conductor.conf.conductor.pin_release_version)


def deploy(conductor: Conductor, task: Task) -> Result:
    """DEPLOYING: take the next step of the deployment. The node stays in this state until no step is left."""
    progress = Progress(DEPLOYMENT, task.node)
    if not progress.is_started:
        return _start(conductor, task, progress)
    run = progress.current()
    if run is None:
        progress.forget()
        return Result("done", history="The deployment is finished.")
    if not progress.is_begun:
        progress.begin(run, _lock(task.node), clock.now())
        return Result("next", history=f"Deploy step {run} begins.")
    return _execute(conductor, task, progress, run)


def _start(conductor: Conductor, task: Task, progress: Progress) -> Result:
    node = task.node
    with conductor.db.reader() as conn:
        asked = deploy_templates.for_traits(conn, templates.requested_traits(node.instance_info))
    applied, notice = _applied(conductor, node, asked)
    requested = progress.requested()
    # The request was checked when it came; the templates may have changed since.
    if problems := _problems(conductor, task, applied, requested):
        raise Invalid("; ".join(problems))
    steps = merge.order(conductor.hardware.offer(node), applied, requested)
    progress.start(steps, templates.left_out(applied, requested))
    return Result("next", history=f"The deployment begins; steps: {step_progress.names_of(steps)}.{notice}")


def _applied(conductor: Conductor, node: Node, asked: list[DeployTemplate]) -> tuple[list[DeployTemplate], str]:
    """Return the templates that are applied, and a text for the node's history about the others."""
    if not asked or not _is_pinned(conductor):
        return asked, ""
    notice = (f"Deploy templates are not applied while [conductor]pin_release_version is set: "
              f"{', '.join(template.name for template in asked)}.")
    LOG.warning("Node %s: %s", node.uuid, notice)
    return [], f" {notice}"


def _execute(conductor: Conductor, task: Task, progress: Progress, run: Run) -> Result:
    """Execute a step that has begun, or check one that continues on the machine."""
    ends: list[str | None] = []

    def execute() -> None:
        kept = Kept(task, "steps")
        ends.append(execution.execute(conductor.hardware, task, progress, run.step, _lock(task.node)))
        if problem := kept.problem():
            raise IronicRulesError(problem)

    task.watch.begin(STEP, _overdue, str(run))
    reason = state_machine.attempt(execute, task)
    task.watch.end()
    if reason:
        return Result("fail", error=f"Deploy step {run} failed: {reason}")
    if ends == [DEPLOYMENT.wait_state]:
        history = None if progress.is_waiting else f"Deploy step {run} waits for the machine."
        progress.wait()
        return Result("wait", history=history)
    took_s = progress.finish(clock.now())
    return Result("next", history=f"Deploy step {run} finished after {took_s:.1f} s.")


def _overdue(run: str, reason: str) -> IronicRulesError:
    return IronicRulesError(f"Deploy step {run} failed: {reason}")


def _lock(node: Node) -> str:
    """Return what identifies one run of the work on a node: the purpose of the lock, and the resumption if any."""
    purpose = node.reservation_purpose or ""
    return f"{purpose}, resumed: {node.reservation_resumptions}" if node.reservation_resumptions else purpose


def clean_up(conductor: Conductor, task: Task) -> None:
    """Clean up after a failed deployment: remove its progress and what boots the node's ramdisk.

    The node is powered off, unless ``[deploy]power_off_after_deploy_failure`` is false or ``disable_power_off`` is set.
    """
    Progress(DEPLOYMENT, task.node).forget()
    try:
        if conductor.conf.deploy.power_off_after_deploy_failure and not task.node.disable_power_off:
            conductor.hardware.interface(task.node, "power").set_power_state(task, states.POWER_OFF)
    finally:
        _undo_boot(conductor, task)


def _undo_boot(conductor: Conductor, task: Task) -> None:
    try:
        conductor.hardware.interface(task.node, "deploy").clean_up(task)
    except IronicRulesError as exc:
        LOG.warning("What was prepared for the ramdisk of node %s is left: %s", task.node.uuid, exc)


def time_out(conductor: Conductor, context: RequestContext, row: nodes.Overdue, before: datetime.datetime) -> None:
    """Fail a node whose ramdisk has sent no heartbeat since ``before``: ``[conductor]deploy_callback_timeout``."""
    step = row.deploy_step
    name = f" in deploy step {step['interface']}.{step['step']}" if step else ""
    error = (f"Timeout reached while waiting for the machine's call-back{name} "
             f"({conductor.conf.conductor.deploy_callback_timeout} seconds, [conductor]deploy_callback_timeout).")
    wait_states.time_out(conductor, context, row, before, error)
