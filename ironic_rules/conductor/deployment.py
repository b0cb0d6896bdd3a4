"""Deployment in the conductor: which steps run, in which order, and what is undone after a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oslo_log import log as logging

from ironic_rules.conductor import step_loop
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.conductor.step_loop import StepPlan
from ironic_rules.db import deploy_templates
from ironic_rules.exceptions import Invalid
from ironic_rules.models.nodes import Node
from ironic_rules.models.steps import DeployTemplate
from ironic_rules.models.task import Task
from ironic_rules.steps import checks, merge, templates, warnings
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.procedures import DEPLOYMENT
from ironic_rules.steps.progress import Progress
from ironic_rules.steps.warnings import StepWarning

LOG = logging.getLogger(__name__)


def validate(conductor: Conductor, task: Task, requested: Sequence[Mapping[str, Any]] = ()) -> None:
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


def expected(conductor: Conductor, task: Task) -> list[StepWarning]:
    """Return the warnings about a deployment of the node: with the templates that its instance requests, or by each.

    If its instance requests none, each of those that are named after the node's traits is considered alone.
    """
    node, offer = task.node, conductor.hardware.offer(task.node)
    requested = templates.requested_traits(node.instance_info)
    with conductor.db.reader() as conn:
        enabled = [] if _is_pinned(conductor) else deploy_templates.for_traits(conn, requested or node.traits)
    alone = [[template] for template in enabled] if enabled and not requested else [enabled]
    found = [warning for together in alone for warning in warnings.of_deployment(offer, merge.order(offer, together))]
    return list(dict.fromkeys(found))[:warnings.MAX_WARNINGS]


def _problems(conductor: Conductor, task: Task, templates: list[DeployTemplate],
              requested: list[ScheduledStep]) -> list[str]:
    return checks.node_problems(conductor.hardware.offer_to(task), templates, requested,
                                conductor.conf.api.disallow_deploy_steps)


def _is_pinned(conductor: Conductor) -> bool:
    return bool(conductor.conf.conductor.pin_release_version)


def deploy(conductor: Conductor, task: Task) -> StateResult:
    """DEPLOYING: take the next step of the deployment. The node stays in this state until no step is left."""
    return step_loop.advance(conductor, task, DEPLOYMENT, _plan)


def _plan(conductor: Conductor, task: Task, progress: Progress) -> StepPlan:
    node = task.node
    with conductor.db.reader() as conn:
        asked = deploy_templates.for_traits(conn, templates.requested_traits(node.instance_info))
    applied, notice = _applied(conductor, node, asked)
    requested = progress.requested()
    # The request was checked when it came; the templates may have changed since.
    if problems := _problems(conductor, task, applied, requested):
        raise Invalid("; ".join(problems))
    offer = conductor.hardware.offer(node)
    steps = merge.order(offer, applied, requested)
    for warning in warnings.of_deployment(offer, steps):
        LOG.warning("Node %s: %s", node.uuid, warning)
        notice += f" Warning: {warning}."
    return StepPlan(steps, templates.left_out(applied, requested), notice)


def _applied(conductor: Conductor, node: Node, asked: list[DeployTemplate]) -> tuple[list[DeployTemplate], str]:
    """Return the templates that are applied, and a text for the node's history about the others."""
    if not asked or not _is_pinned(conductor):
        return asked, ""
    notice = (f"Deploy templates are not applied while [conductor]pin_release_version is set: "
              f"{', '.join(template.name for template in asked)}.")
    LOG.warning("Node %s: %s", node.uuid, notice)
    return [], f" {notice}"


def clean_up(conductor: Conductor, task: Task) -> None:
    """Clean up after a failed deployment: remove its progress and what boots the node's ramdisk.

    The node is powered off, unless ``[deploy]power_off_after_deploy_failure`` is false or ``disable_power_off`` is set.
    """
    step_loop.clean_up(conductor, task, DEPLOYMENT, power_off=conductor.conf.deploy.power_off_after_deploy_failure)
