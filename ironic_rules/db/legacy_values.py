"""Values that legacy rules have written on nodes and own there; written together with the node, under its lock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from ironic_rules.db import clock
from ironic_rules.db.projection import Row
from ironic_rules.db.rule_revisions import batches
from ironic_rules.db.tables import legacy_rules, legacy_values, nodes
from ironic_rules.exceptions import LegacyRuleGone, MarkerNotFound
from ironic_rules.models.rules import OwnedValue

#: The kind of the operations that take back what deleted rules have written; ``filters`` has their UUIDs as ``rules``.
CLEANUP = "legacy-rule-cleanup"

_FIELDS = tuple(OwnedValue.__dataclass_fields__)
_OF_NODE = sa.select(legacy_values.c.id, *(legacy_values.c[name] for name in _FIELDS)).where(
    legacy_values.c.node_id == sa.bindparam("of_node")).order_by(legacy_values.c.id)


def for_node(conn: sa.Connection, node_id: int) -> dict[int, OwnedValue]:
    """Return what legacy rules own on a node, by the ids of the rows, in the order in which it was written."""
    return {row.id: OwnedValue(**{name: getattr(row, name) for name in _FIELDS})
            for row in conn.execute(_OF_NODE, {"of_node": node_id}).all()}


def for_nodes(conn: sa.Connection, node_ids: Collection[int]) -> dict[int, list[OwnedValue]]:
    """Return what legacy rules own, by the ids of the nodes, as :func:`for_node` does; only nodes with such values."""
    query = sa.select(legacy_values.c.node_id, *(legacy_values.c[name] for name in _FIELDS)).where(
        legacy_values.c.node_id.in_(node_ids)).order_by(legacy_values.c.id)
    by_node: dict[int, list[OwnedValue]] = {}
    for node_id, *values in conn.execute(query).all():
        by_node.setdefault(node_id, []).append(OwnedValue(*values))
    return by_node


def list_values(conn: sa.Connection, node_id: int, limit: int, marker: int | None = None) -> list[Row]:
    """Return at most ``limit`` rows of a node, in the order in which they were written.

    :param marker: continue after the row with this id
    :raises MarkerNotFound: 404, no row of the node has it
    """
    columns = (column for column in legacy_values.c if column.name != "node_id")
    query = sa.select(*columns).where(legacy_values.c.node_id == node_id)
    if marker is not None:
        # PostgreSQL refuses a number that the type of the column cannot have.
        number = sa.literal(marker, sa.BigInteger)
        marked = sa.select(legacy_values.c.id).where(legacy_values.c.node_id == node_id, legacy_values.c.id == number)
        if conn.scalar(marked) is None:
            raise MarkerNotFound(marker=marker)
        query = query.where(legacy_values.c.id > number)
    return list(conn.execute(query.order_by(legacy_values.c.id).limit(limit)).all())


def save(conn: sa.Connection, node_id: int, before: Mapping[int, OwnedValue], after: Sequence[OwnedValue]) -> None:
    """Make ``after`` what legacy rules own on a node.

    Equal values at the beginning stay as they are, so the same result as last time writes nothing. The order is kept:
    what was written last is taken back first.

    :param before: as :func:`for_node` returned it, under the same lock
    :raises LegacyRuleGone: a rule was deleted since it was applied; the caller rolls back
    """
    same = 0
    for old, new in zip(before.values(), after, strict=False):
        if old != new:
            break
        same += 1
    # First: who deletes a rule locks it before its values, too.
    added = after[same:]
    _hold(conn, {value.rule_uuid for value in added})
    if gone := list(before)[same:]:
        # Ids increase in the order of writing: what is not the same is all from the first one that differs.
        conn.execute(sa.delete(legacy_values).where(
            legacy_values.c.node_id == node_id, legacy_values.c.id >= gone[0]))
    if added:
        now = clock.now()
        conn.execute(sa.insert(legacy_values), [
            {**{name: getattr(value, name) for name in _FIELDS}, "node_id": node_id, "created_at": now}
            for value in added])


def keep(conn: sa.Connection, before: Mapping[int, OwnedValue], owned: Sequence[OwnedValue]) -> None:
    """Keep only some of the values of a node, in their rows: those of a rule that is deleted now stay deleted.

    :param before: as :func:`for_node` returned it, under the same lock
    :param owned: some of these in their order; what was there before may be another value
    """
    rest = list(owned)
    for row_id, old in before.items():
        is_it = legacy_values.c.id == row_id
        if not rest or _identity(rest[0]) != _identity(old):
            conn.execute(sa.delete(legacy_values).where(is_it))
            continue
        new = rest.pop(0)
        if new != old:
            values = {name: getattr(new, name) for name in _FIELDS}
            conn.execute(sa.update(legacy_values).where(is_it).values(values))


def _identity(value: OwnedValue) -> tuple[str, int, str, str]:
    return value.rule_uuid, value.action, value.kind, value.place


def nodes_of(rule: str | None = None) -> sa.Select[tuple[str]]:
    """Return the query of the UUIDs of the nodes on which a rule owns values; None: any rule."""
    owned = sa.select(legacy_values.c.node_id)
    if rule is not None:
        owned = owned.where(legacy_values.c.rule_uuid == rule)
    return sa.select(nodes.c.uuid).where(nodes.c.id.in_(owned))


def _hold(conn: sa.Connection, uuids: set[str]) -> None:
    """Keep rules from being deleted until the transaction ends: who deletes one deletes what it owns, too.

    :raises LegacyRuleGone: one of them does not exist any more
    """
    for part in batches(sorted(uuids)):
        held = sa.select(legacy_rules.c.uuid).where(legacy_rules.c.uuid.in_(part)).order_by(legacy_rules.c.uuid)
        missing = set(part).difference(conn.scalars(held.with_for_update(read=True)))
        if missing:
            raise LegacyRuleGone(rule=min(missing))
