"""Allocations, and the nodes that they get: each is given away under the lock of its row, so to one allocation only."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import node_queries, node_sets, nodes
from ironic_rules.db.collection import Collection
from ironic_rules.db.tables import allocations
from ironic_rules.db.tables import nodes as nodes_table
from ironic_rules.exceptions import (
    Conflict,
    NodeNotFound,
    NotFound,
    allocation_already_exists,
    allocation_failed,
    allocation_not_found,
    duplicate_allocation_name,
    identified,
    node_associated,
)
from ironic_rules.models import states
from ironic_rules.models.nodes import Node
from ironic_rules.models.resources import ACTIVE, ALLOCATING, ERROR, Allocation

ALLOCATIONS = Collection(
    allocations, "allocation", missing=lambda ident: allocation_not_found(allocation=ident), taken={
        "uuid": lambda values: allocation_already_exists(uuid=values.get("uuid")),
        "name": lambda values: duplicate_allocation_name(name=values.get("name"))},
    filters={name: allocations.c[name].__eq__ for name in ("resource_class", "state", "owner")})

#: Key of ``instance_info`` with the traits that the instance requests: which deploy templates apply depends on it.
_TRAITS = "traits"


def waiting(conn: sa.Connection, limit: int) -> list[tuple[str, Any]]:
    """Return UUID and time of creation of allocations that have no result yet, oldest first."""
    query = sa.select(allocations.c.uuid, allocations.c.created_at).where(allocations.c.state == ALLOCATING)
    return [(row.uuid, row.created_at) for row in conn.execute(query.order_by(allocations.c.id).limit(limit)).all()]


def of_node(conn: sa.Connection, node: Node) -> Allocation:
    """Return the allocation that has the node.

    :raises allocation_not_found: 404
    """
    if node.allocation_uuid is None:
        raise NotFound(f"Node {node.uuid} has no allocation.")
    allocation: Allocation = ALLOCATIONS.get(conn, node.allocation_uuid)
    return allocation


def settle(conn: sa.Connection, uuid: str, *, give_up: bool = False) -> str:
    """Give a waiting allocation a node, or note why there is none. May be repeated, also by several processes at once.

    While all nodes that fit are locked, it continues to wait: they are available, so that the work on them is short.

    :param give_up: end it with an error even then
    :returns: the state of the allocation
    :raises allocation_not_found: 404
    """
    row = ALLOCATIONS.get(conn, uuid, for_update=True)
    if row.state != ALLOCATING:
        state: str = row.state
        return state
    problem = _problem(conn, row)
    if problem is not None:
        return _end(conn, row, ERROR, last_error=_failed(row, problem))
    candidates = _candidates(conn, row)
    locked = 0
    for node_id in candidates:
        try:
            node = nodes.get_by_id(conn, node_id, for_update=True)
        except NodeNotFound:
            continue
        if not _fits(conn, node, row):
            continue
        if node.reservation is not None:
            locked += 1
            continue
        return _give(conn, row, node)
    if locked and not give_up:
        return ALLOCATING
    reason = f"all of {locked} suitable nodes are locked" if locked else "all nodes were taken by other requests"
    return _end(conn, row, ERROR, last_error=_failed(row, reason))


def _failed(row: Allocation, reason: str) -> str:
    return identified(allocation_failed(allocation=row.uuid, reason=reason))


def backfill(conn: sa.Connection, values: Mapping[str, Any], node: Node) -> Allocation:
    """Create the allocation of a node that is deployed already, and return it.

    :param values: ``resource_class`` and ``uuid`` are those of the node and of its instance if they are missing
    :param node: its row is locked until the transaction ends
    :raises Conflict: 409, the node does not fit;  node_associated: 409, it has another instance
    """
    values = {"resource_class": node.resource_class, "uuid": node.instance_uuid, **values}
    reasons = []
    if node.provision_state != states.ACTIVE:
        reasons.append(f'its state is "{node.provision_state}", not "active"')
    if node.resource_class != values["resource_class"]:
        reasons.append(f"its resource class is {node.resource_class}, not {values['resource_class']}")
    if not _has_traits(conn, node, values.get("traits", ())):
        reasons.append("it does not have all of the traits")
    if values.get("candidate_nodes") and node.uuid not in values["candidate_nodes"]:
        reasons.append("it is not among the candidate nodes")
    if reasons:
        raise Conflict(f"Node {node.uuid} cannot be that of the allocation: {'; '.join(reasons)}.")
    if node.allocation_uuid is not None or node.instance_uuid not in (None, values["uuid"]):
        raise node_associated(node=node.uuid, instance=node.instance_uuid)
    row = ALLOCATIONS.create(conn, {**values, "state": ALLOCATING})
    _give(conn, row, node)
    allocation: Allocation = ALLOCATIONS.get(conn, row.uuid)
    return allocation


def destroy(conn: sa.Connection, uuid: str) -> None:
    """Delete an allocation; its node, if it has one, is free.

    :raises allocation_not_found: 404;  NodeLocked: 409
    :raises Conflict: 409, the node is deployed, or changing its state, and not in maintenance
    """
    row = ALLOCATIONS.get(conn, uuid, for_update=True)
    if row.node_id is None:
        ALLOCATIONS.destroy(conn, row.id)
        return
    node = nodes.get_by_id(conn, row.node_id, for_update=True)
    busy = node.provision_state == states.ACTIVE or (
        node.target_provision_state is not None and node.provision_state not in states.DELETE_ALLOWED)
    if busy and not node.maintenance:
        raise Conflict(f"Cannot remove allocation {row.uuid} of node {node.uuid}, which is in state "
                       f'"{node.provision_state}" and not in maintenance.')
    ALLOCATIONS.note_end(conn, row.id)
    # Without its instance, a node has no allocation either: this deletes it. As in Ironic, instance_info is kept: the
    # next allocation overwrites its traits, and "deleted" empties it.
    nodes.update(conn, node.id, {"instance_uuid": None})


def _problem(conn: sa.Connection, row: Allocation) -> str | None:
    """Return why no node can ever be given to the allocation as it is, None if one may be found."""
    if conn.scalar(sa.select(sa.exists().where(nodes_table.c.instance_uuid == row.uuid))):
        return f"another node has an instance with the UUID {row.uuid}"
    if conn.scalar(sa.select(sa.exists().where(*_conditions(row)))):
        return None
    if not conn.scalar(sa.select(sa.exists().where(*_conditions(row, with_traits=False)))):
        chosen = "none of the requested nodes are available and match" if row.candidate_nodes else (
            "no available nodes match")
        return f"{chosen} the resource class {row.resource_class}"
    return f"no suitable nodes have the requested traits {', '.join(row.traits)}"


def _conditions(row: Allocation, *, with_traits: bool = True) -> list[sa.ColumnElement[bool]]:
    columns = nodes_table.c
    conditions = [columns.resource_class == row.resource_class, columns.provision_state == states.AVAILABLE,
                  columns.instance_uuid.is_(None), columns.maintenance.is_(False), columns.retired.is_(False),
                  # Its BMC has never answered.
                  columns.power_state.is_not(None)]
    if row.candidate_nodes:
        conditions.append(columns.uuid.in_(row.candidate_nodes))
    if row.owner is not None:
        conditions.append(node_queries.of_project(row.owner))
    return conditions + [node_queries.has_trait(trait) for trait in row.traits] if with_traits else conditions


def _candidates(conn: sa.Connection, row: Allocation) -> list[int]:
    """Return the ids of the nodes that fit, in random order; one with the name of the allocation is the first."""
    nodes = list(conn.execute(sa.select(nodes_table.c.id, nodes_table.c.name).where(*_conditions(row))).all())
    # Allocations at the same time would wait for each other at the first node.
    random.shuffle(nodes)
    nodes.sort(key=lambda node: row.name is None or node.name != row.name)
    return [node.id for node in nodes]


def _fits(conn: sa.Connection, node: Node, row: Allocation) -> bool:
    """Return whether a node, whose row is locked now, still fits."""
    is_free = node.instance_uuid is None and not node.maintenance and not node.retired
    return (is_free and node.provision_state == states.AVAILABLE and node.resource_class == row.resource_class
            and _has_traits(conn, node, row.traits))


def _has_traits(conn: sa.Connection, node: Node, traits: Iterable[str]) -> bool:
    return set(traits) <= set(node_sets.list_traits(conn, [node.id])[node.id])


def _give(conn: sa.Connection, row: Allocation, node: Node) -> str:
    nodes.update(conn, node.id, {"instance_uuid": row.uuid, "allocation_uuid": row.uuid,
                                 "instance_info": {**node.instance_info, _TRAITS: row.traits}})
    return _end(conn, row, ACTIVE, node_id=node.id)


def _end(conn: sa.Connection, row: Allocation, state: str, **values: Any) -> str:
    ALLOCATIONS.update(conn, row.id, {"state": state, **values})
    return state
