"""The loop of every procedure that runs steps: deployment, cleaning, servicing. It resumes what a dead conductor left.

A step takes two passes of :func:`ironic_rules.conductor.state_machine.run`, each one transaction under the node's
lock: the first records that the step has begun; the second executes it and saves what it changed together with the
progress. So a finished step is never repeated, and a step that is recorded as begun when a conductor resumes the node
is one in which another conductor died.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import hardware_cache, state_machine, task_store, wait_states
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, nodes
from ironic_rules.exceptions import (
    AgentChanged,
    IronicRulesError,
    boot_left,
    identified,
    procedure_aborted,
    ramdisk_silent,
    step_failed,
)
from ironic_rules.hardware.waiting import noting_failures
from ironic_rules.models import secrets, states
from ironic_rules.models.internal_keys import BOOT_LEFT
from ironic_rules.models.kept import Kept
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import STEP, Task
from ironic_rules.steps import execution
from ironic_rules.steps import progress as step_progress
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.procedures import CLEANING, DEPLOYMENT, Procedure
from ironic_rules.steps.progress import CurrentStep, Progress

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The plan of a procedure: its steps in order, the names of those that are left out, and a text for the history."""

    steps: Sequence[ScheduledStep]
    left_out: Sequence[str] = ()
    notice: str = ""


#: Decides what a procedure runs when it begins; raises Invalid if that is not possible.
Planner = Callable[[Conductor, Task, Progress], StepPlan]


def advance(conductor: Conductor, task: Task, procedure: Procedure, plan: Planner) -> StateResult:
    """Take the next pass of a procedure. The node stays in its state until no step is left: the event is ``done``."""
    progress = Progress(procedure, task.node)
    if not progress.is_started:
        planned = plan(conductor, task, progress)
        progress.start(planned.steps, planned.left_out)
        return StateResult("next", history=f"The {procedure.noun} begins; steps: "
                                           f"{step_progress.names_of(planned.steps)}.{planned.notice}")
    run = progress.current()
    if run is None:
        progress.forget()
        return StateResult("done", history=f"The {procedure.noun} is finished.")
    if not progress.is_begun:
        if progress.must_abort:
            error = procedure_aborted(
                procedure=procedure.noun, where=", after the end of a step that cannot be aborted")
            return StateResult("fail", error=identified(error))
        progress.begin(run, _lock_id(task.node), clock.now())
        return StateResult("next")
    return _execute(conductor, task, progress, run, plan)


def _execute(conductor: Conductor, task: Task, progress: Progress, run: CurrentStep, plan: Planner) -> StateResult:
    """Execute a step that has begun, or check one that continues on the machine."""
    procedure = progress.procedure
    ends: list[str | None] = []
    restarts: list[StepPlan] = []

    def execute() -> None:
        snapshot = Kept(task, "steps")
        try:
            ends.append(execution.execute(conductor.hardware, task, progress, run.step, _lock_id(task.node)))
        except AgentChanged:
            # As in Ironic: what was requested of the other versions is not repeated, nor what changes again.
            if procedure is not CLEANING or progress.requested() or progress.is_restarted:
                raise
            restarts.append(plan(conductor, task, progress))
        if problem := snapshot.problem():
            raise IronicRulesError(problem)

    name = f"{procedure.name.capitalize()} step {run}"
    task.watch.begin(STEP, _overdue, name)
    reason = state_machine.failure_of(execute, task)
    task.watch.end()
    if reason:
        return StateResult("fail", error=identified(step_failed(step=name, reason=reason)))
    if restarts:
        progress.restart(restarts[0].steps)
        return StateResult("next", history=f"{name}: the agent's hardware managers have changed; the {procedure.noun} "
                                           "begins again.")
    notices = secrets.mask_text("".join(f" Warning: {notice}" for notice in task.notices))
    if ends == [procedure.wait_state]:
        progress.wait()
        return StateResult("wait", history=f"{name}:{notices}" if notices else None)
    hardware_cache.after_step(conductor, task, run.step.as_dict())
    took_s = progress.finish(clock.now())
    if ends == [procedure.hold_state]:
        return StateResult("hold", history=f"{name}: the {procedure.noun} is held until unhold is requested.{notices}")
    return StateResult("next", history=f"{name} finished after {took_s:.1f} s.{notices}")


def clean_up(conductor: Conductor, task: Task, procedure: Procedure, *, power_off: bool) -> None:
    """Remove the progress of a procedure that has failed, and what boots its ramdisk.

    :param power_off: switch the machine off, too. One whose ``disable_power_off`` is set stays in the ramdisk, as in
        Ironic: a reboot would start what a failed step has left on its disks
    :raises IronicRulesError: a part of it is not done; the text says which, and why
    """
    progress = Progress(procedure, task.node)
    # Without a ramdisk, nothing runs on the machine that would have to be stopped.
    deploy = conductor.hardware.interface(task.node, "deploy")
    is_excluded = progress.without_ramdisk
    has_ramdisk = not is_excluded and deploy.runs_ramdisk(procedure)
    progress.forget()
    failures: list[str] = []
    try:
        if power_off and (has_ramdisk or procedure is DEPLOYMENT) and not task.node.disable_power_off:
            with noting_failures("Switching the machine off failed", failures):
                conductor.hardware.interface(task.node, "power").set_power_state(task, states.POWER_OFF)
    finally:
        # Without a ramdisk, the media are those of the running instance.
        if not is_excluded:
            with noting_failures("Undoing its boot (media, boot scripts) failed", failures):
                _undo_boot(conductor, task)
    if failures:
        raise IronicRulesError(" ".join(failures))


def _undo_boot(conductor: Conductor, task: Task) -> None:
    task.node.driver_internal_info[BOOT_LEFT] = True
    conductor.hardware.interface(task.node, "deploy").clean_up(task)
    task.node.driver_internal_info.pop(BOOT_LEFT, None)


def undo_left(conductor: Conductor, lock: nodes.Lock, context: RequestContext) -> None:
    """Remove what a failed procedure has left (``BOOT_LEFT``) from a node that is managed again, and release its lock.

    If that fails again, ``last_error`` says so.
    """
    with state_machine.lock_may_be_lost(lock.node_id):
        with conductor.db.reader() as conn:
            task = task_store.read_locked(conn, lock).task(context)
        reason = state_machine.failure_of(lambda: _undo_boot(conductor, task), task)
        text = None
        if reason is not None:
            text = secrets.message(identified(boot_left(reason=reason)))
            LOG.warning("Node %s: %s", task.node.uuid, text)

        def store(conn: sa.Connection) -> None:
            task_store.save(conn, task, lock, {"last_error": text}, release=True)
            state_machine.add_history(conn, conductor, lock.node_id, "provisioning", text, "ERROR", context)

        conductor.db.write(store)


def _overdue(name: str, reason: str) -> IronicRulesError:
    return step_failed(step=name, reason=reason)


def _lock_id(node: Node) -> str:
    """Return what identifies one run of the work on a node: the purpose of the lock, and the resumption if any."""
    purpose = node.reservation_purpose or ""
    return f"{purpose}, resumed: {node.reservation_resumptions}" if node.reservation_resumptions else purpose


def time_out(conductor: Conductor, context: RequestContext, row: nodes.Overdue, before: datetime.datetime,
             procedure: Procedure) -> None:
    """Fail a node whose machine has sent no heartbeat since ``before``: ``[conductor]deploy_callback_timeout`` etc."""
    option = f"{procedure.name}_callback_timeout"
    step = getattr(row, procedure.step_field)
    name = f" in {procedure.name} step {step['interface']}.{step['step']}" if step else ""
    error = ramdisk_silent(awaited=f"the machine's call-back{name}", seconds=conductor.conf.conductor[option],
                           option=option)
    wait_states.time_out(conductor, context, row, before, error)
