"""Execution of a step: by the interface that declares it, or by the node's ramdisk, which has its own steps.

The ramdisk's steps become known when it runs, and are then added to the remaining steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oslo_log import log as logging

from ironic_rules.exceptions import Invalid, InvalidParameterValue, IronicRulesError
from ironic_rules.models import pointer
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.steps import checks
from ironic_rules.steps.arguments import wrong_arguments
from ironic_rules.steps.declaration import Interface, StepInfo, declaration
from ironic_rules.steps.merge import ScheduledStep
from ironic_rules.steps.offers import Offer
from ironic_rules.steps.procedures import Procedure
from ironic_rules.steps.progress import Progress

LOG = logging.getLogger(__name__)


class Hardware(Protocol):
    """What executing steps requires of the hardware that a conductor serves."""

    def interface(self, node: Node, kind: str) -> Any:
        """Return the interface of ``kind`` that a node uses."""

    def offer(self, node: Node) -> Offer:
        """Return the steps that the node offers."""

    def ramdisk_steps(self, task: Task) -> list[StepInfo]:
        """Return the steps that the ramdisk of the node offers, now that it runs."""


def execute(hardware: Hardware, task: Task, progress: Progress, step: ScheduledStep, lock: str) -> str | None:
    """Execute the current step, which has begun, or check its progress if the machine continues it.

    :param lock: of the conductor that executes it
    :returns: None when it is done, else the state in which the node waits for its machine
    :raises IronicRulesError: it failed; the text says why
    """
    node = task.node
    offer = hardware.offer(node)
    if offer.in_ramdisk and offer.find(step) is None:
        in_band: str | None = hardware.interface(node, "deploy").run_in_band(task, step.as_dict())
        return in_band
    interface = hardware.interface(node, step.interface)
    if progress.is_waiting:
        ends: str | None = interface.continue_step(task, step.step, step.args)
        if ends is None and interface.kind == "deploy" and offer.in_ramdisk:
            _take_in(hardware, task, progress, offer)
        return ends
    if not progress.is_begun_by(lock):
        _check_rerun(node, offer, step)
    return call(interface, task, step.step, step.args, progress.procedure)


def call(interface: Interface, task: Task, step: str, args: Mapping[str, Any], procedure: Procedure) -> str | None:
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
        raise InvalidParameterValue("; ".join(f"{pointer.format(('args', *place))}: {text}" for place, text in wrong))
    ends: str | None = getattr(interface, step)(task, **args)
    if ends not in (None, procedure.wait_state):
        raise IronicRulesError(f"{interface.kind}.{step} returned a state in which a {procedure.name} step cannot end.")
    return ends


def _check_rerun(node: Node, offer: Offer, step: ScheduledStep) -> None:
    """Refuse to run a step again during which a conductor failed, unless it is declared rerunnable.

    :raises IronicRulesError: it is not
    """
    info = offer.find(step)
    if info is None or not info.rerunnable:
        raise IronicRulesError("the step was interrupted, and it cannot be run again. "
                               "Check the machine, then tear the node down or deploy it again.")
    LOG.warning("Node %s: deploy step %s is run again; its conductor ended while it was running", node.uuid, step.name)


def _take_in(hardware: Hardware, task: Task, progress: Progress, offer: Offer) -> None:
    """Check the remaining steps against what the ramdisk offers, and add those that it runs by default.

    :raises Invalid: with every step that it does not offer, and the source of the step
    """
    found = [info for info in hardware.ramdisk_steps(task) if info.key not in {own.key for own in offer.steps}]
    asked = progress.left()
    if problems := checks.run_problems(Offer((*offer.steps, *found)),
                                       [step for step in asked if offer.find(step) is None]):
        raise Invalid("; ".join(problems))
    names = {step.key for step in asked}
    progress.add([ScheduledStep.by_default(info) for info in found if info.priority > 0 and info.key not in names])
