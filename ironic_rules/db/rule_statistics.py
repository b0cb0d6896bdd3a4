"""Statistics of rules: a row for each rule that an inspection has reached. It is deleted with the rule.

Processes count in memory and add in batches. Rules with the same additions are written by one statement: most rules of
a large set were only considered, all equally often.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from ironic_rules.db.rule_revisions import batches
from ironic_rules.db.tables import inspection_rule_changed_nodes as changed_nodes
from ironic_rules.db.tables import inspection_rule_statistics as table
from ironic_rules.db.tables import inspection_rules, nodes
from ironic_rules.models.rules import CountedRule, Counts

_NUMBERS = ("considered", "evaluated", "matched", "failed")
_AT = sa.bindparam("at", type_=table.c.last_matched_at.type)
_LAST = sa.update(table).where(
    table.c.rule_uuid == sa.bindparam("of"), sa.or_(table.c.last_matched_at.is_(None), table.c.last_matched_at <= _AT),
).values(last_matched_at=_AT, last_node=sa.bindparam("node"))
#: Nodes whose changes one statement writes.
_NODES = 500


def add(conn: sa.Connection, counts: Mapping[str, Counts], built_in: Mapping[str, bool]) -> dict[str, bool]:
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
        known = set(conn.scalars(sa.select(table.c.rule_uuid).where(table.c.rule_uuid.in_(existing)).order_by(
            table.c.rule_uuid).with_for_update()))
        new = [_new(uuid, uuid if uuid in stored else None) for uuid in existing if uuid not in known]
        if new:
            conn.execute(sa.insert(table), new)
        _add_numbers(conn, {uuid: counts[uuid] for uuid in existing})
        last = [{"of": uuid, "at": found[0], "node": found[1]} for uuid in existing if (found := counts[uuid].last)]
        if last:
            conn.execute(_LAST, last)
        for uuid in existing:
            _add_changed(conn, uuid, sorted(counts[uuid].changed))
    return written


def _new(uuid: str, stored_rule: str | None) -> dict[str, object]:
    return {"rule_uuid": uuid, "stored_rule": stored_rule, "nodes_changed": 0, **dict.fromkeys(_NUMBERS, 0)}


def _add_numbers(conn: sa.Connection, counts: Mapping[str, Counts]) -> None:
    alike: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for uuid, found in counts.items():
        alike[found.numbers].append(uuid)
    for numbers, uuids in alike.items():
        conn.execute(sa.update(table).where(table.c.rule_uuid.in_(uuids)).values(
            {name: table.c[name] + number for name, number in zip(_NUMBERS, numbers, strict=True)}))


def _add_changed(conn: sa.Connection, uuid: str, node_ids: Sequence[int]) -> None:
    """Note the nodes that a rule has changed, and count those that it had not changed before."""
    for start in range(0, len(node_ids), _NODES):
        part = node_ids[start:start + _NODES]
        known = conn.scalars(sa.select(changed_nodes.c.node_id).where(
            changed_nodes.c.rule_uuid == uuid, changed_nodes.c.node_id.in_(part)))
        # Nodes can have been deleted since.
        existing = conn.scalars(sa.select(nodes.c.id).where(nodes.c.id.in_(part)))
        if new := sorted(set(existing).difference(known)):
            conn.execute(sa.insert(changed_nodes), [{"rule_uuid": uuid, "node_id": node_id} for node_id in new])
            conn.execute(sa.update(table).where(table.c.rule_uuid == uuid).values(
                nodes_changed=table.c.nodes_changed + len(new)))


def forget_built_in(conn: sa.Connection, existing: Collection[str]) -> None:
    """Delete the statistics of built-in rules that do not exist any more."""
    kept = sa.select(table.c.rule_uuid).where(table.c.stored_rule.is_(None))
    for part in batches(sorted(set(conn.scalars(kept)).difference(existing))):
        conn.execute(sa.delete(table).where(table.c.rule_uuid.in_(part)))


def of_stored(conn: sa.Connection, uuid: str | None = None) -> Sequence[CountedRule]:
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


def of_built_in(conn: sa.Connection) -> Mapping[str, sa.Row[tuple[object, ...]]]:
    """Return the statistics of built-in rules by UUID."""
    query = sa.select(table.c.rule_uuid, *_statistics(), table.c.last_matched_at, table.c.last_node).where(
        table.c.stored_rule.is_(None))
    return {row.rule_uuid: row for row in conn.execute(query).all()}


def _statistics() -> list[sa.Label[int]]:
    return [sa.func.coalesce(table.c[name], 0).label(name) for name in (*_NUMBERS, "nodes_changed")]
