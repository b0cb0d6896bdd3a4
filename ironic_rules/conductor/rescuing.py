"""Rescuing a machine, and booting its instance again."""

from __future__ import annotations

import datetime

from ironic_rules.conductor import wait_states
from ironic_rules.conductor.conductor import Conductor, StateResult
from ironic_rules.context import RequestContext
from ironic_rules.db import nodes
from ironic_rules.models.internal_keys import AGENT_URL, RESCUE_BOOTED
from ironic_rules.models.task import Task

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


def clean_up(conductor: Conductor, task: Task) -> None:
    """Stop the rescue system after a failure."""
    task.node.driver_internal_info.pop(RESCUE_BOOTED, None)
    conductor.hardware.interface(task.node, "rescue").clean_up(task)


def unrescue(conductor: Conductor, task: Task) -> StateResult:
    """UNRESCUING: boot the instance again; the password of the rescue system is no longer needed."""
    conductor.hardware.interface(task.node, "rescue").unrescue(task)
    task.node.instance_info.pop(PASSWORD, None)
    return StateResult("done")


def time_out(conductor: Conductor, context: RequestContext, row: nodes.Overdue, before: datetime.datetime) -> None:
    """Fail a node whose rescue system has not called back since ``before``: ``[conductor]rescue_callback_timeout``."""
    error = ("Timeout reached while waiting for the call-back of the rescue system "
             f"({conductor.conf.conductor.rescue_callback_timeout} seconds, [conductor]rescue_callback_timeout).")
    wait_states.time_out(conductor, context, row, before, error)


def columns(internal: dict[str, object]) -> dict[str, object]:
    """Return the columns of a node for which a rescue is requested."""
    return {"driver_internal_info": {
        key: value for key, value in internal.items() if key not in (RESCUE_BOOTED, AGENT_URL)}}
