"""Revisions of the rule set: who changed it when, and the rules of each.

Only what a change replaces or deletes is written: the old version of each such rule, with the revision that ended it.
The set of a revision consists of the rules that have not changed since, and of the versions that it had not ended yet.
All functions that write need the lock of the set's row; see :mod:`ironic_rules.db.inspection_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa

from ironic_rules import context
from ironic_rules.db import clock, outbox
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import inspection_rule_revisions as kept
from ironic_rules.db.tables import inspection_rule_versions as versions
from ironic_rules.db.tables import inspection_rules
from ironic_rules.exceptions import rule_revision_not_found
from ironic_rules.models.events import of_rule_set
from ironic_rules.models.rules import Rule

#: Maximum number of UUIDs in one statement.
BATCH = 500
#: ``[inspection_rules]keep_revisions`` by default.
KEEP = 100

#: Maximum number of characters of the ID of a user that are kept.
_MAX_USER = 255
_COLUMNS = tuple(column.name for column in versions.c if column.name != "ended")


@dataclass(frozen=True, slots=True)
class Author:
    """The author of a change of the rules, and the number of revisions that are kept afterwards.

    :ivar user: the ID of the user; None: not known
    """

    user: str | None = None
    keep: int = KEEP


def batches(uuids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ``uuids`` in parts that fit into one statement."""
    for start in range(0, len(uuids), BATCH):
        yield uuids[start:start + BATCH]


def end(conn: sa.Connection, revision: int, author: Author, *rules: sa.ColumnElement[bool]) -> None:
    """Keep the present versions of the rules for which the conditions hold: ``revision`` changes or deletes them."""
    if not author.keep:
        return
    present = [inspection_rules.c[name] for name in _COLUMNS]
    conn.execute(sa.insert(versions).from_select(
        [*_COLUMNS, "ended"], sa.select(*present, sa.literal(revision, sa.Integer)).where(*rules)))


def record(conn: sa.Connection, revision: int, author: Author, summary: str) -> None:
    """Keep ``revision``, report it, and forget those that are older than ``author.keep`` revisions."""
    context.note_change(context.Change("inspection rules", str(revision), "update", [
        {"op": "add", "path": "", "value": summary}]))
    if outbox.wanted(conn) is not None:
        outbox.add(conn, [of_rule_set(revision, author.user, summary)])
    if author.keep:
        user = author.user and author.user[:_MAX_USER]
        conn.execute(sa.insert(kept).values(revision=revision, created_at=clock.now(), user=user, summary=summary))
    oldest = revision - author.keep + 1
    conn.execute(sa.delete(kept).where(kept.c.revision < oldest))
    conn.execute(sa.delete(versions).where(versions.c.ended <= oldest))


def list_revisions(conn: sa.Connection, limit: int, marker: int | None = None, *, ascending: bool = False) -> list[Row]:
    """Return at most ``limit`` revisions, the newest first.

    :param marker: continue after this revision, whether or not it is kept
    """
    query = sa.select(kept).limit(limit).order_by(kept.c.revision.asc() if ascending else kept.c.revision.desc())
    if marker is not None:
        # PostgreSQL refuses a number that the type of the column cannot have.
        number = sa.literal(marker, sa.BigInteger)
        query = query.where(kept.c.revision > number if ascending else kept.c.revision < number)
    return list(conn.execute(query).all())


def get(conn: sa.Connection, revision: int) -> Row:
    """Return one revision.

    :raises rule_revision_not_found: 404, it is not kept
    """
    row = conn.execute(sa.select(kept).where(kept.c.revision == revision)).one_or_none()
    if row is None:
        raise rule_revision_not_found(revision=revision)
    return row


def rules_at(conn: sa.Connection, revision: int) -> list[Rule]:
    """Return the rules of a revision that is kept, in the order of their creation.

    A rule that became sensitive later is sensitive here, too: its conditions and actions may be those that are hidden
    since. ``revision`` of each is that of its version. Outside of a transaction that has the lock, check afterwards
    with :func:`get` that the revision is still kept.
    """
    rules: dict[str, Rule] = {}
    sealed: set[str] = set()
    # In this order: a version that another transaction ends in between is then found in both, never in none.
    for table in (inspection_rules, versions):
        then = [table.c.revision <= revision] + ([versions.c.ended > revision] if table is versions else [])
        for row in conn.execute(sa.select(*(table.c[name] for name in _COLUMNS)).where(*then)).all():
            rules[row.uuid] = Rule.of(row._asdict())
        later = sa.select(table.c.uuid).where(table.c.revision > revision, table.c.sensitive)
        sealed.update(conn.scalars(later))
    return sorted((replace(rule, sensitive=True) if rule.uuid in sealed else rule for rule in rules.values()),
                  key=lambda rule: rule.position)
