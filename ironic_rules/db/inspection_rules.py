"""Inspection rules, and the revision of the whole set, by which caches detect whether they are current.

Every change first increments the revision. The lock of that row serialises the writers, so that positions are distinct
and increase in the order of the commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, identity
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.projection import Row, columns_of
from ironic_rules.db.tables import inspection_rules, revisions
from ironic_rules.exceptions import InspectionRuleAlreadyExists, InspectionRuleNotFound, Invalid, Problem, RuleChanged
from ironic_rules.models.inspection_rules import RULE, Rule

#: The set's row in ``revisions``, created by the first migration.
RULE_SET = "inspection_rules"

_REVISION = sa.select(revisions.c.revision).where(revisions.c.name == RULE_SET)


def revision(conn: sa.Connection) -> int:
    """Return the revision of the rule set, which increases with every change of any rule."""
    return conn.execute(_REVISION).scalar_one()


def get(conn: sa.Connection, uuid: str) -> Rule:
    """Return one rule.

    :raises InspectionRuleNotFound: 404
    """
    query = sa.select(inspection_rules).where(identity.has_uuid(inspection_rules, uuid))
    row = conn.execute(query).one_or_none()
    if row is None:
        raise InspectionRuleNotFound(rule=uuid)
    return Rule.of(row._asdict())


def list_rules(conn: sa.Connection, filters: Mapping[str, Any], page: Page, columns: Iterable[str] | None = None, *,
               raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` rules; the order of creation is sort key ``id``.

    :param filters: those of ``RULE``
    :param columns: names of the columns of the rows; None: all columns
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    if page.sort_key not in RULE.sort_keys:
        raise Invalid(problems=[Problem("sort_key", f'"{page.sort_key}" is an invalid field for sorting')])
    if page.sort_key == "id":
        page = replace(page, sort_key="position")
    unknown = filters.keys() - RULE.filters.keys()
    if unknown:
        raise ValueError(f"no such filter: {', '.join(sorted(unknown))}")
    query = sa.select(*columns_of(inspection_rules, columns, raw_json=raw_json)).where(
        *(inspection_rules.c[name] == value for name, value in filters.items()))
    marker = marker_row(conn, inspection_rules, page, "position")
    return list(conn.execute(paginate(query, inspection_rules, page, marker, "position")))


def all_rules(conn: sa.Connection) -> list[Rule]:
    """Return every rule in the order in which the rules of a phase run: priority descending, then creation."""
    query = sa.select(inspection_rules).order_by(inspection_rules.c.priority.desc(), inspection_rules.c.position)
    return [Rule.of(row._asdict()) for row in conn.execute(query)]


def create(conn: sa.Connection, values: Mapping[str, Any]) -> Rule:
    """Store a new rule and return it; ``uuid`` and ``created_at`` have defaults.

    :raises InspectionRuleAlreadyExists: 409
    """
    new = _bump(conn)
    row = {"created_at": clock.now(), **values, "uuid": identity.assigned(values)}
    row |= {"position": new, "revision": new}
    # MariaDB and PostgreSQL report the name of the primary key, not its column.
    with duplicates(other=lambda value: InspectionRuleAlreadyExists(uuid=row["uuid"])):
        conn.execute(sa.insert(inspection_rules).values(row))
    return get(conn, row["uuid"])


def update(conn: sa.Connection, uuid: str, values: Mapping[str, Any], *, revision: int | None = None) -> Rule:
    """Write ``values`` and return the rule, whose ``revision`` is then the set's.

    :param revision: only if the rule still has this revision
    :raises InspectionRuleNotFound: 404
    :raises RuleChanged: 409
    """
    row = {**values, "revision": _bump(conn), "updated_at": clock.now()}
    statement = sa.update(inspection_rules).where(identity.has_uuid(inspection_rules, uuid))
    if revision is not None:
        statement = statement.where(inspection_rules.c.revision == revision)
    updated = conn.execute(statement.values(row)).rowcount
    rule = get(conn, uuid)
    if not updated:
        raise RuleChanged(rule=rule.uuid)
    return rule


def destroy(conn: sa.Connection, uuid: str, *, revision: int | None = None) -> None:
    """Delete one rule.

    :param revision: only if the rule still has this revision
    :raises InspectionRuleNotFound: 404
    :raises RuleChanged: 409, it has another one
    """
    _bump(conn)
    statement = sa.delete(inspection_rules).where(identity.has_uuid(inspection_rules, uuid))
    if revision is not None:
        statement = statement.where(inspection_rules.c.revision == revision)
    if conn.execute(statement).rowcount == 0:
        raise InspectionRuleNotFound(rule=uuid) if revision is None else RuleChanged(rule=get(conn, uuid).uuid)


def destroy_all(conn: sa.Connection) -> None:
    """Delete every rule."""
    _bump(conn)
    conn.execute(sa.delete(inspection_rules))


def _bump(conn: sa.Connection) -> int:
    conn.execute(sa.update(revisions).where(revisions.c.name == RULE_SET).values(revision=revisions.c.revision + 1))
    return revision(conn)
