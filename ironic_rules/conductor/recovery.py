"""Resuming work that was interrupted: by a restart of this conductor, the death of another one, or a fault."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_log import log as logging

from ironic_rules import context
from ironic_rules.conductor import inspection, state_machine, step_loop, workflows
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import Lane
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, conductors, nodes
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.exceptions import NoFreeWorker
from ironic_rules.inspection import discovery
from ironic_rules.models import states
from ironic_rules.steps import procedures

LOG = logging.getLogger(__name__)
TimeOut = Callable[[Conductor, RequestContext, nodes.Overdue, datetime.datetime], None]

#: Maximum number of resumptions of one piece of work. Work that kills conductors must come to an end.
MAX_RESUMPTIONS = 5
#: Overdue nodes that are read at once.
_PAGE = 100
#: Seconds after which an API process has handed a discovered node to a conductor or died; longer than an RPC call.
ABANDONED_S = 600


def resume_orphans(conductor: Conductor) -> int:
    """Resume every locked node of this group that no live conductor works on; return how many.

    The nodes are locked by a conductor that is dead or unregistered (their locks are taken over first), or are nodes
    with this conductor's own lock that none of its threads works on: from before its restart, or as saving failed.
    """
    timeout = conductor.conf.conductor.heartbeat_timeout
    _end_stalled_sessions(conductor)
    with conductor.db.reader() as conn:
        # In this order: a conductor registers before its first lock, so the owner of each of these is known below.
        locked = nodes.locks(conn, conductor.group)
        alive = _alive(conn, conductor)
        dead = [row.hostname for row in conductors.dead(conn, timeout)]
    conductor.lock_ages.note(held.lock for held in locked)
    for hostname in dead:
        if conductor.db.write(functools.partial(conductors.mark_dead, hostname=hostname, timeout_s=timeout)):
            conductor.numbers.count("dead_conductors")
            LOG.warning("Conductor %s has sent no heartbeat for %s seconds; taking over its nodes", hostname, timeout)
    resumed = 0
    for held in locked:
        if held.lock.host == conductor.host:
            orphaned = not conductor.workers.is_active(held.lock.node_id)
        else:
            orphaned = held.lock.host not in alive
        if orphaned and _resume(conductor, held):
            resumed += 1
    return resumed


def _end_stalled_sessions(conductor: Conductor) -> None:
    try:
        options = conductor.conf.database
        # Connections to a pooler follow the pooler's settings.
        silent_s = 0 if options.transaction_pooling else options.idle_transaction_timeout
        ended = conductors.end_stalled_sessions(conductor.db, silent_s)
    except DATABASE_AWAY:
        raise
    except db_exc.DBError as exc:  # nodes without such a session are resumed in any case
        LOG.warning("The sessions of the database cannot be read: %s", exc)
        return
    if ended:
        LOG.warning("Ended %d sessions of the database whose clients had sent a part of a statement and nothing since; "
                    "they may have kept locks", ended)


def _alive(conn: sa.Connection, conductor: Conductor) -> set[str]:
    return {row.hostname for row in conductors.alive(conn, conductor.conf.conductor.heartbeat_timeout)}


def _resume(conductor: Conductor, held: nodes.Held) -> bool:
    old = held.lock
    new = conductor.new_lock(old.node_id)
    try:
        slot = conductor.workers.take(old.node_id, lane=Lane.RECOVERY)
    except NoFreeWorker:
        return False  # the next pass finds it again

    def claim(conn: sa.Connection) -> bool:
        # Since the node was found, a thread of this process may have finished the work and released the lock, or the
        # owner of the lock may have come back. As the slot is taken, no thread of this process can begin now.
        if old.host != conductor.host and old.host in _alive(conn, conductor):
            return False
        # A process that was stopped for a while may not know that another one has its name and its nodes now.
        if not conductors.is_registered(conn, conductor.host, conductor.instance):
            return False
        # Other nodes do not wait for this one; the next pass finds it again.
        return nodes.is_lockable(conn, old.node_id) and nodes.take_over(conn, old, new)

    with slot:
        if not conductor.db.write(claim):
            return False
        LOG.warning("Resuming the work on node %s that conductor %s left unfinished", held.node_uuid, old.host)
        slot.run(_work, conductor, new)
    return True


def _work(conductor: Conductor, lock: nodes.Lock) -> None:
    """Continue the work on a node, and count the resumption: here, so that waiting for a thread does not count."""
    admin = context.admin()
    admin.update_store()
    with state_machine.lock_may_be_lost(lock.node_id):
        resumptions = conductor.db.write(lambda conn: nodes.count_resumption(conn, lock, MAX_RESUMPTIONS))
        conductor.numbers.count("recoveries", "given up" if resumptions is None else "resumed")
        if resumptions is None:
            state_machine.give_up(conductor, lock, admin,
                         f"the work was begun and not finished {MAX_RESUMPTIONS + 1} times; the log of the conductors "
                         "may tell why")
            return
        try:
            state_machine.run(conductor, lock, admin)
        except DATABASE_AWAY:
            raise
        except Exception as exc:  # of a plug-in or of the database; its cause may be of the moment
            if resumptions < MAX_RESUMPTIONS:
                raise
            LOG.exception("Giving up the work on node id %s, resumed %s times", lock.node_id, resumptions)
            conductor.numbers.count("recoveries", "given up")
            state_machine.give_up(conductor, lock, admin, state_machine.reason_of(exc))


def fail_overdue(conductor: Conductor) -> None:
    """Fail the nodes of this group that have waited too long for their machine; not those in maintenance.

    Discovered nodes whose data were never handed to a conductor are deleted: no client knows of them. So are, if that
    is configured, those that no operator has claimed for too long.
    """
    discovery.withdraw_abandoned(conductor.db, ABANDONED_S)
    discovery.remove_unclaimed(conductor.db, conductor.conf.auto_discovery.unclaimed_timeout)
    options = conductor.conf.conductor
    _fail_waiting(conductor, states.INSPECTWAIT, options.inspect_wait_timeout, inspection.time_out)
    for procedure in procedures.ALL:
        _fail_waiting(conductor, procedure.wait_state, options[f"{procedure.name}_callback_timeout"],
                      functools.partial(step_loop.time_out, procedure=procedure))
    _fail_waiting(conductor, states.RESCUEWAIT, options.rescue_callback_timeout, workflows.time_out_rescue)


def _fail_waiting(conductor: Conductor, state: str, timeout_s: int, time_out: TimeOut) -> None:
    if not timeout_s:
        return
    before = clock.now() - datetime.timedelta(seconds=timeout_s)
    last = None
    while page := _overdue(conductor, state, before, last):
        for last in page:
            # Polls of hardware have their own time-outs. After one that has ended, a ramdisk is waited for.
            poll = procedures.pending_poll(last.driver_internal_info)
            if poll is not None and not poll.ended:
                continue
            # The locks of the nodes are taken only when their turn comes soon; the next pass finds the others.
            if not conductor.workers.wait_for_room(Lane.TIMEOUTS, conductor.conf.conductor.recovery_interval):
                return
            time_out(conductor, context.admin(), last, before)


def _overdue(conductor: Conductor, state: str, before: datetime.datetime,
             last: nodes.Overdue | None) -> list[nodes.Overdue]:
    with conductor.db.reader() as conn:
        return nodes.overdue(conn, conductor.group, state, before, _PAGE, last)
