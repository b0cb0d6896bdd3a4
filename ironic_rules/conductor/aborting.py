"""``abort``: of what waits for its machine, at once or after a step that cannot be aborted, and of what is held."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.conductor import admission, inspection, wait_states
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.context import RequestContext
from ironic_rules.db import nodes
from ironic_rules.models import states, transitions
from ironic_rules.models.nodes import Node
from ironic_rules.models.task import Task
from ironic_rules.steps import merge, procedures
from ironic_rules.steps.procedures import DEPLOYMENT, Procedure
from ironic_rules.steps.progress import ABORT_AFTER


def abort(conductor: Conductor, context: RequestContext, task: Task) -> None:
    """Begin to abort what the node waits for. A step that cannot be aborted ends first; then the procedure fails.

    :param task: of the node as it was when its state was checked, without a lock
    :raises InvalidState: 400, the node does not wait (any more);  NodeLocked: 409;  NoFreeWorker: 503
    """
    node = task.node
    if node.provision_state == states.INSPECTWAIT:
        inspection.abort(conductor, context, node.id)
        return
    procedure = procedures.of_state(node.provision_state)
    if procedure is not None and _must_end(conductor, task, procedure):
        _abort_after_step(conductor, context, node, procedure)
        return
    wait_states.stop(conductor, context, node.id, node.provision_state, "abort", _text(node))


def finish_abort(conductor: Conductor, context: RequestContext, lock: nodes.Lock) -> None:
    """Finish an ``abort`` that was accepted by a conductor which died before it was done."""
    with conductor.db.reader() as conn:
        row, _ = nodes.get_locked(conn, lock)
    wait_states.finish(conductor, context, lock, "abort", _text(row))


def _must_end(conductor: Conductor, task: Task, procedure: Procedure) -> bool:
    """Return whether the current step continues on the machine and must not be given up."""
    node = task.node
    shown = getattr(node, procedure.step_field)
    if procedure is DEPLOYMENT or node.provision_state != procedure.wait_state or not shown:
        return False
    [step] = merge.requested_steps([shown])
    info = conductor.hardware.offer(node, procedure).find(step) or next(
        (known for known in conductor.hardware.ramdisk_steps(task, procedure) if known.key == step.key), None)
    return info is not None and not info.abortable


def _abort_after_step(conductor: Conductor, context: RequestContext, node: Node, procedure: Procedure) -> None:
    lock = conductor.new_lock(node.id)

    def store(conn: sa.Connection) -> None:
        row = nodes.reserve(conn, lock, "abort after the step")
        admission.admit(conn, context, row.id)
        transitions.of_verb(row, "abort", holder=conductor.host)
        shown = getattr(row, procedure.step_field)
        nodes.release(conn, lock, {procedure.step_field: {**shown, ABORT_AFTER: True}} if shown else {})

    conductor.db.write(store)


def _text(node: Node) -> str:
    procedure = procedures.of_state(node.provision_state)
    if procedure is None:
        return "The rescue was aborted by request."
    step = getattr(node, procedure.step_field)
    where = f" in {procedure.name} step {step['interface']}.{step['step']}" if step else ""
    return f"The {procedure.noun} was aborted by request{where}."
