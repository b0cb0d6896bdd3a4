"""Facts: their definitions, the revision of the whole set, and the values that nodes have.

Every change of a definition first increments the revision. The lock of that row serializes the writers, so that ids,
which are small and used again, are given once. A process that does not know of a change yet writes nothing for the
facts that have changed: it names their revisions.

Values are written by the transaction that ends an inspection, or by an operation that holds the node's row. The stored
facts of a node are compared with the new ones, and only facts that differ are written.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, identity
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, check_sort_key, paginate
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.projection import Row, columns_of
from ironic_rules.db.tables import (
    fact_changes,
    fact_numbers,
    fact_problems,
    fact_states,
    fact_texts,
    facts,
    node_inventory,
    nodes,
    operation_items,
    operations,
    revisions,
)
from ironic_rules.exceptions import (
    MarkerNotFound,
    duplicate_fact_name,
    fact_changed,
    fact_not_found,
    too_many_facts,
)
from ironic_rules.models import facts as models
from ironic_rules.models.facts import FACT, Fact, FactValue
from ironic_rules.models.resources import FIND_FACTS

#: The set's row in ``revisions``.
FACT_SET = "facts"
#: The revision of the set, as a query, or as a column of another one.
REVISION = sa.select(revisions.c.revision).where(revisions.c.name == FACT_SET)

#: The tables of values, by whether they have texts.
VALUES = {True: fact_texts, False: fact_numbers}
_NULL: sa.ColumnElement[Any] = sa.literal_column("NULL")
_AT = sa.bindparam("of_node", type_=sa.Integer)
#: Places in the rows of _STORED that are no values.
_PROBLEM, _STATE = -1, -2
#: All that is stored of the facts of a node.
_STORED = Prepared(sa.union_all(  # type: ignore[arg-type]
    sa.select(fact_texts.c.fact_id, fact_texts.c.position, fact_texts.c.value.label("text"), _NULL.label("number"))
    .where(fact_texts.c.node_id == _AT),
    sa.select(fact_numbers.c.fact_id, fact_numbers.c.position, _NULL, fact_numbers.c.value)
    .where(fact_numbers.c.node_id == _AT),
    sa.select(fact_problems.c.fact_id, sa.literal_column(str(_PROBLEM)), fact_problems.c.problem, _NULL)
    .where(fact_problems.c.node_id == _AT),
    sa.select(sa.literal_column("0"), sa.literal_column(str(_STATE)), fact_states.c.digest, fact_states.c.revision)
    .where(fact_states.c.node_id == _AT)))
_COLUMNS = ("node_id", "fact_id", "position", "value")
_ValueRow = tuple[int, int, int, Any]
_INSERT = {is_text: {name: f"INSERT INTO {table.name} ({', '.join(_COLUMNS)}) VALUES ({', '.join([mark] * 4)})"
                     for name, mark in (("sqlite", "?"), ("mysql", "%s"))} for is_text, table in VALUES.items()}
_UNNEST = {is_text: f"INSERT INTO {table.name} ({', '.join(_COLUMNS)}) "
           f"SELECT * FROM unnest(%s::integer[], %s::smallint[], %s::smallint[], %s::{kind}[])"
           for (is_text, table), kind in zip(VALUES.items(), ("varchar", "double precision"), strict=True)}
_INSERT_PROBLEMS = PreparedChange(sa.insert(fact_problems))
_INSERT_STATE = PreparedChange(sa.insert(fact_states))
_UPDATE_STATE = PreparedChange(sa.update(fact_states).where(fact_states.c.node_id == _AT))
_INSERT_CHANGES = PreparedChange(sa.insert(fact_changes))
_OF_FACTS: sa.BindParameter[Any] = sa.bindparam("fact_ids", expanding=True)
_DELETE = {table: sa.delete(table).where(table.c.node_id == _AT, table.c.fact_id.in_(_OF_FACTS))
           for table in (fact_texts, fact_numbers, fact_problems)}
_REVISION_SHARED = Prepared(REVISION.with_for_update(read=True))
_CURRENT = sa.select(facts.c.id, facts.c.defined).where(facts.c.id.in_(_OF_FACTS)).with_for_update(
    read=True, key_share=True)


def revision(conn: sa.Connection) -> int:
    """Return the revision of the set, which increases with every change of any definition."""
    return conn.execute(REVISION).scalar_one()


def lock(conn: sa.Connection) -> int:
    """Return the revision of the set; it changes only in this transaction until that ends."""
    return conn.execute(REVISION.with_for_update()).scalar_one()


def are_missing(conn: sa.Connection) -> bool:
    """Return whether a node has data of an inspection in which nothing has looked for facts, or will."""
    looked = sa.select(fact_states.c.node_id).where(fact_states.c.node_id == nodes.c.id).exists()
    will = sa.select(operation_items.c.id).join(operations).where(
        operations.c.kind == FIND_FACTS, operation_items.c.node_uuid == nodes.c.uuid).exists()
    query = sa.select(node_inventory.c.id).join(nodes, nodes.c.id == node_inventory.c.node_id)
    query = query.where(node_inventory.c.status == "processed", ~looked, ~will)
    return conn.execute(query.limit(1)).first() is not None


def all_facts(conn: sa.Connection) -> list[Fact]:
    """Return every fact by its name."""
    return [_fact(row) for row in conn.execute(sa.select(facts).order_by(facts.c.name)).all()]


def names(conn: sa.Connection) -> set[str]:
    """Return the names of all facts."""
    return set(conn.scalars(sa.select(facts.c.name)))


def descriptions(conn: sa.Connection) -> dict[str, str]:
    """Return the descriptions of facts by names, of those that have one."""
    query = sa.select(facts.c.name, facts.c.description).where(facts.c.description.is_not(None))
    return {row.name: row.description for row in conn.execute(query)}


def get(conn: sa.Connection, name: str) -> Fact:
    """Return one fact.

    :raises fact_not_found: 404
    """
    row = conn.execute(sa.select(facts).where(facts.c.name == name)).one_or_none()
    if row is None:
        raise fact_not_found(fact=name)
    return _fact(row)


def list_facts(conn: sa.Connection, filters: Mapping[str, object], page: Page,
               columns: Iterable[str] | None = None, *, raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` facts; the marker is a name.

    :param filters: by the values of columns
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    check_sort_key(page, FACT.sort_keys)
    query = sa.select(*columns_of(facts, columns, raw_json=raw_json)).where(
        *(facts.c[name] == value for name, value in filters.items()))
    marker = None
    if page.marker is not None:
        places = sa.select(facts.c[page.sort_key].label("value"), facts.c.id.label("unique"))
        if (marker := conn.execute(places.where(facts.c.name == page.marker)).one_or_none()) is None:
            raise MarkerNotFound(marker=page.marker)
    return list(conn.execute(paginate(query, facts, page, marker)).all())


def count_problems(conn: sa.Connection, names: Collection[str],
                   conditions: Sequence[sa.ColumnElement[bool]] = ()) -> dict[str, int]:
    """Return the number of nodes with a problem by the names of facts, of those that have any.

    :param conditions: of nodes that the caller may see
    """
    if not names:
        return {}
    query = sa.select(facts.c.name, sa.func.count()).join(fact_problems, fact_problems.c.fact_id == facts.c.id)
    if conditions:
        query = query.join(nodes, nodes.c.id == fact_problems.c.node_id)
    query = query.where(facts.c.name.in_(names), *conditions)
    return {row[0]: row[1] for row in conn.execute(query.group_by(facts.c.name)).all()}


def problems(conn: sa.Connection, fact_id: int, limit: int, *conditions: sa.ColumnElement[bool]) -> list[Row]:
    """Return ``node_uuid`` and ``problem`` of at most ``limit`` nodes.

    :param conditions: of nodes that the caller may see
    """
    query = sa.select(nodes.c.uuid.label("node_uuid"), fact_problems.c.problem).join(
        nodes, nodes.c.id == fact_problems.c.node_id).where(fact_problems.c.fact_id == fact_id, *conditions)
    return list(conn.execute(query.order_by(fact_problems.c.node_id).limit(limit)).all())


def create(conn: sa.Connection, values: Mapping[str, Any], *, most: int = models.MAX_FACTS) -> Fact:
    """Store a new fact and return it; as :func:`create_all`."""
    created, = create_all(conn, [values], most=most)
    return created


def create_all(conn: sa.Connection, definitions: Sequence[Mapping[str, Any]], *,
               most: int = models.MAX_FACTS) -> list[Fact]:
    """Store new facts, all with the same revision, and return them.

    :param most: maximum number of facts
    :raises duplicate_fact_name, too_many_facts: 409
    """
    if not definitions:
        return []
    new, now = _bump(conn), clock.now()
    used = set(conn.scalars(sa.select(facts.c.id)))
    if len(used) + len(definitions) > most:
        raise too_many_facts(most=most)
    # Ids are counted up as long as possible: so a process does not soon mistake another fact for the one it knows.
    last = max(used, default=0)
    free = [*range(last + 1, _MAX_ID + 1), *(number for number in range(1, last) if number not in used)]
    empty = {column.name: None for column in facts.c}
    rows = [{**empty, "watched": False, "conditions": [], "origin": models.OPERATOR, **values, "id": fact_id,
             "revision": new, "defined": new, "is_list": False, "created_at": now}
            for values, fact_id in zip(definitions, free, strict=False)]
    only = definitions[0]["name"] if len(definitions) == 1 else None
    with duplicates(name=lambda value: duplicate_fact_name(name=only or value)):
        conn.execute(sa.insert(facts), rows)
    return [_fact(row) for row in conn.execute(
        sa.select(facts).where(facts.c.revision == new).order_by(facts.c.id)).all()]


#: The column has 16 bits.
_MAX_ID = 2**15 - 1


def update(conn: sa.Connection, name: str, values: Mapping[str, Any], *, revision: int | None = None) -> Fact:
    """Write ``values`` and return the fact; nothing is written if nothing differs.

    :param revision: only if the fact still has this revision
    :raises fact_not_found: 404;  fact_changed: 409
    """
    lock(conn)
    old = _unchanged(conn, name, revision)
    changed = {key: value for key, value in values.items() if getattr(old, key) != value}
    if not changed:
        return old
    row = {**changed, "revision": _bump(conn), "updated_at": clock.now()}
    if any(key in changed for key in models.DEFINITION):
        row |= {"defined": row["revision"], "type": None, "is_list": False}
    conn.execute(sa.update(facts).where(facts.c.id == old.id).values(row))
    return get(conn, name)


def destroy(conn: sa.Connection, name: str, *, revision: int | None = None) -> Fact:
    """Delete one fact with its values and changes; return it as it was.

    :param revision: only if the fact still has this revision
    :raises fact_not_found: 404;  fact_changed: 409
    """
    _bump(conn)
    old = _unchanged(conn, name, revision)
    conn.execute(sa.delete(facts).where(facts.c.id == old.id))
    return old


def destroy_all(conn: sa.Connection, names: Collection[str]) -> None:
    """Delete facts with their values and changes."""
    if names:
        _bump(conn)
        conn.execute(sa.delete(facts).where(facts.c.name.in_(names)))


def is_same(stored: Fact, defined: Fact) -> bool:
    """Return whether a stored fact is the built-in one, or that of an operator, which is left alone."""
    return stored.origin == models.OPERATOR or all(
        getattr(stored, name) == getattr(defined, name) for name in models.WRITABLE)


def install_built_in(conn: sa.Connection, defined: Sequence[Fact]) -> list[str]:
    """Let the built-in facts be these; return the names of those whose values have to be found.

    An operator's fact stays, and there is no built-in one of its name.
    """
    lock(conn)
    stored = {fact.name: fact for fact in all_facts(conn)}
    stale = []
    for fact in defined:
        values = {name: getattr(fact, name) for name in models.WRITABLE if name != "name"}
        old = stored.get(fact.name)
        if old is None:
            create(conn, {"name": fact.name, **values, "origin": models.BUILT_IN})
        elif old.origin == models.OPERATOR:
            continue
        else:
            update(conn, fact.name, values)
        if old is None or old.said() != fact.said():
            stale.append(fact.name)
    for name in {fact.name for fact in stored.values() if fact.origin == models.BUILT_IN}.difference(
            fact.name for fact in defined):
        destroy(conn, name)
    return stale


def learn_types(conn: sa.Connection, types: Mapping[int, tuple[str, bool]]) -> None:
    """Note the types of the newest values of facts, and which of them have lists, by their ids."""
    for fact_id, (type_, is_list) in sorted(types.items()):
        # A process that has seen no list yet does not say that the fact has none.
        values = {"type": type_, **({"is_list": True} if is_list else {})}
        conn.execute(sa.update(facts).where(facts.c.id == fact_id).values(values))


class Found(NamedTuple):
    """The value of one fact on a node, or the problem with it."""

    value: FactValue | None
    problem: str | None
    #: ``defined`` of the definition by which it was found
    defined: int


class Change(NamedTuple):
    """A value that has changed, as JSON: a value, a list, or None."""

    fact_id: int
    before: Any
    after: Any


class _Rows:
    """All that is stored of a node: by the facts, whether the values are texts, and the values in order."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.values: dict[int, tuple[bool, list[Any]]] = {}
        self.problems: dict[int, str] = {}
        self.digest: str | None = None
        self.revision = 0
        for fact_id, position, text, number in sorted(rows, key=lambda row: (row[0], row[1])):
            if position >= 0:
                self.values.setdefault(fact_id, (number is None, []))[1].append(text if number is None else number)
            elif position == _PROBLEM:
                self.problems[fact_id] = text
            else:
                self.digest, self.revision = text, int(number)


def save(conn: sa.Connection, node_id: int, values: Mapping[int, Found], digest: str, revision: int,
         types: Mapping[int, tuple[str, bool]]) -> list[Change]:
    """Write the facts of a node as far as they differ, and return the values that have changed.

    Values that a node gets by its first inspection, or by another definition, have not changed. The caller holds the
    node's row.

    :param values: by the ids of all facts that the process knows
    :param revision: of the set that it knows;  types: of the values before, by the ids of facts
    """
    stored = _Rows(_STORED.all(conn, {"of_node": node_id}))
    if stored.digest == digest:
        return []
    differing = {fact_id for fact_id, new in values.items() if stored.values.get(fact_id) != _as_stored(new.value)}
    with_problem = {fact_id for fact_id, new in values.items() if stored.problems.get(fact_id) != new.problem}
    if written := differing | with_problem:
        valid = written
        if _REVISION_SHARED.one(conn, {}).revision != revision:
            stays = current(conn, written)
            valid = {fact_id for fact_id in written if stays.get(fact_id) == values[fact_id].defined}
        _write(conn, node_id, {fact_id: values[fact_id] for fact_id in differing & valid}, stored)
        _write_problems(conn, node_id, {fact_id: values[fact_id].problem for fact_id in with_problem & valid}, stored)
        differing &= valid
    state = {"digest": digest, "revision": revision}
    if stored.digest is None:
        _INSERT_STATE.insert_all(conn, [{"node_id": node_id, **state}])
        return []
    _UPDATE_STATE.matched(conn, {"of_node": node_id, **state})
    return [Change(fact_id, _plain(stored, fact_id, types.get(fact_id)), None if value is None else value.plain())
            for fact_id in sorted(differing) if values[fact_id].defined <= stored.revision
            for value in [values[fact_id].value]]


def _plain(stored: _Rows, fact_id: int, type_: tuple[str, bool] | None) -> Any:
    if fact_id not in stored.values:
        return None
    is_text, values = stored.values[fact_id]
    name, is_list = type_ or ("text" if is_text else "number", False)
    return models.of_stored(name if is_text == (name in models.TEXTS) else "integer", is_list, values)


def _as_stored(value: FactValue | None) -> tuple[bool, list[Any]] | None:
    return None if value is None else (value.is_text, list(value.values))


def _write(conn: sa.Connection, node_id: int, changed: Mapping[int, Found], stored: _Rows) -> None:
    for is_text, table in VALUES.items():
        gone = [fact_id for fact_id in changed if stored.values.get(fact_id, (None,))[0] is is_text]
        if gone:
            conn.execute(_DELETE[table], {"of_node": node_id, "fact_ids": gone})
        _insert_values(conn, is_text, _rows_of(node_id, is_text, {
            fact_id: value.value for fact_id, value in changed.items()}))


def _rows_of(node_id: int, is_text: bool, values: Mapping[int, FactValue | None]) -> list[_ValueRow]:
    """Return the rows of values in the table of texts, or of numbers, by the ids of facts."""
    return [(node_id, fact_id, position, item if is_text else float(item))
            for fact_id, value in sorted(values.items()) if value is not None and value.is_text is is_text
            for position, item in enumerate(value.values)]


def _insert_values(conn: sa.Connection, is_text: bool, rows: Sequence[_ValueRow]) -> None:
    if not rows:
        return
    if conn.dialect.name == "postgresql":
        # psycopg would send a statement for each row.
        conn.exec_driver_sql(_UNNEST[is_text], tuple(map(list, zip(*rows, strict=True))))
    else:
        conn.exec_driver_sql(_INSERT[is_text][conn.dialect.name], list(rows))


def _write_problems(conn: sa.Connection, node_id: int, changed: Mapping[int, str | None], stored: _Rows) -> None:
    gone = [fact_id for fact_id in changed if fact_id in stored.problems]
    if gone:
        conn.execute(_DELETE[fact_problems], {"of_node": node_id, "fact_ids": gone})
    _INSERT_PROBLEMS.insert_all(conn, [{"node_id": node_id, "fact_id": fact_id, "problem": problem}
                                       for fact_id, problem in changed.items() if problem is not None])


def replace_values(conn: sa.Connection, values: Mapping[int, Mapping[int, Found]]) -> None:
    """Write values of facts for nodes whose rows the caller holds.

    :param values: by the ids of nodes, and of facts, which are the same for all nodes
    """
    if not values:
        return
    fact_ids = sorted(next(iter(values.values())))
    for table in (fact_texts, fact_numbers, fact_problems):
        conn.execute(sa.delete(table).where(table.c.node_id.in_(values), table.c.fact_id.in_(fact_ids)))
    for is_text in VALUES:
        # In the order of the primary key: so its pages become full.
        _insert_values(conn, is_text, [
            row for node_id in sorted(values) for row in _rows_of(node_id, is_text, {
                fact_id: values[node_id][fact_id].value for fact_id in fact_ids})])
    _INSERT_PROBLEMS.insert_all(conn, [
        {"node_id": node_id, "fact_id": fact_id, "problem": value.problem}
        for node_id in sorted(values) for fact_id, value in values[node_id].items() if value.problem is not None])


def current(conn: sa.Connection, fact_ids: Collection[int]) -> dict[int, int]:
    """Return ``defined`` of facts by their ids; it stays until the transaction ends."""
    return {row.id: row.defined for row in conn.execute(_CURRENT, {"fact_ids": sorted(fact_ids)})}


def of_node(conn: sa.Connection, node_id: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of a node's facts as JSON, and its problems, by the names of facts."""
    stored = _Rows(_STORED.all(conn, {"of_node": node_id}))
    query = sa.select(facts.c.id, facts.c.name, facts.c.type, facts.c.is_list).where(
        facts.c.id.in_({*stored.values, *stored.problems})).order_by(facts.c.name)
    rows = conn.execute(query).all() if stored.values or stored.problems else ()
    return ({row.name: _plain(stored, row.id, (row.type or "text", row.is_list)) for row in rows
             if row.id in stored.values},
            {row.name: stored.problems[row.id] for row in rows if row.id in stored.problems})


def add_changes(conn: sa.Connection, node_id: int, changes: Iterable[Change], inspection: str | None) -> None:
    """Note values that an inspection has changed.

    :param inspection: its UUID
    """
    now = clock.now()
    _INSERT_CHANGES.insert_all(conn, [
        {"uuid": uuidutils.generate_uuid(), "node_id": node_id, "fact_id": change.fact_id, "before": change.before,
         "after": change.after, "inspection_uuid": inspection, "created_at": now} for change in changes])


def list_changes(conn: sa.Connection, page: Page, *, since: datetime.datetime | None = None, fact: str | None = None,
                 node_id: int | None = None, conditions: Sequence[sa.ColumnElement[bool]] = ()) -> list[Row]:
    """Return at most ``page.limit`` changes, the newest first unless the page says otherwise, each with ``fact``,
    ``unit`` and ``node_uuid``.

    :param conditions: of nodes that the caller may see
    :raises MarkerNotFound: 404;  fact_not_found: 404
    """
    of_page = sa.select(fact_changes.c.id).where(*conditions)
    if conditions:
        of_page = of_page.join(nodes, nodes.c.id == fact_changes.c.node_id)
    if page.marker is not None:
        marker = sa.select(fact_changes.c.id).join(nodes, nodes.c.id == fact_changes.c.node_id).where(
            identity.has_uuid(fact_changes, page.marker), *conditions)
        last = conn.scalar(marker)
        if last is None:
            raise MarkerNotFound(marker=page.marker)
        of_page = of_page.where(fact_changes.c.id > last if page.sort_dir == "asc" else fact_changes.c.id < last)
    if since is not None:
        # By their ids, in whose order they are read: else all older ones would be looked at.
        earliest = sa.select(fact_changes.c.id).where(fact_changes.c.created_at >= since).order_by(
            fact_changes.c.created_at).limit(_MOST_AT_ONCE).subquery()
        if (first := conn.scalar(sa.select(sa.func.min(earliest.c.id)))) is None:
            return []
        of_page = of_page.where(fact_changes.c.created_at >= since, fact_changes.c.id >= first)
    if fact is not None:
        of_page = of_page.where(fact_changes.c.fact_id == get(conn, fact).id)
    if node_id is not None:
        of_page = of_page.where(fact_changes.c.node_id == node_id)
    order = fact_changes.c.id.asc() if page.sort_dir == "asc" else fact_changes.c.id.desc()
    # A query of its own: in one, servers begin with the few facts, or read all changes.
    chosen = list(conn.scalars(of_page.order_by(order).limit(page.limit)))
    query = sa.select(fact_changes, facts.c.name.label("fact"), facts.c.unit, nodes.c.uuid.label("node_uuid")).join(
        facts, facts.c.id == fact_changes.c.fact_id).join(nodes, nodes.c.id == fact_changes.c.node_id)
    return list(conn.execute(query.where(fact_changes.c.id.in_(chosen)).order_by(order)).all()) if chosen else []


#: Changes whose transactions may end in another order than that of their times.
_MOST_AT_ONCE = 200
#: Rows that one transaction deletes at most, so that no inspection waits long for it.
_MOST_DELETED = 10_000


def prune_changes(conn: sa.Connection, days: int) -> int:
    """Delete changes that are older than ``days``, at most some of them; return their number."""
    old = sa.select(fact_changes.c.id).where(
        fact_changes.c.created_at < clock.now() - datetime.timedelta(days=days)).order_by(
        fact_changes.c.created_at).limit(_MOST_DELETED)
    ids = list(conn.scalars(old))
    if ids:
        conn.execute(sa.delete(fact_changes).where(fact_changes.c.id.in_(
            sa.bindparam(None, ids, expanding=True, literal_execute=True))))
    return len(ids)


def _unchanged(conn: sa.Connection, name: str, revision: int | None) -> Fact:
    old = get(conn, name)
    if revision not in (None, old.revision):
        raise fact_changed(fact=name)
    return old


def _fact(row: Row) -> Fact:
    return Fact.of(row._asdict())


def _bump(conn: sa.Connection) -> int:
    conn.execute(sa.update(revisions).where(revisions.c.name == FACT_SET).values(revision=revisions.c.revision + 1))
    return revision(conn)
