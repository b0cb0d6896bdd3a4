"""Execution of a step: by the interface that declares it, or by the node's ramdisk, which has its own steps.

The ramdisk's steps become known when it runs, and are then added to the remaining steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oslo_log import log as logging

from ironic_rules.exceptions import Invalid, InvalidParameterValue, IronicRulesError
from ironic_rules.models import documents
from ironic_rules.models.internal_keys import STEP_POLL
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.steps import checks, offers, procedures
from ironic_rules.steps.declaration import StepInfo, SteppedInterface, declaration, wrong_arguments
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import Offer
from ironic_rules.steps.procedures import DEPLOYMENT, WAIT_STATES, Procedure
from ironic_rules.steps.progress import Progress

LOG = logging.getLogger(__name__)


class Hardware(Protocol):
    """The hardware that a conductor serves, as far as the execution of steps requires it."""

    def interface(self, node: Node, kind: str) -> Any:
        """Return the interface of ``kind`` that a node uses."""

    def offer(self, node: Node, procedure: Procedure) -> Offer:
        """Return the steps that the node offers for the procedure."""

    def ramdisk_steps(self, task: Task, procedure: Procedure) -> list[StepInfo]:
        """Return the steps that the ramdisk of the node offers for the procedure, now that it runs."""

    def pause(self, task: Task, seconds: float) -> str:
        """Let the node wait before the next step, without a worker; return its wait state."""


def execute(hardware: Hardware, task: Task, progress: Progress, step: ScheduledStep, lock_id: str) -> str | None:
    """Execute the current step, which has begun, or check its progress if the machine continues it.

    :param lock_id: identifies the lock of the conductor that executes it
    :returns: None when it is done, else the state in which the node waits for its machine, or is held after this step
    :raises IronicRulesError: it failed; the text says why
    """
    node, procedure = task.node, progress.procedure
    offer = hardware.offer(node, procedure)
    info = offer.declared(step)
    if info is None and offers.find_reserved(step) is not None:
        return _execute_reserved(hardware, task, progress, step)
    if offer.in_ramdisk and info is None:
        in_band: str | None = hardware.interface(node, "deploy").run_in_band(task, step.as_dict(), procedure)
        return in_band and procedure.wait_state
    interface = hardware.interface(node, step.interface)
    boots = step.key == ("deploy", procedure.boot_step) and offer.in_ramdisk
    if progress.is_waiting:
        ends = _checked(interface.continue_step(task, step.step, step.args), step.name, procedure)
        if ends is None and boots:
            _add_ramdisk_steps(hardware, task, progress, offer)
        return ends
    if not progress.is_begun_by(lock_id):
        _check_rerun(node, offer, step, procedure)
    ends = call(interface, task, step.step, step.args, procedure)
    # With fast track, the ramdisk runs already, and has reported its steps.
    if ends is None and boots and procedure.ramdisk_key in node.driver_internal_info:
        _add_ramdisk_steps(hardware, task, progress, offer)
    return ends


def _execute_reserved(hardware: Hardware, task: Task, progress: Progress, step: ScheduledStep) -> str | None:
    if step.step == offers.HOLD:
        return progress.procedure.hold_state
    seconds = step.args.get("seconds")
    if seconds is None:
        return None if progress.is_waiting else progress.procedure.wait_state
    if not progress.is_waiting:
        return hardware.pause(task, seconds) if seconds else None
    poll = procedures.pending_poll(task.node.driver_internal_info)
    # A heartbeat of the machine comes earlier.
    if poll is not None and not poll.ended:
        return progress.procedure.wait_state
    task.node.driver_internal_info.pop(STEP_POLL, None)
    return None


def call(interface: SteppedInterface, task: Task, step: str, args: Mapping[str, object],
         procedure: Procedure) -> str | None:
    """Call the method that is a step of ``interface``.

    :returns: None when it is done, the procedure's wait state when the machine continues it
    :raises InvalidParameterValue: the interface has no such step, or the step does not accept these arguments
    :raises IronicRulesError: it failed; the text says why
    """
    declared = declaration(type(interface), step, procedure)
    if declared is None:
        raise InvalidParameterValue(f"{interface.kind}.{step}: the node's {interface.kind} interface does not offer "
                                    "this step.")
    if wrong := wrong_arguments(declared.argsinfo, args):
        raise InvalidParameterValue("; ".join(f"{documents.format_pointer(('args', *place))}: {text}" for place,
                                              text in wrong))
    return _checked(getattr(interface, step)(task, **args), f"{interface.kind}.{step}", procedure)


def _checked(ends: str | None, name: str, procedure: Procedure) -> str | None:
    """Return the result of a step, with the procedure's wait state in the place of another one's.

    :raises IronicRulesError: the result is not one of a step
    """
    if ends is None:
        return None
    if ends not in WAIT_STATES:
        raise IronicRulesError(f"{name} returned a state in which a {procedure.name} step cannot end.")
    return procedure.wait_state


def _check_rerun(node: Node, offer: Offer, step: ScheduledStep, procedure: Procedure) -> None:
    """Refuse to run a step again during which a conductor failed, unless it is declared rerunnable.

    :raises IronicRulesError: it is not
    """
    info = offer.find(step)
    if info is None or not info.rerunnable:
        then = "tear the node down or deploy it again" if procedure is DEPLOYMENT else f"repeat the {procedure.noun}"
        raise IronicRulesError(f"the step was interrupted, and it cannot be run again. Check the machine, then {then}.")
    LOG.warning("Node %s: %s step %s is run again; its conductor ended while it was running", node.uuid,
                procedure.name, step.name)


def _add_ramdisk_steps(hardware: Hardware, task: Task, progress: Progress, offer: Offer) -> None:
    """Check the remaining steps against what the ramdisk offers, and add those that it runs by default.

    :raises Invalid: with every step that it does not offer, and the source of the step
    """
    own = {info.key for info in offer.steps}
    additional = [info for info in hardware.ramdisk_steps(task, progress.procedure) if info.key not in own]
    remaining = progress.left()
    if problems := checks.run_problems(Offer((*offer.steps, *additional)),
                                       [step for step in remaining if offer.find(step) is None]):
        raise Invalid("; ".join(problems))
    if progress.procedure is not DEPLOYMENT and progress.requested():
        return  # nothing runs but what was requested
    names = {step.key for step in remaining}
    progress.add([ScheduledStep.by_default(info) for info in additional if info.priority > 0 and info.key not in names])
