"""Acceptance of what ramdisks have sent: when a report is accepted, it will be processed, whatever dies."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.conductor import admission, inspection, notices, pxe_filter, state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import PATIENCE_S, Slot
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, discovery, inventory, nodes
from ironic_rules.exceptions import IronicRulesError, NodeLocked, NodeNotFound, NoFreeWorker
from ironic_rules.metrics.numbers import Stages
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import Report


def accept_report(conductor: Conductor, context: RequestContext, node_id: str | int, data: JSONObject,
                  plugin_data: JSONObject, refusal: str | None = None) -> bool | None:
    """Store a ramdisk's data, move its node to INSPECTING under this conductor's lock, and start processing.

    When this returns, one transaction has committed the data, the state and the lock: even if this conductor dies now,
    the data will be processed. A node in ENROLL is accepted only once, and only if discovery has created it for these
    data.

    :param refusal: why the inspection has to fail; None: the data are processed
    :returns: whether the token whose hash the context has is now that of the ramdisk; None: it has none
    :raises NotFound: the node is not in INSPECT WAIT;  NodeLocked: 409;  NoFreeWorker: 503
    """
    if isinstance(node_id, str):
        with conductor.db.reader() as conn:
            node_id = nodes.get_id(conn, node_id)
    lock = conductor.new_lock(node_id)
    stages = Stages("accept")
    with _slot(conductor, node_id) as slot:
        is_new, report, claimed, record = conductor.db.write(
            lambda conn: _store(conn, lock, context, data, plugin_data, refusal))
        if is_new:
            pxe_filter.look(conductor, context)
        context.mark = context.token_hash = None
        slot.run(state_machine.run, conductor, lock, context, report, record)
    state_machine.observe(conductor, stages)
    return claimed


def _store(conn: sa.Connection, lock: nodes.Lock, context: RequestContext, data: JSONObject, plugin_data: JSONObject,
           refusal: str | None) -> tuple[bool, Report, bool | None, task_store.NodeRecord | None]:
    """Write what :func:`accept_report` promises, and read what the work begins with: two transactions less.

    :returns: whether discovery has just created the node; what is stored; what :func:`accept_report` returns; the node
    """

    def reserve(state: str, event: str, **more: Any) -> None:
        values = state_machine.state_values(states.TRANSITIONS[(state, event)]) | more
        if state == states.INSPECTWAIT:
            # A discovered node which waits for more data has another target.
            del values["target_provision_state"]
        nodes.reserve_in_state(conn, lock, "continue inspection", state, values)

    is_new, before, event = False, states.INSPECTWAIT, "resume"
    try:
        reserve(before, event)
    except NodeNotFound:
        is_new = discovery.accept(conn, lock.node_id)
        if not is_new:
            raise
        before, event = states.ENROLL, "discovered"
        reserve(before, event, inspection_started_at=clock.now(), inspection_finished_at=None)
    notices.accepted(conn, lock.node_id, before, event)
    # The node waits for a report: an equal one that was accepted before belongs to an earlier inspection.
    admission.admit(conn, context, lock.node_id, renew=True)
    stored = inventory.receive(conn, lock.node_id, data, plugin_data, context.request_id, refusal)
    report = Report(stored, data, plugin_data, refusal, *inspection.of_other_machines(conn, lock.node_id, data))
    # Here and not in a transaction of its own: that would cost as much as the whole of this one.
    token_hash = context.token_hash
    claimed = None if token_hash is None else nodes.claim_agent_token(conn, lock.node_id, token_hash)
    return is_new, report, claimed, _record(conn, lock)


def _record(conn: sa.Connection, lock: nodes.Lock) -> task_store.NodeRecord | None:
    """Return the node as its work begins with it; None if a value in it cannot be read."""
    try:
        return task_store.read_locked(conn, lock)
    except (IronicRulesError, db_exc.DBError, sa.exc.SQLAlchemyError):
        raise
    except Exception:  # noqa: BLE001  (the work meets it again, and fails for that reason; the data are stored)
        return None


def _slot(conductor: Conductor, node_id: int) -> Slot:
    """Return a slot for work on the node.

    :raises NodeLocked: 409, this conductor works on the node itself;  NoFreeWorker: 503
    """
    try:
        return conductor.workers.take(node_id, PATIENCE_S)
    except NoFreeWorker:
        with conductor.db.reader() as conn:
            row = nodes.get_by_id(conn, node_id)
        if row.reservation is None:
            raise
        raise NodeLocked(node=row.uuid, host=row.reservation) from None
