"""The ramdisk's heartbeats."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ironic_rules.conductor import admission, state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import PATIENCE_S
from ironic_rules.context import RequestContext
from ironic_rules.db import clock, nodes
from ironic_rules.exceptions import NodeLocked
from ironic_rules.models import states, transitions

#: Field of a heartbeat -> its name in driver_internal_info.
_DETAILS = {"agent_verify_ca": "agent_verify_ca", "agent_status": "agent_status",
            "agent_status_message": "agent_status_message"}


def heartbeat(conductor: Conductor, context: RequestContext, node_id: str | int, callback_url: str,
              agent_version: str | None, details: dict[str, Any]) -> None:
    """Record where the node's agent listens; a node that waits for it (not for inspection data) continues.

    :raises NodeLocked: 409, a conductor works on the node; the agent repeats the heartbeat soon
    """
    # It is not stored: whatever needs it runs now, or at the next heartbeat.
    context.agent_token = details.get("agent_token")
    with conductor.db.reader() as conn:
        row = nodes.get_by_id(conn, node_id) if isinstance(node_id, int) else nodes.get(conn, node_id)
    if row.reservation is not None:
        raise NodeLocked(node=row.uuid, host=row.reservation)
    lock = conductor.new_lock(row.id)
    with conductor.workers.take(row.id, PATIENCE_S) as slot:

        def store(conn: sa.Connection) -> bool:
            locked = nodes.reserve(conn, lock, "heartbeat")
            admission.admit(conn, context, lock.node_id)
            internal = {
                **locked.driver_internal_info, "agent_url": callback_url, "agent_version": agent_version,
                "agent_last_heartbeat": clock.now().isoformat(),
                **{key: details[name] for name, key in _DETAILS.items() if details.get(name) is not None},
            }
            values: dict[str, Any] = {"driver_internal_info": internal}
            transition = transitions.of_event(locked, "resume")
            if transition is None or locked.provision_state == states.INSPECTWAIT:
                nodes.release(conn, lock, values)
                return False
            nodes.update_locked(conn, lock, {**values, **state_machine.state_values(transition)})
            return True

        if conductor.db.write(store):
            slot.run(state_machine.run, conductor, lock, context)
