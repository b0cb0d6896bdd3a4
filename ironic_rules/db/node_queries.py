"""Queries that find nodes: the filters of lists, failed ones by their reason, and those whose hardware is polled."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ironic_rules.db.identity import contains_without_case
from ironic_rules.db.projection import Row
from ironic_rules.db.session import Database
from ironic_rules.db.tables import inspection_rules, legacy_rules, node_inventory, node_traits, nodes
from ironic_rules.models import nodes as nodes_models
from ironic_rules.models import states
from ironic_rules.models.nodes import NODE, Failure

#: The part of an error that a reason is made of. Most errors have nothing of their machine but the node's UUID: without
#: it, the database finds them equal.
_ERROR = sa.func.coalesce(sa.func.substr(
    sa.func.replace(nodes.c.last_error, nodes.c.uuid, nodes_models.OWN_PART), 1, nodes_models.MAX_REASON), "")
_ROWS = 1000


class FleetCounts(NamedTuple):
    """The nodes of the whole fleet in numbers, and the ages in seconds of what has waited longest.

    ``faults`` has the nodes in maintenance that have a fault; ``waiting_s`` the states in which a node waits for its
    ramdisk; ``lock_s`` is 0 if no node is locked.
    """

    states: dict[str, int]
    maintenance: int
    faults: dict[str, int]
    groups: dict[str, int]
    waiting_s: dict[str, float]
    lock_s: float


def fleet_counts(conn: sa.Connection, now: datetime.datetime) -> FleetCounts:
    """Count all nodes. Indexes have what is counted; of rows, only those that wait or are locked are read.

    :param now: by the clock of the database
    """
    def counted(kind: str, column: sa.ColumnElement[str], *where: sa.ColumnElement[bool]) -> sa.Select[str, str, int]:
        name: sa.ColumnElement[str] = sa.literal_column(f"'{kind}'")
        return sa.select(name, column, sa.func.count()).where(*where).group_by(column)

    numbers: dict[str, dict[str, int]] = {"state": {}, "maintenance": {}, "fault": {}, "group": {}}
    nothing: sa.ColumnElement[str] = sa.literal_column("''")
    state: sa.ColumnElement[str] = sa.literal_column("'maintenance'")
    maintained = sa.select(state, nothing, sa.func.count()).where(nodes.c.maintenance.is_(True))
    counts: sa.CompoundSelect[str, str, int] = sa.union_all(
        counted("state", nodes.c.provision_state), counted("group", nodes.c.conductor_group),
        counted("fault", nodes.c.fault, nodes.c.fault > ""), maintained)
    for row in conn.execute(counts):
        numbers[row[0]][row[1]] = row[2]
    waiting = sa.select(nodes.c.provision_state, sa.func.min(nodes.c.provision_updated_at)).where(
        nodes.c.provision_state.in_(sorted(states.WAITING))).group_by(nodes.c.provision_state)
    locked = sa.select(nothing, sa.func.min(nodes.c.reserved_at)).where(
        nodes.c.reservation.is_not(None))
    since = {row[0]: max(0.0, (now - row[1]).total_seconds())
             for row in conn.execute(sa.union_all(waiting, locked)) if row[1] is not None}
    lock_s = since.pop("", 0.0)
    return FleetCounts(numbers["state"], numbers["maintenance"].get("", 0), numbers["fault"], numbers["group"],
                       dict.fromkeys(sorted(states.WAITING), 0.0) | since, lock_s)


def failure_groups(conn: sa.Connection) -> list[Failure]:
    """Return the failed nodes without a parent by state and reason, the largest group first.

    All of them are counted: the database counts equal errors, and only different ones are read.
    """
    error = sa.func.coalesce(nodes.c.error_template, _ERROR).label("error")
    by = (nodes.c.failed_rule, nodes.c.failed_hook)
    query = sa.select(nodes.c.provision_state, error, *by, sa.func.count().label("number")).where(
        nodes.c.provision_state.in_(sorted(nodes_models.FAILED_STATES)), nodes.c.parent_node.is_(None)).group_by(
        nodes.c.provision_state, error, *by)
    numbers: Counter[tuple[str, str, str | None, str | None]] = Counter()
    with conn.execution_options(yield_per=_ROWS).execute(query) as rows:
        for state, text, rule, hook, number in rows:
            reason = nodes_models.failure_reason(text) if rule is None and hook is None else text
            numbers[state, reason, rule, hook] += number
    groups = (Failure(state, reason, number, rule, hook) for (state, reason, rule, hook), number in numbers.items())
    return sorted(groups, key=lambda group: (-group.number, group.provision_state, group.reason, group.ident))


_CALLED = sa.union_all(
    sa.select(inspection_rules.c.uuid, sa.func.coalesce(
        inspection_rules.c.name, inspection_rules.c.description).label("called")).where(
        inspection_rules.c.uuid.in_(sa.bindparam("uuids", expanding=True))),
    sa.select(legacy_rules.c.uuid, legacy_rules.c.description).where(
        legacy_rules.c.uuid.in_(sa.bindparam("uuids", expanding=True))))


def rules_called(conn: sa.Connection, uuids: Collection[str]) -> dict[str, str]:
    """Return the names, else descriptions, of stored rules by their UUIDs; rules without either are missing."""
    rows = conn.execute(_CALLED, {"uuids": sorted(uuids)}) if uuids else ()
    return {row.uuid: row.called for row in rows if row.called}


def failure_condition(group: Failure | None) -> sa.ColumnElement[bool]:
    """Return the condition for the nodes of a group; None: it has none any more."""
    if group is None:
        return sa.false()
    if group.has_cause:
        return sa.and_(nodes.c.provision_state == group.provision_state, nodes.c.error_template == group.reason,
                       nodes.c.failed_rule.is_not_distinct_from(group.rule),
                       nodes.c.failed_hook.is_not_distinct_from(group.hook))
    pattern = group.reason.replace("!", "!!").replace("%", "!%").replace("_", "!_").replace(nodes_models.OWN_PART, "%")
    return sa.and_(nodes.c.provision_state == group.provision_state, nodes.c.error_template.is_(None),
                   _ERROR.like(pattern, escape="!"))


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


def part_condition(table: sa.Table, name: str, value: Any) -> Condition:
    """Return the condition for ports or port groups, in a query that joins their nodes.

    :raises ValueError: there is no filter of this name
    """
    if name == "node_uuid":
        return nodes.c.uuid == value
    if name == "shard":
        return nodes.c.shard.in_(list(value))
    if name == "conductor_groups":
        return nodes.c.conductor_group.in_([group.lower() for group in value])
    if name == "project":
        return of_project(value)
    if name in ("node_id", "address", "portgroup_id") and name in table.c:
        return table.c[name] == value
    raise ValueError(f"no such filter: {name}")


def of_caller(filters: Mapping[str, object], table: sa.Table,
              owned: Callable[[Any], Condition] = of_project) -> list[Condition]:
    """Return the conditions for rows that a caller may see who is confined to the project in the filters of a list.

    :param table: whose rows these are
    :param owned: returns the condition for what a project may see: of nodes, or of the table if it has no ``node_id``
    """
    if "project" not in filters:
        return []
    conditions = [owned(filters["project"])]
    return [table.c.node_id == nodes.c.id, *conditions] if "node_id" in table.c else conditions


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
    "failure": failure_condition,
    "where": lambda condition: condition,
    # Case-insensitive on every database.
    "description_contains": lambda text: contains_without_case(nodes.c.description, text),
    "include_children": lambda included: None if included else nodes.c.parent_node.is_(None),
}

NAMES: Collection[str] = frozenset(_CONDITIONS)


def conditions(filters: Mapping[str, Any]) -> list[Condition]:
    """Return the WHERE conditions for ``filters``; None as a value means NULL.

    ``provision_state``, ``shard`` and ``id_in`` take one value or several. ``include_children=False``
    omits nodes that have a parent. ``conductor`` takes the arguments of :func:`of_conductor`, ``failure`` a group of
    failed nodes, ``where`` a condition of the query.

    :raises ValueError: a filter that does not exist (an error of the caller: the API checks those of users)
    """
    unknown = filters.keys() - _CONDITIONS.keys()
    if unknown:
        raise ValueError(f"no such filter: {', '.join(sorted(unknown))}")
    conditions = (_CONDITIONS[name](value) for name, value in filters.items())
    return [condition for condition in conditions if condition is not None]


#: Columns of nodes that decide which actions are possible, together with instances, data and children.
_DECISIVE = ("provision_state", "target_provision_state", "maintenance", "protected", "retired")
_HAS = ("has_instance", "has_data", "has_children")


class Alike(NamedTuple):
    """Nodes that are alike in all that decides which actions are possible on them.

    :ivar example: the first of them
    :ivar has_data: whether an inspection has left data of their machines
    :ivar condition: for these nodes, in what :func:`decisive` returns
    """

    example: int
    number: int
    has_data: bool
    condition: Condition


_CHILD = nodes.alias()
_HAS_DATA = sa.select(node_inventory.c.id).where(node_inventory.c.node_id == nodes.c.id).exists()
_HAS_CHILDREN = sa.select(_CHILD.c.id).where(
    _CHILD.c.parent_node == nodes.c.uuid, _CHILD.c.id != nodes.c.id).exists()


def decisive(filters: Mapping[str, object]) -> sa.Subquery:
    """Return the query of the nodes that pass ``filters``, for :func:`alike`; it has their ``id`` and ``uuid``."""
    return sa.select(
        nodes.c.id, nodes.c.uuid, nodes.c.name, *(nodes.c[name] for name in _DECISIVE),
        nodes.c.instance_uuid.is_not(None).label("has_instance"), _HAS_DATA.label("has_data"),
        _HAS_CHILDREN.label("has_children")).where(*conditions(filters)).subquery()


def alike(conn: sa.Connection, selected: sa.Subquery) -> list[Alike]:
    """Return the nodes of a query in groups, the largest first.

    :param selected: as from :func:`decisive`
    """
    columns = [selected.c[name] for name in (*_DECISIVE, *_HAS)]
    number = sa.func.count()
    query = sa.select(sa.func.min(selected.c.id), number, *columns).group_by(*columns).order_by(number.desc())
    return [Alike(row[0], row[1], bool(row.has_data), sa.and_(*(
        column.is_(None) if value is None else column == (bool(value) if column.key in _HAS else value)
        for column, value in zip(columns, row[2:], strict=True)))) for row in conn.execute(query)]


_STATES = (states.DEPLOYWAIT, states.CLEANWAIT, states.SERVICEWAIT)
#: Columns that an interface may read of a node while it polls.
_COLUMNS = ("id", "uuid", "name", "driver", "driver_info", "driver_internal_info", "provision_state",
            "target_provision_state", "power_state", "disable_power_off", "conductor_group")
_INTERFACES = tuple(column for column in nodes.c if column.name.endswith("_interface"))
#: A node in maintenance is left alone, as with other time-outs.
_FREE = sa.and_(nodes.c.provision_state.in_(_STATES), nodes.c.reservation.is_(None), nodes.c.maintenance.is_(False))
_FOUND = sa.select(*(nodes.c[name] for name in _COLUMNS), *_INTERFACES).where(_FREE)
_BY_ID = _FOUND.where(nodes.c.id == sa.bindparam("node_id"))
_PAGE = 200


def polled_pages(db: Database, conductor_group: str, key: str) -> Iterator[list[Row]]:
    """Yield the nodes of a group that have ``key`` in ``driver_internal_info``, a page at a time: what polls need.

    Not those that are locked or in maintenance.
    """
    internal = sa.type_coerce(nodes.c.driver_internal_info, sa.Text)
    query = _FOUND.where(nodes.c.conductor_group == conductor_group, internal.contains(f'"{key}"', autoescape=True))
    last = 0
    while True:
        with db.reader() as conn:
            page = list(conn.execute(query.where(nodes.c.id > last).order_by(nodes.c.id).limit(_PAGE)).all())
        if not page:
            return
        yield page
        last = page[-1].id


#: Nodes whose power state is that of a BMC. One that is enrolled may have none that can be reached.
_WITH_POWER = sa.and_(
    nodes.c.provision_state.not_in((states.ENROLL, states.VERIFYING)), nodes.c.reservation.is_(None),
    nodes.c.maintenance.is_(False), sa.func.coalesce(nodes.c.power_interface, "") != "fake")
_POWER = sa.select(*(nodes.c[name] for name in _COLUMNS), *_INTERFACES).where(_WITH_POWER)


def _shared(conductor_group: str, place: int, count: int) -> sa.ColumnElement[bool]:
    return sa.and_(nodes.c.conductor_group == conductor_group, nodes.c.id % count == place)


def count_with_power(db: Database, conductor_group: str, place: int, count: int) -> int:
    """Return the number of nodes of :func:`pages_with_power`."""
    query = sa.select(sa.func.count()).select_from(nodes).where(_WITH_POWER, _shared(conductor_group, place, count))
    with db.reader() as conn:
        return int(conn.scalar(query) or 0)


def pages_with_power(db: Database, conductor_group: str, place: int, count: int) -> Iterator[list[Row]]:
    """Yield one of ``count`` shares of the nodes of a group whose BMC reports a power state, a page at a time.

    Not those that are locked or in maintenance.
    """
    last = 0
    while True:
        with db.reader() as conn:
            page = list(conn.execute(_POWER.where(_shared(conductor_group, place, count), nodes.c.id > last).order_by(
                nodes.c.id).limit(_PAGE)).all())
        if not page:
            return
        yield page
        last = page[-1].id


def polled_node(db: Database, node_id: int) -> Row | None:
    """Return a node as :func:`pages` does, if it waits; else None."""
    with db.reader() as conn:
        return conn.execute(_BY_ID, {"node_id": node_id}).one_or_none()
