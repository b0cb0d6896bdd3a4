"""Inspection rules, and the revision of the whole set, by which caches detect whether they are current.

Every change first increments the revision. The lock of that row serializes the writers, so that positions are distinct
and increase in the order of the commits, and names are unique. Every change is recorded; see
:mod:`ironic_rules.db.rule_revisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from ironic_rules.db import clock, identity, rule_records, rule_revisions
from ironic_rules.db.errors import duplicates
from ironic_rules.db.identity import contains, contains_without_case
from ironic_rules.db.paging import Page, check_sort_key, marker_row, paginate
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.rule_revisions import Author
from ironic_rules.db.tables import inspection_rule_versions, inspection_rules, revisions
from ironic_rules.exceptions import (
    MarkerNotFound,
    duplicate_inspection_rule_name,
    inspection_rule_already_exists,
    inspection_rule_not_found,
    rule_changed,
)
from ironic_rules.models import rules as rules_models
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import PHASES, RULE, SEALED, Rule
from ironic_rules.text import printable

Condition = sa.ColumnElement[bool]

#: Priorities of stored rules have 32 bits, and so have positions; those of built-in rules can be beyond.
_LIMIT = 2**31 - 1
# Rules from before the phase had a default have none.
_PHASE = sa.case({name: number for number, name in enumerate(PHASES)}, value=inspection_rules.c.phase,
                 else_=PHASES.index("main"))


class RulePlace(NamedTuple):
    """The place of a rule in the order in which rules run."""

    phase: int
    priority: int
    position: int


def _any_of(column: sa.Column[Any], texts: Iterable[str]) -> Condition:
    return sa.or_(*(contains(column, text) for text in texts))


def _among(uuids: Iterable[str]) -> Condition:
    # As literals: there may be more than a statement can have parameters.
    return inspection_rules.c.uuid.in_(sa.bindparam(None, sorted(uuids), expanding=True, literal_execute=True))


_CONDITIONS: dict[str, Callable[[Any], Condition]] = {
    # Case-insensitive on every database, as matches() is.
    "description": lambda text: contains_without_case(inspection_rules.c.description, text),
    # PostgreSQL refuses a number that the type of the column cannot have.
    "priority": lambda number: inspection_rules.c.priority == sa.literal(number, sa.BigInteger),
    "op": lambda op: _any_of(inspection_rules.c.ops, rules_models.terms_of_op(op)),
    "writes": lambda path: _any_of(inspection_rules.c.writes, rules_models.terms_of_path(path)),
    "uuid_in": _among,
    "uuid_not_in": lambda uuids: sa.not_(_among(uuids)),
}


def filter_conditions(filters: Mapping[str, object]) -> list[Condition]:
    """Return the WHERE conditions for filters of ``RULE`` on what is stored, and ``uuid_in`` and ``uuid_not_in``.

    :raises ValueError: a filter that does not exist (an error of the caller: the API checks those of users)
    """
    unknown = filters.keys() - {*_CONDITIONS, *RULE.where(lambda entry: entry.filter is not None)}
    if unknown:
        raise ValueError(f"no such filter: {', '.join(sorted(unknown))}")
    return [_CONDITIONS[name](value) if name in _CONDITIONS else inspection_rules.c[name] == value
            for name, value in filters.items()]


def place_of(rule: Any) -> RulePlace:
    """Return the place of a rule or row, which has ``phase``, ``priority`` and ``position``."""
    return RulePlace(PHASES.index(rule.phase or "main"), -rule.priority, rule.position)


def in_run_order(query: sa.Select[Any], after: RulePlace | None, *, ascending: bool) -> sa.Select[Any]:
    """Return ``query`` in the order in which rules run: phase, priority descending, creation.

    :param after: continue after this place, which need not be that of a stored rule
    """
    parts = _PHASE, -inspection_rules.c.priority, inspection_rules.c.position
    if after is not None:
        bounds = [sa.literal(max(-_LIMIT, min(_LIMIT, value)), sa.Integer) for value in after]
        beyond: Condition = sa.false()
        for part, bound in zip(reversed(parts), reversed(bounds), strict=True):
            farther = part > bound if ascending else part < bound
            beyond = sa.or_(farther, sa.and_(part == bound, beyond))
        query = query.where(beyond)
    return query.order_by(*(part.asc() if ascending else part.desc() for part in parts))


def matches_filters(rule: Rule, filters: Mapping[str, object]) -> bool:
    """Return whether a rule that is not stored matches the same filters."""
    texts = rules_models.search_texts({name: getattr(rule, name) for name in RULE})
    tests: dict[str, Callable[[Any], bool]] = {
        "description": lambda text: text.lower() in (rule.description or "").lower(),
        "op": lambda op: any(text in (texts["ops"] or "") for text in rules_models.terms_of_op(op)),
        "writes": lambda path: any(text in (texts["writes"] or "") for text in rules_models.terms_of_path(path)),
        "uuid_in": lambda uuids: rule.uuid in uuids,
        "uuid_not_in": lambda uuids: rule.uuid not in uuids,
    }
    return all(tests[name](value) if name in tests else getattr(rule, name) == value
               for name, value in filters.items())


#: The set's row in ``revisions``, created by the first migration.
RULE_SET = "inspection_rules"

#: The revision of the set, as a query, or as a column of another one.
REVISION = sa.select(revisions.c.revision).where(revisions.c.name == RULE_SET)
_SOMEONE = Author()
#: Characters of what a rule is called, in the summary of a revision.
_MAX_CALLED = 255
#: Fields from which those for searching are derived.
_SEARCHED = ("sensitive", *SEALED)
#: The columns of a rule but those for searching.
_UNSEARCHED = tuple(column.name for column in inspection_rules.c if column.name not in ("ops", "writes"))


@dataclass(frozen=True, slots=True)
class RevisionChanges:
    """The changes of one revision.

    :ivar created: all fields of new rules, in the order of their creation; ``uuid``, ``created_at`` and ``position``
        have defaults
    :ivar changed: by UUID, all fields that a user writes; with ``created_at`` and ``position`` they are written, too
    :ivar removed: UUIDs
    """

    created: Sequence[Mapping[str, Any]] = ()
    changed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removed: Sequence[str] = ()


def revision(conn: sa.Connection) -> int:
    """Return the revision of the rule set, which increases with every change of any rule."""
    return conn.execute(REVISION).scalar_one()


def lock(conn: sa.Connection) -> int:
    """Return the revision of the rule set; it changes only in this transaction until that ends."""
    return conn.execute(REVISION.with_for_update()).scalar_one()


def get(conn: sa.Connection, uuid: str) -> Rule:
    """Return one rule.

    :raises inspection_rule_not_found: 404
    """
    query = sa.select(inspection_rules).where(identity.has_uuid(inspection_rules, uuid))
    row = conn.execute(query).one_or_none()
    if row is None:
        raise inspection_rule_not_found(rule=uuid)
    return Rule.of(row._asdict())


def list_rules(conn: sa.Connection, filters: Mapping[str, object], page: Page, columns: Iterable[str] | None = None, *,
               raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` rules; the order of creation is sort key ``id``.

    :param filters: as for ``filter_conditions``
    :param columns: names of the columns of the rows; None: all columns
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = sa.select(*columns_of(inspection_rules, columns, raw_json=raw_json))
    return rows_of(conn, _of_page(conn, query, filters, page))


def _of_page(conn: sa.Connection, query: sa.Select[Any], filters: Mapping[str, object], page: Page) -> sa.Select[Any]:
    check_sort_key(page, RULE.sort_keys)
    if page.sort_key == "id":
        page = replace(page, sort_key="position")
    marker = marker_row(conn, inspection_rules, page, "position")
    return paginate(query.where(*filter_conditions(filters)), inspection_rules, page, marker, "position")


def list_in_order(conn: sa.Connection, filters: Mapping[str, object], page: Page, columns: Iterable[str],
                  after: RulePlace | None = None) -> list[Row]:
    """Return at most ``page.limit`` rules in the order in which they run; JSON columns are text.

    :param filters: as for ``filter_conditions``
    :param after: the place of the page's marker
    """
    query = sa.select(*columns_of(inspection_rules, columns, raw_json=True)).where(*filter_conditions(filters))
    query = in_run_order(query, after, ascending=page.sort_dir == "asc")
    return list(conn.execute(query.limit(page.limit)).all())


def place_of_marker(conn: sa.Connection, uuid: str) -> RulePlace:
    """Return the place of a rule in the order in which rules run.

    :raises MarkerNotFound: 404
    """
    marker = next(some_rules(conn, [uuid]), None)
    if marker is None:
        raise MarkerNotFound(marker=uuid)
    return place_of(marker)


def all_rules(conn: sa.Connection) -> list[Rule]:
    """Return every rule in the order in which the rules of a phase run: priority descending, then creation."""
    query = sa.select(inspection_rules).order_by(inspection_rules.c.priority.desc(), inspection_rules.c.position)
    return [Rule.of(row._asdict()) for row in conn.execute(query).all()]


def changed_since(conn: sa.Connection, revision: int, limit: int | None = None, *,
                  phase: str | None = None) -> list[Rule]:
    """Return the rules, at most ``limit`` of them, that were created or changed after a revision of the set.

    :param phase: only those that are now of this phase
    """
    query = _of_phase(sa.select(inspection_rules), phase).where(inspection_rules.c.revision > revision).limit(limit)
    return [Rule.of(row._asdict()) for row in conn.execute(query).all()]


def count(conn: sa.Connection) -> int:
    """Return the number of rules."""
    return conn.scalar(sa.select(sa.func.count()).select_from(inspection_rules)) or 0


def names(conn: sa.Connection, limit: int) -> Sequence[Row]:
    """Return ``uuid``, ``name`` and ``description`` of rules, in the order of their creation."""
    columns = inspection_rules.c.uuid, inspection_rules.c.name, inspection_rules.c.description
    return conn.execute(sa.select(*columns).order_by(inspection_rules.c.position).limit(limit)).all()


def uuids(conn: sa.Connection, phase: str | None = None) -> set[str]:
    """Return the UUIDs of all rules, or of those of a phase."""
    return set(conn.scalars(_of_phase(sa.select(inspection_rules.c.uuid), phase)))


def early_with_scope(conn: sa.Connection) -> Sequence[str]:
    """Return the UUIDs of enabled rules of phase early that earlier versions have stored with a scope."""
    columns = inspection_rules.c
    return conn.scalars(sa.select(columns.uuid).where(
        columns.phase == "early", columns.scope.is_not(None), columns.enabled.is_(True)).order_by(columns.uuid)).all()


def rules_of_bundle(conn: sa.Connection, bundle: str | None, is_whole: Callable[[Row], bool]) -> list[Rule]:
    """Return the rules of a bundle, of None those without one, in the order of their creation.

    :param is_whole: whether a rule is needed with its conditions and actions; if not, they are not decoded
    """
    columns = columns_of(inspection_rules, _UNSEARCHED, raw_json=True)
    # "==" with None is IS NULL.
    query = sa.select(*columns).where(inspection_rules.c.bundle == bundle).order_by(inspection_rules.c.position)
    rules = []
    for row in conn.execute(query).all():
        decode = orjson.loads if is_whole(row) else _nothing
        rules.append(Rule.of(row._asdict() | {name: decode(getattr(row, name)) for name in SEALED}))
    return rules


def bundles_of(conn: sa.Connection, uuids: Sequence[str]) -> dict[str, str | None]:
    """Return the bundles of those of ``uuids`` that are rules."""
    columns = inspection_rules.c.uuid, inspection_rules.c.bundle
    return {row.uuid: row.bundle for part in rule_revisions.batches(uuids)
            for row in conn.execute(sa.select(*columns).where(columns[0].in_(part))).all()}


def some_rules(conn: sa.Connection, uuids: Sequence[str]) -> Iterator[Rule]:
    """Yield those of ``uuids`` that are rules, in any order."""
    for part in rule_revisions.batches(uuids):
        for row in conn.execute(sa.select(inspection_rules).where(inspection_rules.c.uuid.in_(part))).all():
            yield Rule.of(row._asdict())


def versions(conn: sa.Connection) -> list[tuple[str, int]]:
    """Return the UUID and revision of every rule."""
    columns = inspection_rules.c.uuid, inspection_rules.c.revision
    return [(row.uuid, row.revision) for row in conn.execute(sa.select(*columns)).all()]


def create(conn: sa.Connection, values: Mapping[str, object], *, author: Author = _SOMEONE) -> Rule:
    """Store a new rule and return it; ``uuid`` and ``created_at`` have defaults.

    :raises inspection_rule_already_exists, duplicate_inspection_rule_name: 409
    """
    new = _bump(conn)
    row, = _rows(conn, new, [{"sensitive": False, "conditions": [], **values}])
    # MariaDB and PostgreSQL report the name of the primary key, not its column.
    with duplicates(other=lambda value: inspection_rule_already_exists(uuid=row["uuid"])):
        conn.execute(sa.insert(inspection_rules).values(row))
    rule = get(conn, row["uuid"])
    _refuse_second_name(conn, rule)
    rule_revisions.record(conn, new, author, f"created rule {_called(rule)}")
    return rule


def update(conn: sa.Connection, uuid: str, values: Mapping[str, object], *, revision: int | None = None,
           author: Author = _SOMEONE) -> Rule:
    """Write ``values`` and return the rule, whose ``revision`` is then the set's.

    Nothing is written if nothing differs: a revision without a change would push out one that has one.

    :param revision: only if the rule still has this revision
    :raises inspection_rule_not_found: 404
    :raises rule_changed, duplicate_inspection_rule_name: 409
    """
    lock(conn)
    old = get(conn, uuid)
    if revision not in (None, old.revision):
        raise rule_changed(rule=old.uuid)
    # A sensitive rule is written in any case: that its revision stays would confirm a guess at what it contains.
    if not old.sensitive and _json({name: getattr(old, name) for name in values}) == _json(values):
        return old
    new = _bump(conn)
    rule_revisions.end(conn, new, author, inspection_rules.c.uuid == old.uuid)
    row = {**values, "revision": new, "updated_at": clock.now()}
    if any(name in values for name in _SEARCHED):
        row |= rules_models.search_texts({name: values.get(name, getattr(old, name)) for name in _SEARCHED})
    conn.execute(sa.update(inspection_rules).where(inspection_rules.c.uuid == old.uuid).values(row))
    rule = get(conn, uuid)
    if rule.max_nodes is None and rule.nodes_counted:
        rule_records.forget_nodes(conn, [rule.uuid])
        rule = replace(rule, nodes_counted=0)
    _refuse_second_name(conn, rule)
    rule_revisions.record(conn, new, author, f"changed rule {_called(rule)}")
    return rule


def destroy(conn: sa.Connection, uuid: str, *, revision: int | None = None, author: Author = _SOMEONE) -> None:
    """Delete one rule.

    :param revision: only if the rule still has this revision
    :raises inspection_rule_not_found: 404
    :raises rule_changed: 409, it has another one
    """
    new = _bump(conn)
    old = get(conn, uuid)
    if revision not in (None, old.revision):
        raise rule_changed(rule=old.uuid)
    is_it = inspection_rules.c.uuid == old.uuid
    rule_revisions.end(conn, new, author, is_it)
    conn.execute(sa.delete(inspection_rules).where(is_it))
    rule_revisions.record(conn, new, author, f"removed rule {_called(old)}")


def destroy_all(conn: sa.Connection, *, author: Author = _SOMEONE) -> None:
    """Delete every rule; without any, nothing is written."""
    if not count(conn):
        return
    new = _bump(conn)
    rule_revisions.end(conn, new, author)
    removed = conn.execute(sa.delete(inspection_rules)).rowcount
    rule_revisions.record(conn, new, author, f"removed all rules ({removed})")


def change(conn: sa.Connection, changes: RevisionChanges, summary: str, *,
           author: Author = _SOMEONE) -> tuple[int, list[str]]:
    """Make all ``changes`` as one revision; return its number and the UUIDs of the created rules.

    The caller has the lock and has checked that names stay unique.

    :raises inspection_rule_already_exists: 409
    """
    new = _bump(conn)
    for uuids in rule_revisions.batches([*changes.changed, *changes.removed]):
        rule_revisions.end(conn, new, author, inspection_rules.c.uuid.in_(uuids))
    for uuids in rule_revisions.batches(changes.removed):
        conn.execute(sa.delete(inspection_rules).where(inspection_rules.c.uuid.in_(uuids)))
    if changes.changed:
        now = clock.now()
        rows = [{**values, **rules_models.search_texts(values), "revision": new, "updated_at": now, "of": uuid}
                for uuid, values in changes.changed.items()]
        # One statement for all, so each row has the same columns.
        columns = [name for name in rows[0] if name != "of"]
        conn.execute(sa.update(inspection_rules).where(inspection_rules.c.uuid == sa.bindparam("of")).values(
            {name: sa.bindparam(f"new_{name}", type_=inspection_rules.c[name].type) for name in columns}),
            [{"of": row["of"], **{f"new_{name}": row[name] for name in columns}} for row in rows])
        rule_records.forget_nodes(conn, [row["of"] for row in rows if row["max_nodes"] is None])
    created = _rows(conn, new, changes.created)
    if created:
        with duplicates(other=lambda value: inspection_rule_already_exists(uuid=value)):
            conn.execute(sa.insert(inspection_rules), created)
    rule_revisions.record(conn, new, author, summary)
    return new, [row["uuid"] for row in created]


def _called(rule: Rule) -> str:
    """Return the UUID of a rule, and what people call it."""
    name = rule.name or rule.description
    return f"{rule.uuid} ({printable(name, _MAX_CALLED)})" if name else rule.uuid


def _of_phase(query: sa.Select[Any], phase: str | None) -> sa.Select[Any]:
    return query if phase is None else query.where(inspection_rules.c.phase == phase)


def _json(values: Mapping[str, object]) -> bytes:
    """Return values as JSON, in which true is not 1, and 1 is not 1.0."""
    return orjson.dumps(dict(values), option=orjson.OPT_SORT_KEYS)


def _nothing(text: str) -> list[JSONObject]:
    return []


def _rows(conn: sa.Connection, new: int, rules: Sequence[Mapping[str, Any]]) -> list[JSONObject]:
    """Return the rows of new rules, all with the same columns."""
    position = _last_position(conn)
    now = clock.now()
    rows = []
    for number, values in enumerate(rules, 1):
        rows.append({"position": position + number, "created_at": now, **values, **rules_models.search_texts(values),
                     "uuid": identity.assigned(values), "revision": new})
    return rows


def _last_position(conn: sa.Connection) -> int:
    """Return the highest position of rules and their versions, which could get it back."""
    highest = [conn.scalar(sa.select(sa.func.max(table.c.position)))
               for table in (inspection_rules, inspection_rule_versions)]
    return max(position or 0 for position in highest)


def _refuse_second_name(conn: sa.Connection, rule: Rule) -> None:
    if rule.name is None:
        return
    same_name = sa.select(inspection_rules.c.uuid).where(
        inspection_rules.c.name == rule.name, inspection_rules.c.uuid != rule.uuid,
        # "==" with None is IS NULL.
        inspection_rules.c.bundle == rule.bundle)
    other = conn.scalar(same_name.limit(1))
    if other is not None:
        group = f" in bundle {rule.bundle}" if rule.bundle else ""
        raise duplicate_inspection_rule_name(uuid=other, name=rule.name, group=group)


def _bump(conn: sa.Connection) -> int:
    conn.execute(sa.update(revisions).where(revisions.c.name == RULE_SET).values(revision=revisions.c.revision + 1))
    return revision(conn)
