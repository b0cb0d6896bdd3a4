"""The entry of an inspection that ends: written by the transaction that ends it, and named by the node's history."""

from __future__ import annotations

import datetime

import orjson
import sqlalchemy as sa

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, node_records
from ironic_rules.models import states
from ironic_rules.models.inspections import FAILED, FINISHED, OUT_OF_BAND, RAMDISK, Inspection
from ironic_rules.models.nodes import Node


def is_kept(conductor: Conductor) -> bool:
    """Return whether there is a history at all."""
    return bool(conductor.conf.inspection_history.max_entries)


def begun(row: Node, inventory_id: int) -> Inspection:
    """Return the entry of an inspection whose data are processed now."""
    found = Inspection(inventory=inventory_id)
    accepted, started = row.provision_updated_at, row.inspection_started_at
    if accepted is not None:
        found.seconds["queue"] = _seconds(clock.now() - accepted)
        if started is not None:
            found.seconds["wait"] = _seconds(accepted - started)
    return found


def add(conn: sa.Connection, conductor: Conductor, row: Node, context: RequestContext, inspection: Inspection | None,
        error: str | None, outcome: str | None = None) -> str | None:
    """Write the entry; return its UUID, None if there is no history.

    Its oldest entries are deleted by ``state_machine.add_history``.

    :param row: the node as it was before its inspection ended
    :param inspection: what is known of it; None: only that it ended
    :param outcome: None: by whether there is an error
    """
    if not is_kept(conductor):
        return None
    found = inspection or Inspection()
    seconds = dict(found.seconds)
    if found.kind == RAMDISK and context.lookup_s is not None:
        seconds["lookup"] = context.lookup_s
    if found.save is not None:
        # Until here, where almost all is written: the entry cannot tell how long its own transaction takes to end.
        seconds["commit"] = sum(found.save.end().values())
    failure = found.failure or ({"reason": error} if error else None)
    details = {"seconds": {name: round(value, 3) for name, value in seconds.items()},
               "rules": orjson.Fragment(found.rules), "messages": found.messages, "failure": failure}
    values = {
        "kind": found.kind, "outcome": outcome or (FAILED if error else FINISHED), "user": context.user_id,
        "started_at": found.started_at or (
            row.provision_updated_at if found.kind == OUT_OF_BAND else row.inspection_started_at),
        "source": context.source, "conductor": conductor.host, "request_id": context.request_id,
        "inventory_id": found.inventory, "details": details}
    return node_records.add_inspection(conn, row.id, values)


def ends(state: str, next_state: str) -> bool:
    """Return whether a change of the state ends an inspection."""
    return state == states.INSPECTING and next_state not in (states.INSPECTING, *states.WAITING)


def _seconds(passed: datetime.timedelta) -> float:
    return max(0.0, passed.total_seconds())
