"""The values of facts of many nodes: as columns and order of a list of nodes, and counted.

Counts are read from the index of facts and values, without a look at nodes as far as conditions need none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from ironic_rules.db import identity
from ironic_rules.db.facts import VALUES
from ironic_rules.db.paging import Page
from ironic_rules.db.questions import Asking, Condition
from ironic_rules.db.tables import facts, node_traits, nodes
from ironic_rules.exceptions import MarkerNotFound
from ironic_rules.models.facts import of_stored
from ironic_rules.models.questions import Place, StoredFact, Test

#: Makes the conditions of a query whose rows are of the nodes in a column.
Conditions: TypeAlias = Callable[[Asking], Sequence[Condition]]
_STORED = sa.select(facts.c.id, facts.c.type, facts.c.is_list, facts.c.unit, facts.c.name)


def stored_facts(conn: sa.Connection) -> dict[str, StoredFact]:
    """Return what is known of the values of every fact, by names."""
    return {row.name: StoredFact(row.id, row.type, bool(row.is_list), row.unit) for row in conn.execute(_STORED)}


def of_nodes(conn: sa.Connection, facts: Mapping[str, StoredFact],
             node_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return the values of facts of nodes by names, each a value or a list; None stands for no value."""
    values: dict[int, dict[str, Any]] = {node_id: dict.fromkeys(facts) for node_id in node_ids}
    names = {fact.id: name for name, fact in facts.items()}
    for is_text, table in VALUES.items():
        ids = [fact.id for fact in facts.values() if fact.type is not None and fact.is_text is is_text]
        if not ids or not values:
            continue
        rows = conn.execute(sa.select(table.c.node_id, table.c.fact_id, table.c.value).where(
            table.c.node_id.in_(list(values)), table.c.fact_id.in_(ids)).order_by(
            table.c.node_id, table.c.fact_id, table.c.position)).all()
        for (node_id, fact_id), group in itertools.groupby(rows, key=lambda row: (row.node_id, row.fact_id)):
            fact = facts[names[fact_id]]
            values[node_id][names[fact_id]] = of_stored(fact.type or "", fact.is_list, [row.value for row in group])
    return values


def sorted_nodes(conn: sa.Connection, facts: Mapping[str, StoredFact], fact: StoredFact, page: Page,
                 conditions: Conditions, among: Sequence[Condition]) -> list[int]:
    """Return the ids of nodes in the order of a fact: by the first value of a list, and nodes without a value last.

    :param among: conditions for the nodes that the caller may see: the marker is one of these
    :raises MarkerNotFound: 404
    """
    order = _Order(conn, facts, fact, page.sort_dir == "asc", conditions)
    value, after = None, 0
    if page.marker is not None:
        marker = conn.scalar(sa.select(nodes.c.id).where(identity.has_uuid(nodes, page.marker), *among))
        if marker is None:
            raise MarkerNotFound(marker=page.marker)
        value, after = order.value_of(conn, marker), marker
    ids: list[int] = []
    for query in order.queries(value, after):
        ids += conn.scalars(query.limit(page.limit - len(ids)))
        if len(ids) >= page.limit:
            break
    return ids


class _Order:
    """The queries of nodes in the order of a fact."""

    def __init__(self, conn: sa.Connection, facts: Mapping[str, StoredFact], fact: StoredFact, ascending: bool,
                 conditions: Conditions) -> None:
        table = VALUES[fact.is_text].alias("ordered")
        own = [table.c.fact_id == _literal(fact), *([table.c.position == 0] if fact.is_list else [])]
        self._own, self._value, self._node_id = own, table.c.value, table.c.node_id
        self._ascending = ascending
        # In this order: MariaDB otherwise begins with the nodes, and sorts all of them.
        self._present = sa.select(table.c.node_id).where(
            *own, *conditions(Asking(conn, facts, table.c.node_id))).prefix_with("STRAIGHT_JOIN", dialect="mysql")
        self._absent = sa.select(nodes.c.id).where(
            *conditions(Asking(conn, facts)), sa.not_(sa.exists().where(table.c.node_id == nodes.c.id, *own)))

    def value_of(self, conn: sa.Connection, node_id: int) -> Any:
        """Return the value of a node, None if it has none."""
        return conn.scalar(sa.select(self._value).where(*self._own, self._node_id == node_id))

    def queries(self, value: Any, after: int) -> Iterator[sa.Select[Any]]:
        """Yield the queries of the nodes after one of them; ``after`` is 0 for all."""
        own, node_id = self._value, self._node_id
        if value is not None or not after:
            query = self._present
            if value is not None:
                beyond, farther = (own >= value, own > value) if self._ascending else (own <= value, own < value)
                query = query.where(beyond, sa.or_(farther, node_id > after if self._ascending else node_id < after))
            yield query.order_by(*map(self._directed, (own, node_id)))
            after = 0
        following = nodes.c.id > after if self._ascending else nodes.c.id < after
        yield self._absent.where(*([following] if after else [])).order_by(self._directed(nodes.c.id))

    def _directed(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return column.asc() if self._ascending else column.desc()


class Counts(NamedTuple):
    """Numbers of nodes by the value of a fact.

    :ivar values: value and number of nodes, the largest number first; of a list, a node counts for each value once
    :ivar present: number of nodes with a value
    """

    values: list[tuple[Any, int]]
    present: int


def count_nodes(conn: sa.Connection, facts: Mapping[str, StoredFact], conditions: Conditions) -> int:
    """Return the number of nodes that fulfil conditions."""
    query = sa.select(sa.func.count()).select_from(nodes).where(*conditions(Asking(conn, facts, counted=True)))
    return int(conn.scalar(query.prefix_with("STRAIGHT_JOIN", dialect="mysql")) or 0)


def counts(conn: sa.Connection, facts: Mapping[str, StoredFact], fact: StoredFact, conditions: Conditions,
           limit: int | None, *, narrowed: bool = False) -> Counts:
    """Return how many nodes, of those that fulfil conditions, have which values.

    :param limit: maximum number of values; None: all
    :param narrowed: it takes long to find the nodes
    """
    if fact.type is None:
        return Counts([], 0)
    table = VALUES[fact.is_text].alias("counted")
    where = [table.c.fact_id == _literal(fact), *conditions(Asking(conn, facts, table.c.node_id, counted=True))]
    of_nodes_ = sa.func.count(table.c.node_id.distinct()) if fact.is_list else sa.func.count()
    number = of_nodes_.label("number")
    query = sa.select(table.c.value, number).where(*where).group_by(table.c.value).order_by(
        number.desc(), table.c.value).limit(limit).prefix_with("STRAIGHT_JOIN", dialect="mysql")
    is_whole = fact.is_list or not narrowed
    if not is_whole:
        # The sum has all values, also those beyond the limit. Another query would find the nodes once more; but the
        # index has the number of all nodes with a value, and servers keep all values for a sum over them.
        query = query.add_columns(sa.func.sum(number).over())
    rows = conn.execute(query).all()
    values = [(_plain(fact, row[0]), row[1]) for row in rows]
    if not is_whole:
        return Counts(values, int(rows[0][2]) if rows else 0)
    if not fact.is_list and (limit is None or len(values) < limit):
        return Counts(values, sum(count for _, count in values))
    present = sa.select(of_nodes_).where(*where).prefix_with("STRAIGHT_JOIN", dialect="mysql")
    return Counts(values, int(conn.scalar(present) or 0))


#: Fields of nodes that have an index, and few values for many nodes; and the traits of nodes.
COUNTED_FIELDS = ("provision_state", "resource_class", "conductor_group", "driver", "owner", "lessee", "shard", "fault",
                  "inspection_scope", "traits")


#: The table of nodes by another name: by its own, a condition would look at each row, instead of the indexes.
_COUNTED = nodes.alias("counted")


def counts_of_field(conn: sa.Connection, facts: Mapping[str, StoredFact], field: str, conditions: Conditions,
                    limit: int) -> list[tuple[str, int]]:
    """Return the values of one of :data:`COUNTED_FIELDS` with the numbers of their nodes, the largest first.

    Nodes without a value are not counted; of traits, a node counts for each.

    :param limit: maximum number of values
    """
    column, node_id = (node_traits.c.trait, node_traits.c.node_id) if field == "traits" else (
        _COUNTED.c[field], _COUNTED.c.id)
    number = sa.func.count().label("number")
    query = sa.select(column, number).where(column > "", *conditions(Asking(conn, facts, node_id, counted=True)))
    query = query.group_by(column).order_by(number.desc(), column).limit(limit)
    return [(value, count) for value, count in conn.execute(query.prefix_with("STRAIGHT_JOIN", dialect="mysql"))]


def pairs(conn: sa.Connection, facts: Mapping[str, StoredFact], first: str, values: Sequence[Any], second: str,
          conditions: Conditions, limit: int) -> list[tuple[Any, Any, int]]:
    """Return pairs of values of two facts, and how many nodes have both, the largest number first.

    :param first, second: the names of the facts;  values: those of the first one, each of which takes a query
    :param limit: maximum number of pairs
    """
    pairs: list[tuple[Any, Any, int]] = []
    for value in values:
        has_value = Test(Place("fact", first), "one of", (value,))

        def narrowed(asking: Asking, has_value: Test = has_value) -> Sequence[Condition]:
            return [*conditions(asking), asking.condition(has_value)]

        # A join would be one query, for which MariaDB looks at each node in the table: 9 s for 100,000 of them.
        counted = counts(conn, facts, facts[second], narrowed, limit, narrowed=True).values
        pairs += [(value, other, number) for other, number in counted]
    return sorted(pairs, key=lambda pair: (-pair[2], str(pair[0]), str(pair[1])))[:limit]


def _literal(fact: StoredFact) -> sa.ColumnElement[int]:
    # In the statement, so that servers know how many rows the fact has.
    return sa.literal(fact.id, sa.SmallInteger, literal_execute=True)


def _plain(fact: StoredFact, value: Any) -> Any:
    return of_stored(fact.type or "", False, [value])
