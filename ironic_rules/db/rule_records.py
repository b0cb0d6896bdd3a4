"""Records of rules that inspections have reached: their statistics, and the nodes of rules with ``max_nodes``.

Statistics are a row for each rule, deleted with it. Processes count in memory and add in batches. Rules with the same
additions are written by one statement: most rules of a large set were only considered, all equally often.

``nodes_counted`` of a rule is the number of its nodes here, so that reads do not count them. Both are written under the
lock of the rule's row: transactions that count a node for the same rule follow each other, and none exceeds its limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from ironic_rules.db.rule_revisions import batches
from ironic_rules.db.tables import inspection_rule_changed_nodes as changed_nodes
from ironic_rules.db.tables import inspection_rule_nodes as counted
from ironic_rules.db.tables import inspection_rule_statistics as table
from ironic_rules.db.tables import inspection_rules, nodes
from ironic_rules.db.tables import inspection_rules as rules
from ironic_rules.exceptions import RuleSpent
from ironic_rules.models.rules import CountedRule, Counts

_OF_NODE = sa.select(counted.c.rule_uuid).where(counted.c.node_uuid == sa.bindparam("node"))
# The condition "above 0" lets databases use the index of max_nodes: few rules have one.
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
    spent = {node: dict(limited) for node in nodes}
    of_nodes = sa.select(counted.c.node_uuid, counted.c.rule_uuid).where(
        counted.c.node_uuid.in_(nodes), counted.c.rule_uuid.in_(limited))
    for node, rule in conn.execute(of_nodes).all() if limited else ():
        spent[node].pop(rule, None)
    return spent


def count_node(conn: sa.Connection, node: str, applied: Collection[str]) -> None:
    """Count a node for rules that this transaction applies to it.

    Not counted are the rules that were deleted since, those that no longer have a limit, and those for which the
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
        counted_rules = set(conn.scalars(_OF_NODE.where(counted.c.rule_uuid.in_(part)), {"node": node}))
        new = [row for row in limited if row.uuid not in counted_rules]
        for row in new:
            if row.nodes_counted >= row.max_nodes:
                raise RuleSpent(rule=row.uuid, max_nodes=row.max_nodes)
        if new:
            conn.execute(sa.insert(counted), [{"rule_uuid": row.uuid, "node_uuid": node} for row in new])
            conn.execute(sa.update(rules).where(rules.c.uuid.in_([row.uuid for row in new])).values(
                nodes_counted=rules.c.nodes_counted + 1))


def forget_nodes(conn: sa.Connection, uuids: Sequence[str]) -> None:
    """Start again at 0 for rules that the caller has locked."""
    for part in batches(uuids):
        some = conn.scalars(sa.select(rules.c.uuid).where(rules.c.uuid.in_(part), rules.c.nodes_counted > 0)).all()
        if some:
            conn.execute(sa.delete(counted).where(counted.c.rule_uuid.in_(some)))
            conn.execute(sa.update(rules).where(rules.c.uuid.in_(some)).values(nodes_counted=0))


_NUMBERS = ("considered", "evaluated", "matched", "failed")
_AT = sa.bindparam("at", type_=table.c.last_matched_at.type)
_LAST = sa.update(table).where(
    table.c.rule_uuid == sa.bindparam("of"), sa.or_(table.c.last_matched_at.is_(None), table.c.last_matched_at <= _AT),
).values(last_matched_at=_AT, last_node=sa.bindparam("node"))
#: Nodes whose changes one statement writes.
_NODES = 500


def add_statistics(conn: sa.Connection, counts: Mapping[str, Counts], built_in: Mapping[str, bool]) -> dict[str, bool]:
    """Add to the statistics of rules, by their UUIDs; those of rules that do not exist are dropped.

    :param built_in: the UUIDs of the built-in rules, and whether they are sensitive
    :returns: the UUIDs of the rules that exist, and whether they are sensitive
    :raises DBDuplicateEntry, DBReferenceError: another process has added, or deleted, the same at this moment; the
        caller repeats it
    """
    written: dict[str, bool] = {}
    # Each transaction locks the rows in the same order.
    for part in batches(sorted(counts)):
        query = sa.select(inspection_rules.c.uuid, inspection_rules.c.sensitive)
        stored = {row.uuid: row.sensitive for row in conn.execute(query.where(inspection_rules.c.uuid.in_(part))).all()}
        sensitive = {**built_in, **stored}
        existing = [uuid for uuid in part if uuid in sensitive]
        written |= {uuid: sensitive[uuid] for uuid in existing}
        present = set(conn.scalars(sa.select(table.c.rule_uuid).where(table.c.rule_uuid.in_(existing)).order_by(
            table.c.rule_uuid).with_for_update()))
        new = [_new(uuid, uuid if uuid in stored else None) for uuid in existing if uuid not in present]
        if new:
            conn.execute(sa.insert(table), new)
        _add_numbers(conn, {uuid: counts[uuid] for uuid in existing})
        last = [{"of": uuid, "at": latest[0], "node": latest[1]} for uuid in existing if (latest := counts[uuid].last)]
        if last:
            conn.execute(_LAST, last)
        for uuid in existing:
            _add_changed(conn, uuid, sorted(counts[uuid].changed))
    return written


def _new(uuid: str, stored_rule: str | None) -> dict[str, object]:
    return {"rule_uuid": uuid, "stored_rule": stored_rule, "nodes_changed": 0, **dict.fromkeys(_NUMBERS, 0)}


def _add_numbers(conn: sa.Connection, counts: Mapping[str, Counts]) -> None:
    alike: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for uuid, count in counts.items():
        alike[count.numbers].append(uuid)
    for numbers, uuids in alike.items():
        conn.execute(sa.update(table).where(table.c.rule_uuid.in_(uuids)).values(
            {name: table.c[name] + number for name, number in zip(_NUMBERS, numbers, strict=True)}))


def _add_changed(conn: sa.Connection, uuid: str, node_ids: Sequence[int]) -> None:
    """Note the nodes that a rule has changed, and count those that it had not changed before."""
    for start in range(0, len(node_ids), _NODES):
        part = node_ids[start:start + _NODES]
        stored = conn.scalars(sa.select(changed_nodes.c.node_id).where(
            changed_nodes.c.rule_uuid == uuid, changed_nodes.c.node_id.in_(part)))
        # Nodes can have been deleted since.
        existing = conn.scalars(sa.select(nodes.c.id).where(nodes.c.id.in_(part)))
        if new := sorted(set(existing).difference(stored)):
            conn.execute(sa.insert(changed_nodes), [{"rule_uuid": uuid, "node_id": node_id} for node_id in new])
            conn.execute(sa.update(table).where(table.c.rule_uuid == uuid).values(
                nodes_changed=table.c.nodes_changed + len(new)))


def forget_built_in(conn: sa.Connection, existing: Collection[str]) -> None:
    """Delete the statistics of built-in rules that do not exist any more."""
    recorded = sa.select(table.c.rule_uuid).where(table.c.stored_rule.is_(None))
    for part in batches(sorted(set(conn.scalars(recorded)).difference(existing))):
        conn.execute(sa.delete(table).where(table.c.rule_uuid.in_(part)))


def statistics_of_stored(conn: sa.Connection, uuid: str | None = None) -> Sequence[CountedRule]:
    """Return all stored rules, or one of them, in the order of their creation, with their statistics."""
    rules = inspection_rules.c
    query = sa.select(
        rules.uuid, rules.name, sa.func.coalesce(rules.phase, "main").label("phase"), rules.enabled, rules.sensitive,
        sa.false().label("built_in"),
        *_statistics(), table.c.last_matched_at, table.c.last_node,
    ).select_from(inspection_rules.outerjoin(table, table.c.rule_uuid == rules.uuid)).order_by(rules.position)
    if uuid is not None:
        query = query.where(rules.uuid == uuid)
    return conn.execute(query).all()


def statistics_of_built_in(conn: sa.Connection) -> Mapping[str, sa.Row[tuple[object, ...]]]:
    """Return the statistics of built-in rules by UUID."""
    query = sa.select(table.c.rule_uuid, *_statistics(), table.c.last_matched_at, table.c.last_node).where(
        table.c.stored_rule.is_(None))
    return {row.rule_uuid: row for row in conn.execute(query).all()}


def _statistics() -> list[sa.Label[int]]:
    return [sa.func.coalesce(table.c[name], 0).label(name) for name in (*_NUMBERS, "nodes_changed")]
