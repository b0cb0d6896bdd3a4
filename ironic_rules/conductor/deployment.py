"""Deployment in the conductor: which steps run, one after the other, and what becomes of a dead conductor's.

A step takes two passes of :func:`ironic_rules.conductor.work.run`, each one transaction under the node's lock: first
it is noted as begun, then it is run, and what it changed is saved together with the progress. So a finished step is
never repeated, and who finds a begun one knows that a conductor died in it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from oslo_log import log as logging

from ironic_rules.conductor import in_band, waiting, work
from ironic_rules.conductor.engine import Engine, now
from ironic_rules.conductor.handlers import Result
from ironic_rules.context import RequestContext
from ironic_rules.db import deploy_templates
from ironic_rules.deploy import plan, progress
from ironic_rules.deploy import steps as deploy_steps
from ironic_rules.exceptions import Invalid, IronicRulesError
from ironic_rules.hardware import steps as hardware_steps
from ironic_rules.models import states
from ironic_rules.models.deploy_templates import DeployTemplate
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task

LOG = logging.getLogger(__name__)


def validate(engine: Engine, task: Task, requested: Iterable[Mapping[str, Any]] = ()) -> None:
    """Check the node's deploy templates (those named after its traits), its instance's traits and ``requested`` steps.

    :param requested: ``deploy_steps`` of the request
    :raises Invalid: with every problem
    """
    node = task.node
    with engine.db.reader() as conn:
        enabled = [] if _is_pinned(engine) else deploy_templates.for_traits(conn, node.traits)
    steps = deploy_steps.requested(requested)
    if problems := plan.trait_problems(node.instance_info, node.traits) + _problems(engine, task, enabled, steps):
        raise Invalid("; ".join(problems))


def _problems(engine: Engine, task: Task, templates: list[DeployTemplate],
              requested: list[deploy_steps.ScheduledStep]) -> list[str]:
    return plan.problems(in_band.offered(engine, task, templates, requested), templates, requested,
                         engine.conf.api.disallow_deploy_steps)


def _is_pinned(engine: Engine) -> bool:
    return bool(engine.conf.conductor.pin_release_version)


def request(internal: Mapping[str, Any], requested: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of a node that is to be deployed.

    :param internal: its ``driver_internal_info``
    :param requested: ``deploy_steps`` of the request
    """
    kept = progress.without(internal)
    steps = [dict(step) for step in requested]
    return {"deploy_step": {}, "driver_internal_info": {**kept, progress.REQUESTED: steps} if steps else kept}


def deploy(engine: Engine, task: Task) -> Result:
    """DEPLOYING: do the next thing of the deployment. Ends in this state until no step is left."""
    node = task.node
    if not progress.is_planned(node):
        return _plan(engine, task)
    run = progress.current(node)
    if run is None:
        progress.forget(node)
        return Result("done", history="The deployment is finished.")
    if not progress.is_begun(node):
        progress.begin(node, run, node.reservation_purpose or "", now())
        return Result("next", history=f"Deploy step {run} begins.")
    return _run(engine, task, run)


def _plan(engine: Engine, task: Task) -> Result:
    node = task.node
    with engine.db.reader() as conn:
        asked = deploy_templates.for_traits(conn, plan.requested_traits(node.instance_info))
    applied, notice = _applied(engine, node, asked)
    requested = deploy_steps.requested(node.driver_internal_info.get(progress.REQUESTED) or ())
    # The request was checked when it came; the templates may have changed since.
    if problems := _problems(engine, task, applied, requested):
        raise Invalid("; ".join(problems))
    steps = in_band.order(
        engine, node, plan.steps_for(engine.hardware, engine.conf, node, applied, requested))
    progress.plan(node, steps, in_band.names_left_out(applied, requested))
    return Result("next", history=f"The deployment begins; steps: {progress.names(steps)}.{notice}")


def _applied(engine: Engine, node: Node, asked: list[DeployTemplate]) -> tuple[list[DeployTemplate], str]:
    """Return the templates that count, and what an operator is told of the others."""
    if not asked or not _is_pinned(engine):
        return asked, ""
    notice = (f"Deploy templates are not applied while [conductor]pin_release_version is set: "
              f"{', '.join(template.name for template in asked)}.")
    LOG.warning("Node %s: %s", node.uuid, notice)
    return [], f" {notice}"


def _run(engine: Engine, task: Task, run: progress.Run) -> Result:
    """Run a step that was begun, or look at one with which the machine goes on."""
    node, step = task.node, run.step
    ends: list[str | None] = []

    def act() -> None:
        ramdisk = in_band.runner(engine, node, step)
        if ramdisk is not None:
            ends.append(ramdisk.run_in_band(task, step.as_dict()))
            return
        interface = engine.hardware.interface(node, step.interface)
        if progress.is_waiting(node):
            ends.append(interface.continue_step(task, step.step, step.args))
            if ends == [None] and interface.kind == "deploy" and interface.has_in_band_steps:
                in_band.take_in(engine, task)
            return
        if not progress.is_begun_by(node, node.reservation_purpose or ""):
            _check_rerun(engine, node, step)
        ends.append(hardware_steps.execute(interface, task, step.step, step.args))

    if reason := work.attempt(act, task):
        return Result("fail", error=f"Deploy step {run} failed: {reason}")
    if ends == [states.DEPLOYWAIT]:
        history = None if progress.is_waiting(node) else f"Deploy step {run} waits for the machine."
        progress.wait(node)
        return Result("wait", history=history)
    took_s = progress.finish(node, now())
    return Result("next", history=f"Deploy step {run} finished after {took_s:.1f} s.")


def _check_rerun(engine: Engine, node: Node, step: deploy_steps.ScheduledStep) -> None:
    """Refuse to run a step again in which a conductor died, unless it says that it can be.

    :raises IronicRulesError: it does not
    """
    offered = {(info.interface, info.step): info for info in engine.hardware.deploy_steps(node)}
    info = offered.get((step.interface, step.step))
    if info is None or not info.rerunnable:
        raise IronicRulesError("the work was broken off while it was going on, and the step can not be run again. "
                               "Look at the machine, then tear the node down or deploy it again.")
    LOG.warning("Node %s: deploy step %s is run again; its conductor ended while it was going on", node.uuid, step.name)


def clean_up(engine: Engine, task: Task) -> None:
    """Leave a node whose deployment failed: without progress, and without what boots its ramdisk.

    It is switched off, unless ``[deploy]power_off_after_deploy_failure`` is false or the node may not be.
    """
    progress.forget(task.node)
    try:
        if engine.conf.deploy.power_off_after_deploy_failure and not task.node.disable_power_off:
            engine.hardware.interface(task.node, "power").set_power_state(task, states.POWER_OFF)
    finally:
        _undo_boot(engine, task)


def _undo_boot(engine: Engine, task: Task) -> None:
    try:
        engine.hardware.interface(task.node, "deploy").clean_up(task)
    except IronicRulesError as exc:
        LOG.warning("What was prepared for the ramdisk of node %s is left: %s", task.node.uuid, exc)


def time_out(engine: Engine, context: RequestContext, row: Node, before: datetime.datetime) -> None:
    """Fail a node whose machine gave no sign of life since ``before``: ``[conductor]deploy_callback_timeout``."""
    step = row.deploy_step
    name = f" in deploy step {step['interface']}.{step['step']}" if step else ""
    error = (f"Timeout reached while waiting for the machine's call-back{name} "
             f"({engine.conf.conductor.deploy_callback_timeout} seconds, [conductor]deploy_callback_timeout).")
    waiting.time_out(engine, context, row, before, error)
