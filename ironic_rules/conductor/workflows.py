"""Workflows of a conductor that run steps: deployment, rescue, cleaning and servicing, and what each undoes at its end.

Manual cleaning and servicing run the steps of a request in their order. Automated cleaning runs before a node becomes
available; servicing runs on a node with a running instance.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_log import log as logging

from ironic_rules.conductor import step_loop, wait_states
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.conductor.step_loop import Planner, StepPlan
from ironic_rules.context import RequestContext
from ironic_rules.db import deploy_templates, nodes
from ironic_rules.exceptions import Invalid, ramdisk_silent
from ironic_rules.models import states
from ironic_rules.models.internal_keys import AGENT_STAYS, AGENT_URL, RESCUE_BOOTED
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import DeployTemplate
from ironic_rules.models.task import Task
from ironic_rules.steps import checks, merge, offers, preview
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.preview import StepWarning
from ironic_rules.steps.procedures import CLEANING, DEPLOYMENT, SERVICE, Procedure
from ironic_rules.steps.progress import Progress

LOG = logging.getLogger(__name__)


def validate_deployment(conductor: Conductor, task: Task, requested: Sequence[Mapping[str, Any]] = ()) -> None:
    """Check the node's deploy templates (those named after its traits), its instance's traits and ``requested`` steps.

    :param requested: ``deploy_steps`` of the request
    :raises Invalid: with every problem
    """
    node = task.node
    with conductor.db.reader() as conn:
        enabled = [] if _is_pinned(conductor) else deploy_templates.for_traits(conn, node.traits)
    problems = offers.trait_problems(node.instance_info, node.traits)
    if problems := problems + _problems(conductor, task, enabled, merge.requested_steps(requested)):
        raise Invalid("; ".join(problems))


def expected_warnings(conductor: Conductor, task: Task) -> list[StepWarning]:
    """Return the warnings about a deployment of the node: with the templates that its instance requests, or by each.

    If its instance requests none, each of those that are named after the node's traits is considered alone.
    """
    node, offer = task.node, conductor.hardware.offer(task.node)
    requested = offers.requested_traits(node.instance_info)
    with conductor.db.reader() as conn:
        enabled = [] if _is_pinned(conductor) else deploy_templates.for_traits(conn, requested or node.traits)
    alone = [[template] for template in enabled] if enabled and not requested else [enabled]
    warnings = [warning for together in alone
                for warning in preview.warnings_of_deployment(offer, merge.order(offer, together))]
    return list(dict.fromkeys(warnings))[:preview.MAX_WARNINGS]


def _problems(conductor: Conductor, task: Task, templates: list[DeployTemplate],
              requested: list[ScheduledStep]) -> list[str]:
    return checks.node_problems(conductor.hardware.offer_to(task), templates, requested,
                                conductor.conf.api.disallow_deploy_steps)


def _is_pinned(conductor: Conductor) -> bool:
    return bool(conductor.conf.conductor.pin_release_version)


def deploy(conductor: Conductor, task: Task) -> StateResult:
    """DEPLOYING: take the next step of the deployment. The node stays in this state until no step is left."""
    return step_loop.advance(conductor, task, DEPLOYMENT, _plan_deployment)


def _plan_deployment(conductor: Conductor, task: Task, progress: Progress) -> StepPlan:
    node = task.node
    with conductor.db.reader() as conn:
        templates = deploy_templates.for_traits(conn, offers.requested_traits(node.instance_info))
    applied, notice = _applied(conductor, node, templates)
    requested = progress.requested()
    # The request was checked when it came; the templates may have changed since.
    if problems := _problems(conductor, task, applied, requested):
        raise Invalid("; ".join(problems))
    offer = conductor.hardware.offer(node)
    steps = merge.order(offer, applied, requested)
    for warning in preview.warnings_of_deployment(offer, steps):
        LOG.warning("Node %s: %s", node.uuid, warning)
        notice += f" Warning: {warning}."
    return StepPlan(steps, offers.left_out(applied, requested), notice)


def _applied(conductor: Conductor, node: Node, templates: list[DeployTemplate]) -> tuple[list[DeployTemplate], str]:
    """Return the templates that are applied, and a text for the node's history about the others."""
    if not templates or not _is_pinned(conductor):
        return templates, ""
    notice = (f"Deploy templates are not applied while [conductor]pin_release_version is set: "
              f"{', '.join(template.name for template in templates)}.")
    LOG.warning("Node %s: %s", node.uuid, notice)
    return [], f" {notice}"


def clean_up_deployment(conductor: Conductor, task: Task) -> None:
    """Clean up after a failed deployment: remove its progress and what boots the node's ramdisk.

    The node is powered off, unless ``[deploy]power_off_after_deploy_failure`` is false or ``disable_power_off`` is set.
    """
    step_loop.clean_up(conductor, task, DEPLOYMENT, power_off=conductor.conf.deploy.power_off_after_deploy_failure)


PASSWORD = "rescue_password"


def rescue(conductor: Conductor, task: Task) -> StateResult:
    """RESCUING: boot the rescue system; after its heartbeat, let it set the password."""
    interface = conductor.hardware.interface(task.node, "rescue")
    internal = task.node.driver_internal_info
    is_booted = RESCUE_BOOTED in internal
    if (interface.continue_rescue(task) if is_booted else interface.rescue(task)) is None:
        internal.pop(RESCUE_BOOTED, None)
        return StateResult("done", history="The machine runs the rescue system.")
    internal[RESCUE_BOOTED] = True
    return StateResult("wait", history=None if is_booted else "The rescue system is booted.")


def clean_up_rescue(conductor: Conductor, task: Task) -> None:
    """Stop the rescue system after a failure."""
    task.node.driver_internal_info.pop(RESCUE_BOOTED, None)
    conductor.hardware.interface(task.node, "rescue").clean_up(task)


def unrescue(conductor: Conductor, task: Task) -> StateResult:
    """UNRESCUING: boot the instance again; the password of the rescue system is no longer needed."""
    conductor.hardware.interface(task.node, "rescue").unrescue(task)
    task.node.instance_info.pop(PASSWORD, None)
    return StateResult("done")


def time_out_rescue(conductor: Conductor, context: RequestContext, row: nodes.Overdue,
                    before: datetime.datetime) -> None:
    """Fail a node whose rescue system has not called back since ``before``: ``[conductor]rescue_callback_timeout``."""
    error = ramdisk_silent(awaited="the call-back of the rescue system", option="rescue_callback_timeout",
                           seconds=conductor.conf.conductor.rescue_callback_timeout)
    wait_states.time_out(conductor, context, row, before, error)


def rescue_columns(internal: dict[str, object]) -> dict[str, object]:
    """Return the columns of a node for which a rescue is requested."""
    return {"driver_internal_info": {
        key: value for key, value in internal.items() if key not in (RESCUE_BOOTED, AGENT_URL)}}


def validate_steps(conductor: Conductor, task: Task, procedure: Procedure, steps: Sequence[Mapping[str, Any]], *,
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


def validate_cleaning(conductor: Conductor, task: Task, steps: Sequence[Mapping[str, Any]], *,
                      disable_ramdisk: bool) -> None:
    """Check the ``clean_steps`` of a request.

    :raises Invalid: with every problem, each with its JSON pointer
    """
    validate_steps(conductor, task, CLEANING, steps, disable_ramdisk=disable_ramdisk)


def clean(conductor: Conductor, task: Task) -> StateResult:
    """CLEANING: take the next step. The node stays in this state until no step is left, or is not cleaned at all."""
    node = task.node
    progress = Progress(CLEANING, node)
    if _is_automated(node) and not progress.is_started and (reason := _why_not(conductor, node)):
        node.clean_step = {}
        if states.is_fast_track(node.driver_info, conductor.conf.deploy.fast_track):
            node.driver_internal_info[AGENT_STAYS] = True
        return StateResult(_end(node), history=f"The node was not cleaned: {reason}.")
    result = step_loop.advance(conductor, task, CLEANING, _plan_automated if _is_automated(node)
                               else planner(CLEANING))
    if result.event == "done":
        result.event = _end(node)
    elif result.event == "fail" and progress.is_begun:
        # As in Ironic: what a failed clean step has left behind needs a person.
        result.maintenance, result.fault = result.error, "clean failure"
    return result


def clean_up_cleaning(conductor: Conductor, task: Task) -> None:
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


def validate_service(conductor: Conductor, task: Task, steps: Sequence[Mapping[str, Any]], *,
                     disable_ramdisk: bool) -> None:
    """Check the ``service_steps`` of a request.

    :raises Invalid: with every problem, each with its JSON pointer
    """
    validate_steps(conductor, task, SERVICE, steps, disable_ramdisk=disable_ramdisk)


def service(conductor: Conductor, task: Task) -> StateResult:
    """SERVICING: take the next step. The node stays in this state until no step is left."""
    progress = Progress(SERVICE, task.node)
    result = step_loop.advance(conductor, task, SERVICE, planner(SERVICE))
    if result.event == "fail" and progress.is_begun:
        result.maintenance, result.fault = result.error, "service failure"
    return result


def clean_up_service(conductor: Conductor, task: Task) -> None:
    """Clean up after a servicing that has failed or was aborted."""
    step_loop.clean_up(conductor, task, SERVICE, power_off=True)
