"""The nodes to which rules with ``max_nodes`` have been applied.

``nodes_counted`` of a rule is the number of its nodes here, so that no one has to count them. Both are written under
the lock of the rule's row: those who count a node for the same rule follow each other, and none exceeds its limit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from ironic_rules.db.rule_revisions import batches
from ironic_rules.db.tables import inspection_rule_nodes as counted
from ironic_rules.db.tables import inspection_rules as rules
from ironic_rules.exceptions import RuleSpent

_OF_NODE = sa.select(counted.c.rule_uuid).where(counted.c.node_uuid == sa.bindparam("node"))
# That it is above 0 is why the index of max_nodes is used: few rules have one.
_SPENT = sa.select(rules.c.uuid, rules.c.nodes_counted).where(
    rules.c.max_nodes > 0, rules.c.max_nodes <= rules.c.nodes_counted,
    ~_OF_NODE.where(counted.c.rule_uuid == rules.c.uuid).exists())


def spent(conn: sa.Connection, node: str) -> dict[str, int]:
    """Return the rules that may not be applied to a node, and to how many others each has been, by their UUIDs.

    :param node: its UUID
    """
    return {row.uuid: row.nodes_counted for row in conn.execute(_SPENT, {"node": node}).all()}


def spent_for(conn: sa.Connection, nodes: Collection[str]) -> dict[str, dict[str, int]]:
    """Return what :func:`spent` returns for each of these nodes, given by their UUIDs."""
    query = sa.select(rules.c.uuid, rules.c.nodes_counted).where(
        rules.c.max_nodes > 0, rules.c.max_nodes <= rules.c.nodes_counted)
    limited = {row.uuid: row.nodes_counted for row in conn.execute(query).all()}
    found = {node: dict(limited) for node in nodes}
    of_nodes = sa.select(counted.c.node_uuid, counted.c.rule_uuid).where(
        counted.c.node_uuid.in_(nodes), counted.c.rule_uuid.in_(limited))
    for node, rule in conn.execute(of_nodes).all() if limited else ():
        found[node].pop(rule, None)
    return found


def count(conn: sa.Connection, node: str, applied: Collection[str]) -> None:
    """Count a node for rules that this transaction applies to it.

    Not counted are the rules that were deleted meanwhile, those that no longer have a limit, and those for which the
    node is already counted.

    :param node: its UUID
    :param applied: UUIDs
    :raises RuleSpent: one of the rules has been applied to as many other nodes as it may; the caller rolls back
    """
    # Each transaction locks the rules in the same order.
    for part in batches(sorted(applied)):
        locked = sa.select(rules.c.uuid, rules.c.max_nodes, rules.c.nodes_counted).where(
            rules.c.uuid.in_(part), rules.c.max_nodes.is_not(None)).order_by(rules.c.uuid).with_for_update()
        limited = conn.execute(locked).all()
        known = set(conn.scalars(_OF_NODE.where(counted.c.rule_uuid.in_(part)), {"node": node}))
        new = [row for row in limited if row.uuid not in known]
        for row in new:
            if row.nodes_counted >= row.max_nodes:
                raise RuleSpent(rule=row.uuid, max_nodes=row.max_nodes)
        if new:
            conn.execute(sa.insert(counted), [{"rule_uuid": row.uuid, "node_uuid": node} for row in new])
            conn.execute(sa.update(rules).where(rules.c.uuid.in_([row.uuid for row in new])).values(
                nodes_counted=rules.c.nodes_counted + 1))


def forget(conn: sa.Connection, uuids: Sequence[str]) -> None:
    """Start again at 0 for rules that the caller has locked."""
    for part in batches(uuids):
        some = conn.scalars(sa.select(rules.c.uuid).where(rules.c.uuid.in_(part), rules.c.nodes_counted > 0)).all()
        if some:
            conn.execute(sa.delete(counted).where(counted.c.rule_uuid.in_(some)))
            conn.execute(sa.update(rules).where(rules.c.uuid.in_(some)).values(nodes_counted=0))
