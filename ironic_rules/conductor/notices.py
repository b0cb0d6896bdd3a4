"""The events of nodes on which the conductor works, stored in the transactions of the changes."""

from __future__ import annotations

import sqlalchemy as sa

from ironic_rules.db import nodes, outbox
from ironic_rules.db.tables import node_traits
from ironic_rules.models import events, states
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.nodes import Node


def provision(conn: sa.Connection, before: Node, event: str) -> None:
    """Report that the provision state has changed; the change was written before.

    :param before: the node as it was;  event: that of the state machine
    """
    if outbox.wanted(conn) is not None:
        outbox.add(conn, [events.of_provision(
            _now(conn, before.id), before.provision_state, before.target_provision_state, event)])


def accepted(conn: sa.Connection, node_id: int, state: str, event: str) -> None:
    """Report that a node has left ``state`` because a report was accepted; its target is the one before."""
    if outbox.wanted(conn) is not None:
        now = _now(conn, node_id)
        outbox.add(conn, [events.of_provision(
            now, state, now["target_provision_state"] if state in states.WAITING else None, event)])


def power(conn: sa.Connection, node_id: int, to_power: str, status: str) -> None:
    """Report what has become of a request for a power state.

    :param status: start, end or error
    """
    if outbox.wanted(conn) is not None:
        outbox.add(conn, [events.of_power(_now(conn, node_id), to_power, status)])


def corrected_power(conn: sa.Connection, before: Node) -> None:
    """Report that the stored power state was not the real one.

    :param before: the node as it was stored
    """
    if outbox.wanted(conn) is not None:
        outbox.add(conn, [events.of_corrected_power(_now(conn, before.id), before.power_state)])


def inspection(conn: sa.Connection, node: Node, error: str | None, details: JSONObject) -> None:
    """Report that an inspection has ended.

    :param error: why it has failed; None: it has not
    """
    if outbox.wanted(conn) is not None:
        outbox.add(conn, [events.of_inspection({"uuid": node.uuid, "name": node.name}, error, details)])


def facts(conn: sa.Connection, node: JSONObject, changes: list[JSONObject], inspection: str | None) -> None:
    """Report facts that an inspection has changed.

    :param node: its uuid and name;  changes: ``fact``, ``before`` and ``after`` of each
    """
    if outbox.wanted(conn) is not None:
        outbox.add(conn, [events.of_facts(node, changes, inspection)])


def _now(conn: sa.Connection, node_id: int) -> JSONObject:
    row = nodes.get_with_parts(conn, node_id)
    values = outbox.values_of(row)
    return outbox.with_traits(conn, values) if nodes.has_part(row, node_traits) else {**values, "traits": []}
