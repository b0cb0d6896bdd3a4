"""Working on a locked node: from transient state to transient state, until it rests and the lock is released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import tasks
from ironic_rules.conductor.engine import Engine, now
from ironic_rules.conductor.handlers import Handler, Result
from ironic_rules.context import RequestContext
from ironic_rules.db import history, nodes
from ironic_rules.exceptions import IronicRulesError, LockLost, NotFound
from ironic_rules.models import states
from ironic_rules.models.draft import Task

LOG = logging.getLogger(__name__)

#: provision state -> what is done in it; filled by ``ironic_rules.conductor.manager``.
HANDLERS: dict[str, Handler] = {}
#: provision state -> what is done when it fails, on a fresh draft.
CLEAN_UPS: dict[str, Callable[[Engine, Task], None]] = {}


def state_values(transition: states.Transition) -> dict[str, Any]:
    """Return the columns that a transition writes."""
    return {
        "provision_state": transition.state, "target_provision_state": transition.target, "provision_updated_at": now(),
    }


def run(engine: Engine, node_id: int, context: RequestContext) -> None:
    """Work on a node whose lock this conductor holds, until it rests. Ends silently if the lock is lost."""
    try:
        while _step(engine, node_id, context):
            pass
    except (LockLost, NotFound) as exc:
        LOG.warning("Gave up working on node id %s: %s", node_id, exc)


def _step(engine: Engine, node_id: int, context: RequestContext) -> bool:
    """Do what the node's state asks for; say whether there is more to do."""
    with engine.db.reader() as conn:
        row = nodes.get_by_id(conn, node_id)
        if row.reservation != engine.host:
            raise LockLost(node=row.uuid, host=engine.host)
        record = tasks.read(conn, row)
    handler = HANDLERS.get(row.provision_state)
    if handler is None:
        # Whatever took the lock died between two states; the node rests already.
        engine.db.write(lambda conn: nodes.release(conn, node_id, engine.host))
        return False
    task = record.task(context)
    result = _handle(handler, engine, task)
    if result.error is not None:
        task = record.task(context)
        _clean_up(engine, task)
    transition = states.transition(row.provision_state, result.event)
    if transition is None:
        raise IronicRulesError(f"State {row.provision_state} can not end with {result.event}.")
    goes_on = transition.state in states.TRANSIENT

    def store(conn: sa.Connection) -> None:
        values = {**state_values(transition), "last_error": result.error}
        tasks.save(conn, task, engine.host, values, release=not goes_on)
        if result.also is not None:
            result.also(conn)
        if result.history is not None:
            kind = "inspection" if row.provision_state == states.INSPECTING else "provisioning"
            severity = "ERROR" if result.error else "INFO"
            add_history(conn, engine, node_id, kind, result.history, severity, context)

    engine.db.write(store)
    LOG.info("Node %s: %s -> %s%s", row.uuid, row.provision_state, transition.state,
             f" ({result.error})" if result.error else "")
    return goes_on


def _handle(handler: Handler, engine: Engine, task: Task) -> Result:
    try:
        return handler(engine, task)
    except IronicRulesError as exc:
        reason = str(exc)
    except Exception:  # A fault of ours or of a plug-in must end in a state that an operator sees, not in a lock.
        LOG.exception("Unexpected failure in state %s of node %s", task.node.provision_state, task.node.uuid)
        reason = "an unexpected error occurred; the conductor's log has the details"
    error = f"Failed in state \"{task.node.provision_state}\": {reason}"
    return Result("fail", error=error, history=error)


def _clean_up(engine: Engine, task: Task) -> None:
    clean_up = CLEAN_UPS.get(task.node.provision_state)
    if clean_up is None:
        return
    try:
        clean_up(engine, task)
    except IronicRulesError as exc:
        LOG.warning("Cleaning up after the failure of node %s failed too: %s", task.node.uuid, exc)


def add_history(conn: sa.Connection, engine: Engine, node_id: int, event_type: str, event: str, severity: str,
                context: RequestContext) -> None:
    """Write an entry into the node's history and drop the oldest beyond ``[conductor]node_history_max_entries``."""
    keep = engine.conf.conductor.node_history_max_entries
    if keep:
        history.add(conn, node_id, event_type, event, severity, engine.host, context.user_id)
        history.prune(conn, node_id, keep)
