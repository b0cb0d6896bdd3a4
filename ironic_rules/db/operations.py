"""Operations: work on many nodes that one request has begun, as a table of work that any conductor does.

An item is one node. A conductor claims a few items, and does each of them in one transaction, which also notes the
result: whatever dies in between, no item is done twice or lost. An item that has no result yet may be claimed by
another conductor after ``LEASE_S``, or once that one is dead.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from oslo_utils import uuidutils

from ironic_rules.db import clock, identity
from ironic_rules.db.paging import Page, marker_row, paginate
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import nodes, operations
from ironic_rules.db.tables import operation_items as items
from ironic_rules.exceptions import MarkerNotFound, operation_not_found

#: States of operations.
RUNNING, FINISHED, CANCELLED = "running", "finished", "cancelled"
#: States of items: the first is that before the work.
LEFT, CHANGED, UNCHANGED, FAILED = "left", "changed", "unchanged", "failed"
#: Maximum number of operations that have ended and are kept.
KEPT = 100
#: Seconds for which no other conductor works on what one has claimed.
LEASE_S = 300
#: Seconds until a node that was locked is tried again, and how often that is done.
PAUSE_S = 10
MOST_POSTPONED = 3


_STILL_LEFT = sa.select(items.c.id).where(
    items.c.id.in_(sa.bindparam("item_ids", expanding=True)), items.c.status == LEFT,
    items.c.claimed_by == sa.bindparam("worker"),
    sa.select(operations.c.id).where(
        operations.c.id == sa.bindparam("of_operation"), operations.c.status == RUNNING).exists(),
    ).order_by(items.c.id).with_for_update()
_ENDED = {"status": sa.bindparam("status_is"), "error": sa.bindparam("error_is"),
          # The text is what its hash was made of.
          "result": sa.bindparam("text", type_=sa.Text), "result_hash": sa.bindparam("hash_is")}
_END = sa.update(items).where(items.c.id == sa.bindparam("item_ids")).values(_ENDED)
_END_SAME = sa.update(items).where(items.c.id.in_(sa.bindparam("item_ids", expanding=True))).values(_ENDED)


@dataclass(frozen=True, slots=True)
class Item:
    """A node of an operation that this conductor has claimed."""

    id: int
    node_uuid: str
    #: number of times that it was postponed before
    postponed: int = 0


class Ended(NamedTuple):
    """The result of an item: its state, why it failed, and what a dry run has found, as JSON with sorted keys."""

    status: str
    error: str | None = None
    result: bytes | None = None


def create(conn: sa.Connection, kind: str, filters: Mapping[str, object], user: str | None,
           nodes: sa.Select[tuple[str]]) -> Row:
    """Store an operation and return it; forget the oldest of those that have ended.

    :param filters: what was requested, as the kind of the operation understands it
    :param user: the ID of who has requested it
    :param nodes: the query of the UUIDs of its nodes
    """
    uuid = uuidutils.generate_uuid()
    row = {"uuid": uuid, "kind": kind, "status": RUNNING, "filters": dict(filters), "user": user and user[:255],
           "created_at": clock.now()}
    inserted = conn.execute(sa.insert(operations).values(row)).inserted_primary_key
    # Not as a subquery, in which MariaDB ignores an order.
    rows = nodes.with_only_columns(
        sa.literal(inserted[0], sa.Integer), *nodes.selected_columns, sa.literal(LEFT))  # type: ignore[index]
    conn.execute(sa.insert(items).from_select(["operation_id", "node_uuid", "status"], rows))
    _prune(conn)
    return get(conn, uuid)


def _prune(conn: sa.Connection) -> None:
    ended = operations.c.status != RUNNING
    query = sa.select(operations.c.id).where(ended).order_by(operations.c.id.desc()).offset(KEPT).limit(1)
    newest_gone = conn.scalar(query)
    if newest_gone is not None:
        conn.execute(sa.delete(operations).where(ended, operations.c.id <= newest_gone))


def get(conn: sa.Connection, uuid: str) -> Row:
    """Return one operation.

    :raises operation_not_found: 404
    """
    row = conn.execute(sa.select(operations).where(identity.has_uuid(operations, uuid))).one_or_none()
    if row is None:
        raise operation_not_found(operation=uuid)
    return row


def list_operations(conn: sa.Connection, page: Page) -> list[Row]:
    """Return at most ``page.limit`` operations.

    :raises MarkerNotFound: 404;  Invalid: 400, the sort key is invalid
    """
    query = paginate(sa.select(operations), operations, page, marker_row(conn, operations, page))
    return list(conn.execute(query).all())


def counts(conn: sa.Connection, rows: Collection[Row]) -> dict[int, dict[str, int]]:
    """Return how many items of each operation are in each state; states without items are left out.

    Only of those that have not ended, the items are counted: there may be a million of others.
    """
    counts: dict[int, dict[str, int]] = {row.id: row.counts or {} for row in rows}
    uncounted = [row.id for row in rows if row.counts is None]
    query = sa.select(items.c.operation_id, items.c.status, sa.func.count()).where(
        items.c.operation_id.in_(uncounted)).group_by(items.c.operation_id, items.c.status)
    for operation_id, status, number in conn.execute(query).all() if uncounted else ():
        counts[operation_id][status] = number
    return counts


def errors(conn: sa.Connection, operation_id: int, limit: int) -> list[Row]:
    """Return ``node_uuid`` and ``error`` of at most ``limit`` items that failed."""
    query = sa.select(items.c.node_uuid, items.c.error).where(
        items.c.operation_id == operation_id, items.c.status == FAILED).order_by(items.c.id).limit(limit)
    return list(conn.execute(query).all())


def list_items(conn: sa.Connection, operation_id: int, status: str | None, after: str | None, limit: int, *,
               result_hash: str | None = None) -> list[Row]:
    """Return at most ``limit`` items in the order in which they were stored.

    :param status: only those in this state; None: all
    :param after: the UUID of a node: only those behind its item
    :param result_hash: only those with the result that has this hash
    :raises MarkerNotFound: 404
    """
    query = sa.select(items).where(items.c.operation_id == operation_id)
    if status is not None:
        query = query.where(items.c.status == status)
    if result_hash is not None:
        query = query.where(items.c.result_hash == result_hash)
    if after is not None:
        marker = sa.select(items.c.id).where(items.c.operation_id == operation_id, items.c.node_uuid == after)
        if (last := conn.scalar(marker)) is None:
            raise MarkerNotFound(marker=after)
        query = query.where(items.c.id > last)
    return list(conn.execute(query.order_by(items.c.id).limit(limit)).all())


def groups(conn: sa.Connection, operation_id: int, limit: int) -> list[Row]:
    """Return ``result_hash``, ``number`` and ``result`` of at most ``limit`` groups of equal results, largest first."""
    number = sa.func.count().label("number")
    grouped = sa.select(items.c.result_hash, number, sa.func.min(items.c.id).label("first")).where(
        items.c.operation_id == operation_id, items.c.result_hash.is_not(None)).group_by(items.c.result_hash)
    chosen = grouped.order_by(number.desc(), items.c.result_hash).limit(limit).subquery()
    query = sa.select(chosen.c.result_hash, chosen.c.number, items.c.result).join(items, items.c.id == chosen.c.first)
    return list(conn.execute(query.order_by(chosen.c.number.desc(), chosen.c.result_hash)).all())


def cancel(conn: sa.Connection, operation_id: int) -> None:
    """End an operation: what was not begun is not done. One that has ended stays as it is."""
    _end(conn, operation_id, CANCELLED)


def is_running(conn: sa.Connection, operation_id: int) -> bool:
    """Return whether an operation has not ended."""
    query = sa.select(operations.c.id).where(operations.c.id == operation_id, operations.c.status == RUNNING)
    return conn.scalar(query) is not None


def running(conn: sa.Connection) -> list[Row]:
    """Return the operations that have not ended, the oldest first."""
    query = sa.select(operations).where(operations.c.status == RUNNING).order_by(operations.c.id)
    return list(conn.execute(query).all())


def claim(conn: sa.Connection, operation_id: int, worker: str, limit: int,
          now: datetime.datetime | None = None, group: str | None = None,
          alive: Collection[str] | None = None) -> list[Item]:
    """Return at most ``limit`` items without a result that no one works on; now ``worker`` does.

    Postponed items come last.

    :param worker: who claims them, at most 64 characters
    :param now: the time (for tests)
    :param group: only nodes of this conductor group, and those that were deleted; None: all
    :param alive: the conductors, as ``worker``, that live: what others have claimed is free; None: all do
    """
    now = now or clock.now()
    is_free = sa.or_(items.c.claimed_at.is_(None), items.c.claimed_at <= now - datetime.timedelta(seconds=LEASE_S))
    if alive is not None:
        is_free = sa.or_(is_free, items.c.claimed_by.not_in(sorted(alive)))
    query = sa.select(items.c.id, items.c.node_uuid, items.c.postponed).where(
        items.c.operation_id == operation_id, items.c.status == LEFT, is_free)
    if group is not None:
        of_others = sa.select(nodes.c.id).where(nodes.c.uuid == items.c.node_uuid, nodes.c.conductor_group != group)
        query = query.where(~of_others.exists())
    query = query.order_by(items.c.id).limit(limit).with_for_update(skip_locked=True)
    rows = (conn.execute(query.where(items.c.postponed == 0)).all()
            or conn.execute(query.where(items.c.postponed > 0)).all())
    claimed = [Item(*row) for row in rows]
    if claimed:
        conn.execute(sa.update(items).where(items.c.id.in_([item.id for item in claimed])).values(
            claimed_by=worker, claimed_at=now))
    return claimed


def postpone(conn: sa.Connection, item: Item) -> None:
    """Let any conductor claim an item again, after ``PAUSE_S`` and after all that were not postponed."""
    free_at = clock.now() + datetime.timedelta(seconds=PAUSE_S)
    conn.execute(sa.update(items).where(items.c.id == item.id).values(
        postponed=item.postponed + 1, claimed_by=None, claimed_at=free_at - datetime.timedelta(seconds=LEASE_S)))


def begin(conn: sa.Connection, operation_id: int, item: Item, worker: str) -> bool:
    """Lock an item until the transaction ends; return whether ``worker`` still has to do it.

    First in the transaction that does the work and ends with :func:`end`.
    """
    return bool(begin_all(conn, operation_id, (item,), worker))


def end(conn: sa.Connection, item: Item, status: str, error: str | None = None) -> None:
    """Note the result of an item."""
    end_all(conn, [(item, Ended(status, error))])


def begin_all(conn: sa.Connection, operation_id: int, claimed: Collection[Item], worker: str) -> set[Item]:
    """Return what :func:`begin` would say of which items, all of them locked until the transaction ends."""
    remaining = set(conn.scalars(_STILL_LEFT, {
        "item_ids": [item.id for item in claimed], "of_operation": operation_id, "worker": worker}))
    return {item for item in claimed if item.id in remaining}


def end_all(conn: sa.Connection, results: Iterable[tuple[Item, Ended]]) -> None:
    """Note the results of items, those that are equal with one statement."""
    same: dict[Ended, list[int]] = {}
    for item, result in results:
        same.setdefault(result, []).append(item.id)
    alone = []
    for result, ids in same.items():
        values = {"status_is": result.status, "error_is": result.error, "text": None, "hash_is": None}
        if result.result is not None:
            values |= {"text": result.result.decode(), "hash_is": hashlib.sha256(result.result).hexdigest()}
        if len(ids) == 1:
            alone.append({"item_ids": ids[0], **values})
        else:
            conn.execute(_END_SAME, {"item_ids": ids, **values})
    if alone:
        conn.execute(_END, alone)


def finish(conn: sa.Connection, operation_id: int) -> bool:
    """End an operation if all of its items have a result; return whether it ended now."""
    remaining = sa.select(items.c.id).where(items.c.operation_id == operation_id, items.c.status == LEFT)
    return _end(conn, operation_id, FINISHED, ~remaining.exists())


def _end(conn: sa.Connection, operation_id: int, status: str, *conditions: sa.ColumnElement[bool]) -> bool:
    """End an operation if it runs and the conditions hold; return whether it ended now."""
    of_this = operations.c.id == operation_id
    statement = sa.update(operations).where(of_this, operations.c.status == RUNNING, *conditions)
    if conn.execute(statement.values(status=status, updated_at=clock.now())).rowcount == 0:
        return False
    if status == FINISHED:
        _keep_counts(conn, of_this)
    return True


def settle(conn: sa.Connection) -> None:
    """Keep the counts of operations that were cancelled some time ago: what had begun then has ended."""
    before = clock.now() - datetime.timedelta(seconds=LEASE_S)
    _keep_counts(conn, sa.and_(
        operations.c.status == CANCELLED, operations.c.updated_at < before, operations.c.counts.is_(None)))


def _keep_counts(conn: sa.Connection, condition: sa.ColumnElement[bool]) -> None:
    rows = conn.execute(sa.select(operations).where(condition)).all()
    for operation_id, counted in counts(conn, rows).items():
        conn.execute(sa.update(operations).where(operations.c.id == operation_id).values(counts=counted))
