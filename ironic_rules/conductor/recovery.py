"""Finding work that nobody does: after this conductor's last life, after another one's death, after a fault."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules import context
from ironic_rules.conductor import deployment, inspection, state_machine
from ironic_rules.conductor.conductor import Conductor, now
from ironic_rules.context import RequestContext
from ironic_rules.db import conductors, nodes
from ironic_rules.exceptions import NoFreeWorker
from ironic_rules.inspection import discovery
from ironic_rules.models import states
from ironic_rules.models.nodes import Node

LOG = logging.getLogger(__name__)
TimeOut = Callable[[Conductor, RequestContext, Node, datetime.datetime], None]

#: Resumptions of one piece of work. One that ends conductors again and again must not do so for ever.
MAX_RESUMPTIONS = 5
#: Seconds in which an API process hands a discovered node to a conductor, or has died; more than an RPC call takes.
ABANDONED_S = 600


def resume_orphans(conductor: Conductor) -> int:
    """Resume every locked node of this group that no living conductor works on; return how many.

    These are nodes locked by a conductor that is dead or gone (taken over first), and nodes with this conductor's own
    lock that none of its threads works on: from its last life, or because saving failed.
    """
    timeout = conductor.conf.conductor.heartbeat_timeout
    with conductor.db.reader() as conn:
        # In this order: a conductor registers before its first lock, so the owner of each of these is known below.
        locked = nodes.locks(conn, conductor.group)
        alive = _alive(conn, conductor)
        dead = [row.hostname for row in conductors.dead(conn, timeout)]
    not_since = now() - datetime.timedelta(seconds=timeout)
    for hostname in dead:
        if conductor.db.write(functools.partial(conductors.mark_dead, hostname=hostname, not_since=not_since)):
            LOG.warning("Conductor %s gave no sign of life for %s seconds; taking over its nodes", hostname, timeout)
    resumed = 0
    for lock in locked:
        if lock.owner == conductor.host:
            orphaned = not conductor.workers.is_active(lock.node_id)
        else:
            orphaned = lock.owner not in alive
        if orphaned and _resume(conductor, lock):
            resumed += 1
    return resumed


def _alive(conn: sa.Connection, conductor: Conductor) -> set[str]:
    return {row.hostname for row in conductors.alive(conn, conductor.conf.conductor.heartbeat_timeout)}


def _resume(conductor: Conductor, lock: nodes.Lock) -> bool:
    node_id, owner = lock.node_id, lock.owner
    try:
        slot = conductor.workers.take(node_id)
    except NoFreeWorker:
        return False  # the next pass finds it again

    def claim(conn: sa.Connection) -> bool:
        # Much may have happened since the node was found: a thread of this process has finished it and released the
        # lock, or its owner has come back and works on it. With the slot taken, no thread of this process begins to.
        if owner != conductor.host and owner in _alive(conn, conductor):
            return False
        return nodes.take_over(conn, node_id, owner, conductor.host)

    with slot:
        if not conductor.db.write(claim):
            return False
        LOG.warning("Resuming the work on node %s that conductor %s left unfinished", lock.node_uuid, owner)
        slot.run(_work, conductor, node_id)
    return True


def _work(conductor: Conductor, node_id: int) -> None:
    """Go on with a node, and count it; at the beginning, so that what only waits for a thread is not counted."""
    admin = context.admin()
    with state_machine.lock_may_be_lost(node_id):
        if conductor.db.write(lambda conn: nodes.count_resumption(conn, node_id, conductor.host, MAX_RESUMPTIONS)):
            state_machine.run(conductor, node_id, admin)
        else:
            state_machine.give_up(conductor, node_id, admin,
                         f"the work was begun and not finished {MAX_RESUMPTIONS + 1} times; the log of the conductors "
                         "may tell why")


def fail_overdue(conductor: Conductor) -> None:
    """Fail the nodes of this group that have waited too long for their machine; not those in maintenance.

    Discovered nodes whose data no conductor was given go: nobody has heard that they exist.
    """
    discovery.withdraw_abandoned(conductor.db, ABANDONED_S)
    settings = conductor.conf.conductor
    _fail_waiting(conductor, states.INSPECTWAIT, settings.inspect_wait_timeout, inspection.time_out)
    _fail_waiting(conductor, states.DEPLOYWAIT, settings.deploy_callback_timeout, deployment.time_out)


def _fail_waiting(conductor: Conductor, state: str, timeout_s: int, time_out: TimeOut) -> None:
    if not timeout_s:
        return
    before = now() - datetime.timedelta(seconds=timeout_s)
    with conductor.db.reader() as conn:
        overdue = nodes.waiting_longer_than(conn, state, before)
    for row in overdue:
        if row.conductor_group == conductor.group and row.reservation is None and not row.maintenance:
            time_out(conductor, context.admin(), row, before)
