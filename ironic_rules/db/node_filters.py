"""The filters of a list of nodes: the conditions for names and values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import node_failures
from ironic_rules.db.tables import node_traits, nodes
from ironic_rules.db.texts import contains_without_case
from ironic_rules.models.nodes import NODE

Condition = sa.ColumnElement[bool]


def _equals(name: str) -> Callable[[Any], Condition]:
    column = nodes.c[name]
    return lambda value: column == value


def _is_set(name: str) -> Callable[[Any], Condition]:
    column = nodes.c[name]
    return lambda value: column.is_not(None) if value else column.is_(None)


def _one_of(name: str) -> Callable[[Any], Condition]:
    column = nodes.c[name]
    return lambda values: column.in_([values] if isinstance(values, (str, int)) else list(values))


def of_project(project: str) -> Condition:
    """Return the condition for nodes that ``project`` owns or leases."""
    return sa.or_(nodes.c.owner == project, nodes.c.lessee == project)


def of_caller(filters: Mapping[str, Any], table: sa.Table,
              owned: Callable[[Any], Condition] = of_project) -> list[Condition]:
    """Return the conditions for rows that a caller may see who is confined to the project in the filters of a list.

    :param table: whose rows these are
    :param owned: returns the condition for what a project may see: of nodes, or of the table if it has no ``node_id``
    """
    if "project" not in filters:
        return []
    found = [owned(filters["project"])]
    return [table.c.node_id == nodes.c.id, *found] if "node_id" in table.c else found


def of_conductor(host: str, turns: Mapping[str, tuple[int, int]]) -> Condition:
    """Return the condition for nodes of a conductor: locked by ``host``, or not locked and assigned to it by their id.

    :param turns: by conductor group, the position of the host among those that share the nodes, and their number
    """
    by_turns = (sa.and_(nodes.c.conductor_group == group, nodes.c.id % count == place)
                for group, (place, count) in turns.items())
    return sa.or_(nodes.c.reservation == host, sa.and_(nodes.c.reservation.is_(None), sa.or_(sa.false(), *by_turns)))


def is_reserved() -> Condition:
    """Return the condition for nodes that are locked."""
    # SQLite would not use the index of the column for IS NOT NULL. No host has an empty name.
    return nodes.c.reservation > ""


def has_trait(trait: str) -> Condition:
    """Return the condition for nodes with a trait."""
    return nodes.c.id.in_(sa.select(node_traits.c.node_id).where(node_traits.c.trait == trait))


_CONDITIONS: dict[str, Callable[[Any], Condition | None]] = {
    **{name: _equals(name) for name in NODE.where(lambda entry: entry.filter is not None)},
    "provision_state": _one_of("provision_state"),
    "shard": _one_of("shard"),
    "id_in": _one_of("id"),
    "associated": _is_set("instance_uuid"),
    "sharded": _is_set("shard"),
    "reserved": lambda value: is_reserved() if value else nodes.c.reservation.is_(None),
    "conductor": lambda host_and_turns: of_conductor(*host_and_turns),
    "project": of_project,
    "trait": has_trait,
    "failure": node_failures.condition,
    # Case-insensitive on every database.
    "description_contains": lambda text: contains_without_case(nodes.c.description, text),
    "include_children": lambda included: None if included else nodes.c.parent_node.is_(None),
}

NAMES: Collection[str] = frozenset(_CONDITIONS)


def conditions(filters: Mapping[str, Any]) -> list[Condition]:
    """Return the WHERE conditions for ``filters``; None as a value means NULL.

    ``provision_state``, ``shard`` and ``id_in`` take one value or several. ``include_children=False``
    omits nodes that have a parent. ``conductor`` takes the arguments of :func:`of_conductor`, ``failure`` a group of
    failed nodes.

    :raises ValueError: a filter that does not exist (an error of the caller: the API checks those of users)
    """
    unknown = filters.keys() - _CONDITIONS.keys()
    if unknown:
        raise ValueError(f"no such filter: {', '.join(sorted(unknown))}")
    found = (_CONDITIONS[name](value) for name, value in filters.items())
    return [condition for condition in found if condition is not None]
