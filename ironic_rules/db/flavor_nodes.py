"""The nodes that a flavor may select, read with as few columns as that needs: there may be 10,000 of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from ironic_rules.db.projection import Row
from ironic_rules.db.tables import node_traits, nodes
from ironic_rules.models import states

_NODES = nodes.c
#: What keeps Nova from a node; NULL if nothing does.
_STATE = sa.case(
    (_NODES.maintenance, "maintenance"),
    (_NODES.instance_uuid.is_not(None), "instance"),
    (_NODES.provision_state != states.AVAILABLE, _NODES.provision_state),
    (_NODES.power_state.is_(None), "power state unknown"),
    (_NODES.power_state == "error", "power state error"),
    else_=sa.null()).label("state")
_PROPERTIES = sa.type_coerce(_NODES.properties, sa.Text).label("properties")


def resource_classes(conn: sa.Connection) -> dict[str, int]:
    """Return the number of nodes by their resource class, without those that have none."""
    query = sa.select(_NODES.resource_class, sa.func.count()).where(_NODES.resource_class.is_not(None))
    return {row[0]: row[1] for row in conn.execute(query.group_by(_NODES.resource_class))}


def of_classes(conn: sa.Connection, names: Collection[str], *, with_properties: bool) -> Sequence[Row]:
    """Return ``id`` and ``state`` of the nodes with these resource classes, in the order of their creation.

    :param with_properties: also ``properties``, as JSON text
    """
    if not names:
        return []
    columns = (_NODES.id, _STATE, _PROPERTIES) if with_properties else (_NODES.id, _STATE)
    return conn.execute(
        sa.select(*columns).where(_NODES.resource_class.in_(list(names))).order_by(_NODES.id)).all()


def with_traits(conn: sa.Connection, traits: Collection[str]) -> dict[str, set[int]]:
    """Return the ids of the nodes that have each of ``traits``, in one query."""
    found: dict[str, set[int]] = {trait: set() for trait in traits}
    if len(found) == 1:
        for trait, ids in found.items():
            ids.update(conn.scalars(sa.select(node_traits.c.node_id).where(node_traits.c.trait == trait)))
    elif found:
        query = sa.select(node_traits.c.trait, node_traits.c.node_id).where(node_traits.c.trait.in_(list(found)))
        for trait, node_id in conn.execute(query).all():
            found[trait].add(node_id)
    return found


def known_traits(conn: sa.Connection, traits: Collection[str]) -> set[str]:
    """Return those of ``traits`` that any node has, however many nodes there are, in one query."""
    if not traits:
        return set()
    parts = [sa.select(sa.literal(trait)).where(sa.exists().where(node_traits.c.trait == trait)) for trait in traits]
    return set(conn.scalars(sa.union_all(*parts)))


def properties_with(conn: sa.Connection, names: Collection[str], text: str) -> Sequence[str]:
    """Return the properties, as JSON text, of nodes with these resource classes whose properties contain ``text``."""
    if not names:
        return []
    return conn.scalars(sa.select(_PROPERTIES).distinct().where(
        _NODES.resource_class.in_(list(names)), _PROPERTIES.contains(text, autoescape=True))).all()


def by_id(conn: sa.Connection, ids: Collection[int], columns: Collection[str]) -> dict[int, Row]:
    """Return some columns of nodes by their ids."""
    if not ids:
        return {}
    wanted = [_NODES[name] for name in ("id", *columns)]
    return {row.id: row for row in conn.execute(sa.select(*wanted).where(_NODES.id.in_(list(ids))))}
