"""Finding work that nobody does: after this conductor's last life, after another one's death, after a fault."""

from __future__ import annotations

import datetime
import functools

from oslo_log import log as logging

from ironic_rules import context
from ironic_rules.conductor import inspection, work
from ironic_rules.conductor.engine import Engine, now
from ironic_rules.db import conductors, nodes
from ironic_rules.exceptions import NoFreeWorker
from ironic_rules.models import states

LOG = logging.getLogger(__name__)


def resume_orphans(engine: Engine) -> int:
    """Resume every locked node of this group that no living conductor works on; return how many.

    These are nodes locked by a conductor that is dead or gone (taken over first), and nodes with this conductor's own
    lock that none of its threads works on: from its last life, or because saving failed.
    """
    timeout = engine.conf.conductor.heartbeat_timeout
    with engine.db.reader() as conn:
        alive = {row.hostname for row in conductors.alive(conn, timeout)}
        dead = [row.hostname for row in conductors.dead(conn, timeout)]
        locked = nodes.reserved(conn, engine.group)
    not_since = now() - datetime.timedelta(seconds=timeout)
    for hostname in dead:
        if engine.db.write(functools.partial(conductors.mark_dead, hostname=hostname, not_since=not_since)):
            LOG.warning("Conductor %s gave no sign of life for %s seconds; taking over its nodes", hostname, timeout)
    resumed = 0
    for row in locked:
        if row.reservation == engine.host:
            orphaned = not engine.workers.is_active(row.id)
        else:
            orphaned = row.reservation not in alive
        if orphaned and _resume(engine, row.id, row.uuid, row.reservation):
            resumed += 1
    return resumed


def _resume(engine: Engine, node_id: int, node: str, owner: str) -> bool:
    try:
        slot = engine.workers.take(node_id)
    except NoFreeWorker:
        return False  # the next pass finds it again
    with slot:
        if owner != engine.host and not engine.db.write(
                lambda conn: nodes.take_over(conn, node_id, owner, engine.host)):
            return False
        LOG.warning("Resuming the work on node %s that conductor %s left unfinished", node, owner)
        slot.run(work.run, engine, node_id, context.admin())
    return True


def fail_overdue(engine: Engine) -> None:
    """Fail the nodes that have waited too long for their ramdisk."""
    timeout = engine.conf.conductor.inspect_wait_timeout
    if not timeout:
        return
    with engine.db.reader() as conn:
        overdue = nodes.waiting_longer_than(conn, states.INSPECTWAIT, now() - datetime.timedelta(seconds=timeout))
    for row in overdue:
        inspection.time_out(engine, context.admin(), row)
