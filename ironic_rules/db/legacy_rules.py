"""Legacy rules, and the revision of the whole set, by which caches detect whether they are current.

Every change first increments the revision. The lock of that row serializes the writers, so that positions increase in
the order of the commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, identity
from ironic_rules.db.errors import duplicates
from ironic_rules.db.paging import Page, check_sort_key, marker_row, paginate
from ironic_rules.db.projection import Row, columns_of, rows_of
from ironic_rules.db.rule_revisions import batches
from ironic_rules.db.tables import legacy_rules, legacy_values, revisions
from ironic_rules.exceptions import legacy_rule_already_exists, legacy_rule_changed, legacy_rule_not_found
from ironic_rules.models.rules import LEGACY_RULE, LegacyRule

#: The set's row in ``revisions``.
RULE_SET = "legacy_rules"

#: The revision of the set, as a query, or as a column of another one.
REVISION = sa.select(revisions.c.revision).where(revisions.c.name == RULE_SET)


def revision(conn: sa.Connection) -> int:
    """Return the revision of the set, which increases with every change of any rule."""
    return conn.execute(REVISION).scalar_one()


def lock(conn: sa.Connection) -> int:
    """Return the revision of the set; it changes only in this transaction until that ends."""
    return conn.execute(REVISION.with_for_update()).scalar_one()


def get(conn: sa.Connection, uuid: str) -> LegacyRule:
    """Return one rule.

    :raises legacy_rule_not_found: 404
    """
    rule = find(conn, uuid)
    if rule is None:
        raise legacy_rule_not_found(rule=uuid)
    return rule


def find(conn: sa.Connection, uuid: str) -> LegacyRule | None:
    """Return one rule, None if there is none with this UUID."""
    row = conn.execute(sa.select(legacy_rules).where(identity.has_uuid(legacy_rules, uuid))).one_or_none()
    return None if row is None else _rule(row)


def list_rules(conn: sa.Connection, page: Page, columns: Iterable[str] | None = None, *,
               raw_json: bool = False) -> list[Row]:
    """Return at most ``page.limit`` rules; the order of creation is sort key ``id``.

    :param columns: names of the columns of the rows; None: all columns
    :param raw_json: leave JSON columns as text
    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    check_sort_key(page, LEGACY_RULE.sort_keys)
    if page.sort_key == "id":
        page = replace(page, sort_key="position")
    query = sa.select(*columns_of(legacy_rules, columns, raw_json=raw_json))
    marker = marker_row(conn, legacy_rules, page, "position")
    return rows_of(conn, paginate(query, legacy_rules, page, marker, "position"))


def all_rules(conn: sa.Connection) -> list[LegacyRule]:
    """Return every rule in the order of creation, in which they run."""
    return [_rule(row) for row in conn.execute(sa.select(legacy_rules).order_by(legacy_rules.c.position)).all()]


def changed_since(conn: sa.Connection, revision: int, limit: int | None = None) -> list[LegacyRule]:
    """Return the rules, at most ``limit`` of them, that were created or changed after a revision of the set."""
    query = sa.select(legacy_rules).where(legacy_rules.c.revision > revision).limit(limit)
    return [_rule(row) for row in conn.execute(query).all()]


def count(conn: sa.Connection) -> int:
    """Return the number of rules."""
    return conn.scalar(sa.select(sa.func.count()).select_from(legacy_rules)) or 0


def uuids(conn: sa.Connection) -> set[str]:
    """Return the UUIDs of all rules."""
    return set(conn.scalars(sa.select(legacy_rules.c.uuid)))


def existing(conn: sa.Connection, uuids: Collection[str]) -> set[str]:
    """Return those of ``uuids`` that are rules."""
    return {uuid for part in batches(sorted(uuids))
            for uuid in conn.scalars(sa.select(legacy_rules.c.uuid).where(legacy_rules.c.uuid.in_(part)))}


def create(conn: sa.Connection, values: Mapping[str, Any]) -> LegacyRule:
    """Store a new rule and return it; ``uuid`` has a default.

    :raises legacy_rule_already_exists: 409
    """
    new = _bump(conn)
    last: int = conn.scalar(sa.select(sa.func.max(legacy_rules.c.position))) or 0
    row = {**values, "uuid": identity.assigned(values), "revision": new, "position": last + 1,
           "created_at": clock.now()}
    # MariaDB and PostgreSQL report the name of the primary key, not its column.
    with duplicates(other=lambda value: legacy_rule_already_exists(uuid=row["uuid"])):
        conn.execute(sa.insert(legacy_rules).values(row))
    return get(conn, row["uuid"])


def update(conn: sa.Connection, uuid: str, values: Mapping[str, object], *, revision: int | None = None) -> LegacyRule:
    """Write ``values`` and return the rule, which keeps its place in the order and what it owns.

    :param revision: only if the rule still has this revision
    :raises legacy_rule_not_found: 404;  legacy_rule_changed: 409
    """
    new = _bump(conn)
    old = _unchanged(conn, uuid, revision)
    row = {**values, "uuid": old.uuid, "revision": new, "updated_at": clock.now()}
    conn.execute(sa.update(legacy_rules).where(legacy_rules.c.uuid == old.uuid).values(row))
    return get(conn, old.uuid)


def destroy(conn: sa.Connection, uuid: str, *, revision: int | None = None, forget: bool = True) -> None:
    """Delete one rule.

    :param revision: only if the rule still has this revision
    :param forget: what it has written is no longer known to be its own; else it can be taken back
    :raises legacy_rule_not_found: 404;  legacy_rule_changed: 409
    """
    _bump(conn)
    old = _unchanged(conn, uuid, revision)
    # The rule first: a transaction that saves what it has written holds it until its end.
    conn.execute(sa.delete(legacy_rules).where(legacy_rules.c.uuid == old.uuid))
    if forget:
        conn.execute(sa.delete(legacy_values).where(legacy_values.c.rule_uuid == old.uuid))


def destroy_all(conn: sa.Connection, *, forget: bool = True) -> None:
    """Delete every rule; ``forget`` is as for :func:`destroy`."""
    _bump(conn)
    conn.execute(sa.delete(legacy_rules))
    if forget:
        conn.execute(sa.delete(legacy_values))


def _unchanged(conn: sa.Connection, uuid: str, revision: int | None) -> LegacyRule:
    old = get(conn, uuid)
    if revision not in (None, old.revision):
        raise legacy_rule_changed(rule=old.uuid)
    return old


def _rule(row: Row) -> LegacyRule:
    return LegacyRule.of(row._asdict())


def _bump(conn: sa.Connection) -> int:
    conn.execute(sa.update(revisions).where(revisions.c.name == RULE_SET).values(revision=revisions.c.revision + 1))
    return revision(conn)
