"""Ending a wait: of a node that rests in INSPECT WAIT or DEPLOYWAIT until its machine gives a sign of life."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import pxe_filter, tasks, work
from ironic_rules.conductor.engine import Engine
from ironic_rules.conductor.workers import PATIENCE_S
from ironic_rules.context import RequestContext
from ironic_rules.db import nodes
from ironic_rules.exceptions import InvalidState, IronicRulesError
from ironic_rules.models import states
from ironic_rules.models.nodes import Node
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)


def stop(engine: Engine, context: RequestContext, node_id: int, state: str, event: str, error: str,
         before: datetime.datetime | None = None) -> None:
    """Begin to end the wait of a node (``abort`` or ``fail``), if it is still waiting in ``state``.

    :param before: only if it has waited since before then
    :raises InvalidState: 400, the node does not wait (any more)
    :raises NodeLocked: 409;  NoFreeWorker: 503
    """
    with engine.workers.take(node_id, PATIENCE_S) as slot:

        def lock(conn: sa.Connection) -> None:
            row = nodes.reserve(conn, node_id, engine.host, event)
            again = before is not None and row.provision_updated_at is not None and row.provision_updated_at > before
            if row.provision_state != state or again:
                raise InvalidState(action=event, node=row.uuid, state=row.provision_state)

        engine.db.write(lock)
        slot.run(finish, engine, context, node_id, event, error)


def finish(engine: Engine, context: RequestContext, node_id: int, event: str, error: str) -> None:
    """End the wait of a node whose lock this conductor holds: clean up as after a failure, and release it."""
    with work.lock_may_be_lost(node_id):
        with engine.db.reader() as conn:
            row = nodes.get_by_id(conn, node_id)
            task = tasks.read(conn, row).task(context)
        transition = states.TRANSITIONS[(row.provision_state, event)]
        if reason := work.clean_up(engine, task):
            # An inspection has more to undo than the power; the reason says which of it failed.
            what = "Cleaning up" if row.provision_state == states.INSPECTWAIT else "Switching the node off"
            error = printable(f"{error} {what} failed: {reason}", MAX_MESSAGE)
        values = {**work.state_values(transition), "last_error": error, "agent_token_hash": None}

        def store(conn: sa.Connection) -> None:
            tasks.save(conn, task, engine.host, values, release=True)
            work.add_history(conn, engine, node_id, work.event_type(row.provision_state), error, "ERROR", context)

        engine.db.write(store)
        pxe_filter.follow(engine, context, task, row.provision_state, transition.state)
        LOG.warning("Node %s: %s", row.uuid, error)


def time_out(engine: Engine, context: RequestContext, row: Node, before: datetime.datetime, error: str) -> None:
    """Fail a node that has waited since before ``before``, unless somebody works on it now."""
    try:
        stop(engine, context, row.id, row.provision_state, "fail", error, before)
    except IronicRulesError as exc:
        LOG.info("The wait of node %s is not ended now: %s", row.uuid, exc)
