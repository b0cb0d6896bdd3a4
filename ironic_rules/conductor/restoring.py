"""A database that was restored from a backup: its machines have changed since, and nothing in it says how.

A conductor would continue the work that the backup shows as begun: boot a machine once more, and clean or deploy one
that may have an instance by now. So nothing of it is continued, and nothing new is begun, before an operator has
looked.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from ironic_rules.conductor import notices
from ironic_rules.db import clock, node_records, outbox
from ironic_rules.db import nodes as db_nodes
from ironic_rules.db import operations as stored_operations
from ironic_rules.db.errors import refusals
from ironic_rules.db.session import Database
from ironic_rules.db.tables import conductors, nodes, operations, processes, revisions
from ironic_rules.exceptions import ConfigurationError, identified, not_continued
from ironic_rules.models import internal_keys, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.node_actions import ACTIONS
from ironic_rules.models.nodes import CAUSE
from ironic_rules.models.resources import REAPPLY
from ironic_rules.steps import procedures
from ironic_rules.text import enumeration

REASON = "The database was restored from a backup: compare the machine with this record, then unset maintenance."
#: Type of the entry in the history of a node.
EVENT = "restore"
#: Number that is added to the revisions of sets: since the backup, clients may have seen that many.
STEP = 1_000_000
_COUNTED = ("inspection_rules", "legacy_rules", "facts")
_PAGE = 500
_UNLOCKED: Mapping[str, object] = {
    "reservation": None, "reservation_token": None, "reservation_purpose": None, "reservation_resumptions": 0,
    "reserved_at": None}


class Settled(NamedTuple):
    """A node that was changed: its UUID, its state before and after, and whether it was put into maintenance."""

    uuid: str
    before: str
    after: str
    maintenance: bool


def settle(db: Database, timeout_s: float) -> list[Settled]:
    """End what the backup shows as begun, without any request to a machine. May be repeated.

    Nodes that a conductor worked on, or that waited for their ramdisk, are in the failed state of what was begun.
    They are put into maintenance, as are available nodes, which may have instances; their agents have no tokens any
    more. Actions on many nodes are cancelled. No conductor is registered, and revisions of sets continue with higher
    numbers, so that no tag that a client has got since the backup fits another set.

    :param timeout_s: after this time without a heartbeat, a process is dead
    :raises ConfigurationError: a process is alive: what it has read is from before
    """
    with refusals(), db.reader() as conn:
        since = clock.ago(conn, timeout_s)
        alive = [*conn.scalars(sa.select(processes.c.hostname).where(processes.c.updated_at >= since)),
                 *conn.scalars(sa.select(conductors.c.hostname).where(
                     conductors.c.online.is_(True), conductors.c.updated_at >= since))]
    if alive:
        raise ConfigurationError(
            f"Processes of the service have reported themselves in the last {timeout_s:g} seconds, on "
            f"{enumeration(sorted(set(alive)))}: stop them if they run, wait that long, and run the command again. "
            "Nothing was changed.")
    db.write(_forget_processes)
    db.write(_cancel_actions)
    all_settled: list[Settled] = []
    last = 0
    while page := _page(db, last):
        last = page[-1]
        for node_id in page:
            if (settled := db.write(functools.partial(_settle, node_id=node_id))) is not None:
                all_settled.append(settled)
    return all_settled


def _forget_processes(conn: sa.Connection) -> None:
    conn.execute(sa.update(conductors).values(online=False))
    conn.execute(sa.delete(processes))
    counted = sa.update(revisions).where(revisions.c.name.in_(_COUNTED))
    conn.execute(counted.values(revision=revisions.c.revision + STEP))


def _cancel_actions(conn: sa.Connection) -> None:
    query = sa.select(operations.c.id).where(
        operations.c.status == stored_operations.RUNNING, operations.c.kind.in_([*ACTIONS, REAPPLY]))
    for operation_id in conn.scalars(query).all():
        stored_operations.cancel(conn, operation_id)


def _page(db: Database, last: int) -> list[int]:
    unsettled = sa.or_(
        nodes.c.provision_state.in_(sorted(states.TRANSIENT | states.WAITING | states.HOLDING)),
        nodes.c.reservation.is_not(None),
        sa.and_(nodes.c.provision_state == states.AVAILABLE, nodes.c.maintenance.is_(False)))
    with db.reader() as conn:
        return list(conn.scalars(sa.select(nodes.c.id).where(nodes.c.id > last, unsettled).order_by(
            nodes.c.id).limit(_PAGE)))


def _settle(conn: sa.Connection, node_id: int) -> Settled | None:
    row = conn.execute(sa.select(nodes).where(nodes.c.id == node_id).with_for_update()).one_or_none()
    if row is None:
        return None
    ended = _ended(row.provision_state)
    values: JSONObject = {**_UNLOCKED, "target_power_state": None, "updated_at": clock.now(),
                          "revision": row.revision + 1}
    begun = ended is not None or row.reservation is not None
    if ended is not None:
        internal = {name: value for name, value in row.driver_internal_info.items() if name not in _OF_WORK}
        for procedure in procedures.ALL:
            internal = procedure.without_progress(internal)
        values |= {"agent_token_hash": None, "driver_internal_info": internal, "provision_state": ended.state,
                   "target_provision_state": ended.target, "provision_updated_at": clock.now(),
                   "inspection_started_at": None, "clean_step": {}, "deploy_step": {}, "service_step": {},
                   **dict.fromkeys(CAUSE),
                   "last_error": identified(not_continued(state=row.provision_state, reason=REASON))}
    is_new = not row.maintenance and (begun or row.provision_state == states.AVAILABLE)
    if is_new:
        values |= {"maintenance": True, "maintenance_reason": REASON}
    conn.execute(sa.update(nodes).where(nodes.c.id == node_id).values(values))
    if ended is not None:
        notices.provision(conn, row, "abort" if row.provision_state in states.HOLDING else "fail")
    if is_new:
        outbox.note_maintenance(conn, db_nodes.get_by_id(conn, node_id), row)
    if ended is not None or is_new:
        node_records.add_history(conn, node_id, EVENT, str(values.get("last_error", REASON)), "INFO", None)
    return Settled(row.uuid, row.provision_state, ended.state if ended else row.provision_state, is_new)


def _ended(state: str) -> states.Transition | None:
    """Return what a state that passes ends with, if nothing continues it."""
    if state in states.HOLDING:
        return states.transition(state, "abort")
    return states.transition(state, "fail") if state in states.TRANSIENT | states.WAITING else None


#: Keys of driver_internal_info that only what was begun needs, or a ramdisk that may have ended.
_OF_WORK = internal_keys.AGENT_ADDRESS | {
    internal_keys.AGENT_STAYS, internal_keys.AGENT_LAST_COMMAND, internal_keys.AGENT_COMMAND_STARTED,
    internal_keys.AGENT_REBOOTS, internal_keys.AGENT_SILENT_SINCE, internal_keys.AGENT_LAST_HEARTBEAT,
    internal_keys.WAITS_FOR_MORE, internal_keys.RESCUE_BOOTED, internal_keys.STEP_POLL}
