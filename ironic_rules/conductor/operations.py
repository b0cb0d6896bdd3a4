"""Operations on many nodes: conductors claim a few nodes at a time, and do each of them in one transaction.

A kind of operation is a function that works on one node in the connection of that transaction, and returns whether it
has changed anything. Its errors are the result of that node; the others are done nevertheless. Kinds whose work takes
longer than a transaction should take the node's lock, in workers, a few nodes at the same time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import bulk, facts, legacy_rules, node_actions, state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import Lane
from ironic_rules.db import conductors, nodes, operations
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.operations import Item
from ironic_rules.db.projection import Row
from ironic_rules.exceptions import IronicRulesError, NodeLocked, NodeNotFound, NoFreeWorker, identified
from ironic_rules.models import secrets
from ironic_rules.models.node_actions import ACTIONS
from ironic_rules.models.resources import FIND_FACTS, REAPPLY

LOG = logging.getLogger(__name__)

Kind = Callable[[sa.Connection, Conductor, Row, Item], bool]
#: Work on a node, by the kind of the operation.
KINDS: Mapping[str, Kind] = {legacy_rules.KIND: legacy_rules.clean_values}
#: Takes the node's lock, and notes the result itself; called in a worker.
LockingKind = Callable[[Conductor, Row, Item, nodes.Lock], None]
LOCKING_KINDS: Mapping[str, LockingKind] = {REAPPLY: bulk.run_reapply}
#: Does the nodes that were claimed together, in one transaction.
TOGETHER_KINDS: Mapping[str, Callable[[Conductor, Row, Sequence[Item]], None]] = {FIND_FACTS: facts.find}
#: Nodes that are claimed at once: as many wait for the end of the lease if this process dies. Nodes of a dry run are
#: fast, and people read their results.
_BATCH = 20
_DRY_BATCH = 100
#: Nodes whose facts one transaction finds; an inspection of such a node waits for the transaction before it can end.
_TOGETHER_BATCH = 200
#: Nodes of one operation that one pass does at most, so that it ends soon, and other operations have their turn.
_MOST = 1000
#: Seconds between two looks whether the process is ending.
_PATIENCE_S = 10


def work(conductor: Conductor) -> int:
    """Do a part of each operation that has not ended; return the number of nodes."""
    conductor.db.write(operations.settle)
    with conductor.db.reader() as conn:
        running = operations.running(conn)
    return sum(_work_on(conductor, operation) for operation in running
               if operation.kind in {*KINDS, *LOCKING_KINDS, *TOGETHER_KINDS, *ACTIONS})


def _work_on(conductor: Conductor, operation: Row) -> int:
    count = 0
    # Conductors of the node's group have its hooks, rules and hardware types.
    group = conductor.group if operation.kind in {*LOCKING_KINDS, *ACTIONS} else None
    is_dry = operation.kind == REAPPLY and bool(operation.filters.get("dry_run"))
    is_together = operation.kind in TOGETHER_KINDS
    batch = _DRY_BATCH if is_dry else _TOGETHER_BATCH if is_together else _BATCH
    while count < _MOST:
        claimed = conductor.db.write(functools.partial(_claim, conductor, operation, batch, group))
        if not claimed:
            if conductor.db.write(lambda conn: operations.finish(conn, operation.id)):
                LOG.info("Operation %s (%s) has ended", operation.uuid, operation.kind)
            break
        if is_dry:
            _do_together(conductor, operation, claimed)
        elif is_together:
            TOGETHER_KINDS[operation.kind](conductor, operation, claimed)
        elif operation.kind in LOCKING_KINDS:
            _do_in_workers(conductor, operation, claimed)
        elif operation.kind in ACTIONS:
            for item in claimed:
                node_actions.run(conductor, operation, item)
        else:
            for item in claimed:
                _do(conductor, operation, item)
        count += len(claimed)
    return count


def _claim(conductor: Conductor, operation: Row, most: int, group: str | None, conn: sa.Connection) -> list[Item]:
    living = conductors.living_hosts(conn, conductor.conf.conductor.heartbeat_timeout)
    return operations.claim(conn, operation.id, conductor.instance, most, group=group,
                            alive={conductor.instance, *(row.instance for row in living)})


def _do(conductor: Conductor, operation: Row, item: Item) -> None:
    """Work on a node, and note the result in the same transaction; a failure is noted in one of its own."""

    def attempt(conn: sa.Connection) -> None:
        if operations.begin(conn, operation.id, item, conductor.instance):
            changed = KINDS[operation.kind](conn, conductor, operation, item)
            operations.end(conn, item, operations.CHANGED if changed else operations.UNCHANGED)

    try:
        conductor.db.write(attempt)
        return
    except DATABASE_AWAY:
        raise
    except IronicRulesError as exc:
        reason = identified(exc)
    except Exception:  # one node must not keep the others from being done
        LOG.exception("Operation %s failed on node %s", operation.uuid, item.node_uuid)
        reason = state_machine.UNEXPECTED
    _fail(conductor, operation, item, reason)


def _fail(conductor: Conductor, operation: Row, item: Item, reason: str) -> None:
    def fail(conn: sa.Connection) -> None:
        if operations.begin(conn, operation.id, item, conductor.instance):
            operations.end(conn, item, operations.FAILED, secrets.message(reason))

    conductor.db.write(fail)


def _do_together(conductor: Conductor, operation: Row, claimed: Sequence[Item]) -> None:
    """Do the dry runs of nodes in one worker of this process, and return when they have ended."""
    workers = conductor.workers
    while not workers.wait_for_room(Lane.OPERATIONS, _PATIENCE_S):
        if workers.is_stopping:
            return
    # Not the number of a node: none is locked.
    workers.take(-claimed[0].id, lane=Lane.OPERATIONS).run(bulk.run_dry_runs, conductor, operation, claimed)
    workers.wait_for_end(Lane.OPERATIONS)


def _do_in_workers(conductor: Conductor, operation: Row, claimed: Sequence[Item]) -> None:
    """Work on nodes in workers of this process, and return when all of that has ended."""
    workers, kind = conductor.workers, LOCKING_KINDS[operation.kind]
    with conductor.db.reader() as conn:
        node_ids = nodes.ids(conn, [item.node_uuid for item in claimed])
    for item in claimed:
        node_id = node_ids.get(item.node_uuid)
        if node_id is None:
            _fail(conductor, operation, item, identified(NodeNotFound(node=item.node_uuid)))
            continue
        while not workers.wait_for_room(Lane.OPERATIONS, _PATIENCE_S):
            if workers.is_stopping:
                return
        try:
            slot = workers.take(node_id, lane=Lane.OPERATIONS)
        except NoFreeWorker:  # this process works on the node already
            if item.postponed < operations.MOST_POSTPONED:
                conductor.db.write(functools.partial(operations.postpone, item=item))
            else:
                _fail(conductor, operation, item, identified(NodeLocked(node=item.node_uuid, host=conductor.host)))
            continue
        slot.run(kind, conductor, operation, item, conductor.new_lock(node_id))
    workers.wait_for_end(Lane.OPERATIONS)
