"""Actions on many nodes: each node gets what a request for it alone would do, with the same checks and the same errors.

A conductor that dies after the action and before the result is noted leaves the item to another one. That one sees, by
the mark that the first one left with the node, that nothing is to be done.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import context as contexts
from ironic_rules.conductor import provisioning, pxe_filter, state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import Lane
from ironic_rules.context import Mark, RequestContext
from ironic_rules.db import nodes, operations, outbox
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.operations import Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import IronicRulesError, NodeLocked, NoFreeWorker, RequestRepeated, identified
from ironic_rules.models import node_actions, secrets

LOG = logging.getLogger(__name__)
#: Seconds between two looks whether the process is ending.
_PATIENCE_S = 10


def run(conductor: Conductor, operation: Row, item: Item) -> None:
    """Do one item: act on its node, and note the result. An item of a process that is ending stays unfinished."""
    try:
        _run(conductor, operation, item)
    finally:
        # The thread continues with operations of other users.
        RequestContext(overwrite=False).update_store()


def _run(conductor: Conductor, operation: Row, item: Item) -> None:
    while not conductor.workers.wait_for_room(Lane.OPERATIONS, _PATIENCE_S):
        if conductor.workers.is_stopping:
            return
    context = contexts.admin()
    context.user_id = operation.user
    context.update_store()
    try:
        if operation.kind in node_actions.VERBS:
            with conductor.db.reader() as conn:
                if not operations.is_running(conn, operation.id):
                    return
            _start(conductor, context, operation, item)
            _end(conductor, operation, item, operations.CHANGED)
        else:
            conductor.db.write(lambda conn: _store(conn, conductor, operation, item))
            if operation.kind == node_actions.DELETE:
                pxe_filter.look(conductor, context)
    except DATABASE_AWAY:
        raise
    except (NodeLocked, NoFreeWorker) as exc:
        if item.postponed < operations.MOST_POSTPONED:
            conductor.db.write(lambda conn: operations.postpone(conn, item))
        else:
            _end(conductor, operation, item, operations.FAILED, identified(exc))
    except IronicRulesError as exc:
        _end(conductor, operation, item, operations.FAILED, identified(exc))
    except Exception:  # of an interface; the other nodes are to be done
        LOG.exception("Operation %s (%s) failed on node %s", operation.uuid, operation.kind, item.node_uuid)
        _end(conductor, operation, item, operations.FAILED, state_machine.UNEXPECTED)


def _start(conductor: Conductor, context: RequestContext, operation: Row, item: Item) -> None:
    """Start a transition of the provision state, unless another conductor has done so for this operation."""
    digest = hashlib.blake2b(f"operation {operation.uuid}".encode(), digest_size=32).hexdigest()
    context.mark = Mark(digest, digest)
    try:
        provisioning.change_provision_state(
            conductor, context, item.node_uuid, operation.kind, {}, Lane.OPERATIONS)
    except RequestRepeated:
        LOG.info("Operation %s has done node %s before", operation.uuid, item.node_uuid)


def _store(conn: sa.Connection, conductor: Conductor, operation: Row, item: Item) -> None:
    """Change or delete a node, in the transaction that notes the result.

    :raises NodeNotFound: it was deleted;  NodeLocked: a conductor works on it;  Conflict: it is not possible
    """
    if not operations.begin(conn, operation.id, item, conductor.instance):
        return
    row = nodes.get(conn, item.node_uuid, for_update=True)
    if row.reservation is not None:
        raise NodeLocked(node=row.uuid, host=row.reservation)
    node_actions.check(row, operation.kind, nodes.child_of(conn, row.uuid))
    if operation.kind == node_actions.DELETE:
        outbox.note(conn, "node", "delete", row)
        nodes.destroy(conn, row.id)
    else:
        is_on = operation.kind == node_actions.SET_MAINTENANCE
        changed = nodes.update(conn, row.id, node_actions.maintenance(is_on, operation.filters.get("reason")))
        outbox.note_maintenance(conn, changed, row)
    operations.end(conn, item, operations.CHANGED)


def _end(conductor: Conductor, operation: Row, item: Item, status: str, error: str | None = None) -> None:
    shown = error and secrets.message(error)

    def end(conn: sa.Connection) -> None:
        if operations.begin(conn, operation.id, item, conductor.instance):
            operations.end(conn, item, status, shown)

    conductor.db.write(end)
