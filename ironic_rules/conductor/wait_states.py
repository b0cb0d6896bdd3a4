"""Ending the wait of a node for its ramdisk, or for a person where a procedure is held."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import admission, notices, power_states, pxe_filter, state_machine, task_store
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import PATIENCE_S, Lane
from ironic_rules.context import RequestContext
from ironic_rules.db import nodes
from ironic_rules.exceptions import IronicRulesError, NodeLocked, invalid_state
from ironic_rules.hardware.boot import access_log
from ironic_rules.models import secrets, states
from ironic_rules.models.inspections import ABORTED, TIMED_OUT
from ironic_rules.models.task import Task
from ironic_rules.text import MAX_MESSAGE, printable

LOG = logging.getLogger(__name__)


def stop(conductor: Conductor, context: RequestContext, node_id: int, state: str, event: str, error: IronicRulesError,
         before: datetime.datetime | None = None, lane: Lane = Lane.REQUESTS) -> None:
    """Begin to end the wait of a node (``abort`` or ``fail``), if it is still waiting in ``state``.

    :param before: only if it has waited since before then
    :param lane: whose workers end it
    :raises invalid_state: 400, the node does not wait (any more)
    :raises NodeLocked: 409;  NoFreeWorker: 503
    """
    lock = conductor.new_lock(node_id)
    with conductor.workers.take(node_id, PATIENCE_S, lane) as slot:

        def reserve(conn: sa.Connection) -> None:
            # A request for one node waits for its row; a pass over many nodes finds it again later.
            if lane is Lane.TIMEOUTS and not nodes.is_lockable(conn, node_id):
                raise NodeLocked(node=node_id, host="an unfinished transaction of the database")
            row = nodes.reserve(conn, lock, event)
            admission.admit(conn, context, node_id)
            again = before is not None and row.provision_updated_at is not None and row.provision_updated_at > before
            if row.provision_state != state or again:
                raise invalid_state(action=event, node=row.uuid, state=row.provision_state)

        conductor.db.write(reserve)
        slot.run(finish, conductor, context, lock, event, error)


def finish(conductor: Conductor, context: RequestContext, lock: nodes.Lock, event: str,
           reason: IronicRulesError) -> None:
    """End the wait of a node whose lock is held: clean up as after a failure, and release it."""
    context.update_store()
    with state_machine.lock_may_be_lost(lock.node_id):
        with conductor.db.reader() as conn:
            record = task_store.read_locked(conn, lock)
        row, task = record.node, record.task(context)
        known = f" {_known(conductor, task)}" if event == "fail" else ""
        error = secrets.message(f"{reason}{known} ({reason.message_id})")
        transition = states.after_event(row, event) or states.TRANSITIONS[(row.provision_state, event)]
        if failure := state_machine.clean_up(conductor, task):
            error = secrets.message(f"{error} Cleaning up failed: {failure}")
        values = {**state_machine.state_values(transition), "last_error": error, "agent_token_hash": None}

        def store(conn: sa.Connection) -> None:
            task_store.save(conn, task, lock, values, release=True)
            notices.provision(conn, row, event)
            event_type = state_machine.event_type(row.provision_state)
            inspection = None
            if row.provision_state == states.INSPECTWAIT:
                outcome = ABORTED if event == "abort" else TIMED_OUT
                inspection = state_machine.add_inspection(conn, conductor, row, context, None, error, outcome)
            state_machine.add_history(conn, conductor, row.id, event_type, error, "ERROR", context, inspection)
            if (on_failure := conductor.work_in(row.provision_state).on_failure) is not None:
                on_failure(conn, conductor, row.id)

        conductor.db.write(store)
        if row.provision_state == states.INSPECTWAIT:
            conductor.numbers.count("inspections", "aborted" if event == "abort" else "timed out", "wait")
        pxe_filter.follow(conductor, context, task, row.provision_state, transition.state)
        LOG.warning("Node %s: %s", row.uuid, error)


def _known(conductor: Conductor, task: Task) -> str:
    """Return what is known of a machine that was waited for too long. Its BMC is asked, once."""
    try:
        sentences = [f"Its power state is '{power_states.ask(conductor, task)}'."]
    except IronicRulesError as exc:
        sentences = [f"Its power state cannot be read: {printable(secrets.mask_text(str(exc)), MAX_MESSAGE)}"]
    if requested := _requested(conductor, task):
        sentences.append(requested)
    is_seen = task.node.agent_token_hash is not None
    sentences.append("A ramdisk has looked the node up." if is_seen else "No ramdisk has looked the node up.")
    refused = pxe_filter.not_served(conductor, task)
    if refused is not None:
        sentences.append(f"The DHCP server does not serve {', '.join(refused)}." if refused
                         else "The DHCP server serves its addresses.")
    return " ".join(sentences)


def _requested(conductor: Conductor, task: Task) -> str:
    """Return what the web server's log says of the machine's boot; empty if it says nothing."""
    try:
        files = conductor.hardware.interface(task.node, "boot").ramdisk_files(task)
    except IronicRulesError as exc:
        LOG.info("What node %s loads to boot is not known: %s", task.node.uuid, exc)
        return ""
    return "" if files is None else access_log.tell(conductor.conf, files)


def time_out(conductor: Conductor, context: RequestContext, row: nodes.Overdue, before: datetime.datetime,
             error: IronicRulesError) -> None:
    """Fail a node that has waited since before ``before``, unless it is locked now."""
    try:
        stop(conductor, context, row.id, row.provision_state, "fail", error, before, Lane.TIMEOUTS)
    except IronicRulesError as exc:
        LOG.info("The wait of node %s is not ended now: %s", row.uuid, exc)
