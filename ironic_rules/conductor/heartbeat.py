"""The ramdisk's heartbeats."""

from __future__ import annotations

from urllib.parse import urlsplit

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor import admission, notices, state_machine
from ironic_rules.conductor.conductor import Conductor
from ironic_rules.conductor.worker_pool import PATIENCE_S
from ironic_rules.context import RequestContext, hashed_token
from ironic_rules.db import clock, nodes
from ironic_rules.exceptions import InvalidParameterValue, LookupFailed, NodeLocked, Problem
from ironic_rules.hardware import destinations
from ironic_rules.models import states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.internal_keys import (
    AGENT_LAST_HEARTBEAT,
    AGENT_STATUS,
    AGENT_STATUS_MESSAGE,
    AGENT_URL,
    AGENT_VERIFY_CA,
    AGENT_VERSION,
)
from ironic_rules.models.known_secrets import KNOWN
from ironic_rules.models.nodes import Node
from ironic_rules.steps import procedures
from ironic_rules.text import printable

LOG = logging.getLogger(__name__)

#: Field of a heartbeat -> its name in driver_internal_info.
_DETAILS = {"agent_verify_ca": AGENT_VERIFY_CA, "agent_status": AGENT_STATUS,
            "agent_status_message": AGENT_STATUS_MESSAGE}


def heartbeat(conductor: Conductor, context: RequestContext, node_id: str | int, callback_url: str,
              agent_version: str | None, details: JSONObject) -> None:
    """Record where the node's agent listens; a node that waits for it (not for inspection data) continues.

    :raises NodeLocked: 409, a conductor works on the node; the agent repeats the heartbeat soon
    :raises LookupFailed: 404, its token is no longer valid
    :raises InvalidParameterValue: 400, the agent that is waited for has called from another host before, or is in a
        denied network
    """
    # It is not stored: whatever needs it runs now, or at the next heartbeat.
    context.agent_token = details.get("agent_token")
    KNOWN.add(context.agent_token)
    with conductor.db.reader() as conn:
        row = nodes.get_by_id(conn, node_id) if isinstance(node_id, int) else nodes.get(conn, node_id)
    if row.reservation is not None:
        raise NodeLocked(node=row.uuid, host=row.reservation)
    lock = conductor.new_lock(row.id)
    with conductor.workers.take(row.id, PATIENCE_S) as slot:

        def store(conn: sa.Connection) -> bool:
            locked = nodes.reserve(conn, lock, "heartbeat")
            admission.admit(conn, context, lock.node_id)
            _check_token(context, locked)
            _check_agent(conductor, locked, callback_url)
            internal = {
                **locked.driver_internal_info, AGENT_URL: callback_url, AGENT_VERSION: agent_version,
                AGENT_LAST_HEARTBEAT: clock.now().isoformat(),
                **{key: details[name] for name, key in _DETAILS.items() if details.get(name) is not None},
            }
            values: JSONObject = {"driver_internal_info": internal}
            transition = states.after_event(locked, "resume")
            if transition is None or locked.provision_state == states.INSPECTWAIT:
                nodes.release(conn, lock, values)
                return False
            nodes.update_locked(conn, lock, {**values, **state_machine.state_values(transition)})
            notices.provision(conn, locked, "resume")
            return True

        goes_on = conductor.db.write(store)
        if context.agent_token and states.is_fast_track(row.driver_info, conductor.conf.deploy.fast_track):
            conductor.agent_tokens.note(row.id, context.agent_token)
        if goes_on:
            slot.run(state_machine.run, conductor, lock, context)


def _check_token(context: RequestContext, node: Node) -> None:
    """Check the token once more: since the API has done it, a conductor may have ended it, and booted the machine.

    :raises LookupFailed: 404, as from the API
    """
    if context.agent_token is not None and hashed_token(context.agent_token) != node.agent_token_hash:
        LOG.warning("Heartbeat refused: the agent token of node %s became invalid while it was on its way", node.uuid)
        raise LookupFailed()


def _waits_for_work(conductor: Conductor, node: Node) -> bool:
    """Return whether the next operation of the node continues with this agent (fast track)."""
    return node.provision_state in states.FAST_TRACK | {states.INSPECTWAIT} and states.is_fast_track(
        node.driver_info, conductor.conf.deploy.fast_track)


def _check_agent(conductor: Conductor, node: Node, callback_url: str) -> None:
    """Check that a conductor may call the agent, and that it is the one that has called since its boot.

    It gets the token and what steps send. It finds its address when it starts, and keeps it. Where no conductor calls
    it (inspection without fast track), nothing is checked.

    :raises InvalidParameterValue: its host is refused, or it is another one than before
    """
    called = (node.provision_state == states.RESCUEWAIT or procedures.of_state(node.provision_state) is not None
              or _waits_for_work(conductor, node))
    if not called:
        return
    destinations.check_address(conductor.conf, callback_url, "/callback_url")
    stored_url = node.driver_internal_info.get(AGENT_URL)
    if stored_url is not None and urlsplit(stored_url).hostname != urlsplit(callback_url).hostname:
        LOG.warning("Heartbeat refused: the agent of node %s was at %s before, not at %s", node.uuid,
                    printable(urlsplit(stored_url).hostname, 256), printable(urlsplit(callback_url).hostname, 256))
        raise InvalidParameterValue(problems=[Problem(
            "/callback_url", "must have the host of the heartbeats before: the agent of this ramdisk listens there")])
