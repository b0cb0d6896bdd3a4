"""The outbox: events, written in the transactions of the changes that they report, until all receivers have them.

An event is stored once; what is left to do is a delivery for each receiver. Conductors make the deliveries of new
events (``route``), claim some of one receiver for a while (``claim``), and note the results (``finish``). The claims of
a conductor that has died are due again later, so that a receiver may get an event twice, but none is lost.

While events are not wanted, nothing is written, and a change pays a look into a dictionary.
"""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, Protocol

import orjson
import sqlalchemy as sa

from ironic_rules import context
from ironic_rules.db import clock
from ironic_rules.db.prepared import Prepared, PreparedChange
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import event_deliveries as deliveries
from ironic_rules.db.tables import events, node_traits
from ironic_rules.models import documents, secrets, urls
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.events import RESOURCES, Event, is_at_least, of_maintenance, of_resource, plain

#: The receiver of notifications; all others are webhooks, by their ids.
BUS = 0
#: Seconds after which another conductor may deliver what one has claimed.
LEASE_S = 300
#: Rows that one transaction writes or deletes.
BATCH = 500
_OPTION = "ironic_rules.events"
_INSERT = PreparedChange(sa.insert(events))
_IDS: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The events that are stored.

    :ivar level: lowest level of notifications; None: there are none
    :ivar others: whether others receive events, of any level
    :ivar host: of this process, which they name as their publisher
    :ivar stored: set when this process has stored some; the transaction may not have ended yet
    """

    level: str | None
    others: bool
    host: str
    stored: threading.Event = field(default_factory=threading.Event)


def want(engine: sa.Engine, wanted: Wanted) -> None:
    """Let events be stored by the connections of an engine from now on."""
    engine.update_execution_options(**{_OPTION: wanted})


def wanted(conn: sa.Connection) -> Wanted | None:
    """Return which events are stored; None: none are, and they need not be made."""
    found: Wanted | None = conn.get_execution_options().get(_OPTION)
    return found


def add(conn: sa.Connection, new: Iterable[Event]) -> None:
    """Store the events that are wanted, in the caller's transaction."""
    which = wanted(conn)
    if which is None:
        return
    new_events = [event for event in new if which.others or is_at_least(event.level, which.level)]
    if not new_events:
        return
    now, caller = clock.now(), _caller()
    _INSERT.insert_all(conn, [{
        "uuid": str(uuid.uuid4()), "created_at": now, "type": event.type, "level": event.level,
        "subject": event.subject[:_MAX_SUBJECT], "payload_type": event.schema, "service": event.service,
        "host": which.host, "context": caller, "payload": event.payload, "routed": False} for event in new_events])
    which.stored.set()


_MAX_SUBJECT = 255


def _caller() -> dict[str, str | None]:
    caller = context.current()
    return {} if caller is None else {
        name: value for name in ("request_id", "user_id", "project_id") if (value := getattr(caller, name)) is not None}


def note(conn: sa.Connection, kind: str, action: str, row: Any, old: Any = None) -> None:
    """Store the events of a resource that a request creates, updates or deletes, and tell the audit log.

    :param kind: as of ``models.events.of_resource``, or another one, which has no events
    :param action: create, update or delete
    :param row: after the change; of one that is deleted, before it;  old: before an update
    """
    if context.notes_changes():
        _audit(kind, action, row, old)
    if kind in RESOURCES and wanted(conn) is not None:
        values = values_of(row)
        add(conn, of_resource(kind, action, with_traits(conn, values) if kind == "node" else values))


_TRAITS = Prepared(sa.select(node_traits.c.trait).where(node_traits.c.node_id == sa.bindparam("node_id")).order_by(
    node_traits.c.trait))


def _audit(kind: str, action: str, row: Any, old: Any) -> None:
    new = {} if action == "delete" else _audited(row)
    before = _audited(row) if action == "delete" else {} if old is None else _audited(old)
    patch = documents.difference(before, new, ())
    context.note_change(context.Change(kind, row.uuid, action, secrets.Concealment().hide_patch(patch, (kind,))))


#: Columns that tell nothing of what a user has changed.
_UNTOLD = frozenset({
    "id", "node_id", "portgroup_id", "revision", "created_at", "updated_at", "agent_token_hash", "reservation",
    "reservation_token", "reservation_purpose", "reservation_resumptions", "reserved_at", "internal_info",
    "driver_internal_info", "failures", "retry_at"})


def _audited(row: Any) -> JSONObject:
    values = {str(name): value for name, value in values_of(row).items() if name not in _UNTOLD}
    if "url" in values:
        values["url"] = urls.shown(values["url"])  # the rest may be a token
    audited: JSONObject = orjson.loads(orjson.dumps(values, default=plain))
    return audited


def note_maintenance(conn: sa.Connection, node: Any, old: Any) -> None:
    """Store the events of a node whose maintenance mode a request has set or cleared, and tell the audit log.

    :param old: the node before
    """
    if context.notes_changes():
        _audit("node", "update", node, old)
    if wanted(conn) is not None:
        add(conn, of_maintenance(with_traits(conn, values_of(node))))


def with_traits(conn: sa.Connection, node: JSONObject) -> JSONObject:
    """Return the columns of a node with its traits, as its events have them."""
    return {**node, "traits": [row.trait for row in _TRAITS.all(conn, {"node_id": node["id"]})]}


def values_of(row: Any) -> JSONObject:
    """Return the columns of a row."""
    return {entry.name: getattr(row, entry.name) for entry in fields(row)} if is_dataclass(row) else row._asdict()


class Receiver(Protocol):
    """A receiver of events: ``id`` and ``wants``."""

    id: int

    def wants(self, event_type: str, level: str) -> bool:
        """Return whether it gets events of a type and a level."""


def route(conn: sa.Connection, receivers: Callable[[sa.Connection], Sequence[Receiver]], most: int = BATCH) -> int:
    """Make the deliveries of new events, the oldest first; return how many events that were.

    :param receivers: returns those who get events now
    """
    rows = conn.execute(unrouted(most).with_for_update(skip_locked=True)).all()
    if not rows:
        return 0
    known = receivers(conn)
    new = [{"event_id": row.id, "webhook_id": each.id, "dead": False, "attempts": 0, "created_at": row.created_at,
            "due_at": row.created_at} for row in rows for each in known if each.wants(row.type, row.level)]
    if new:
        _INSERT_DELIVERIES.insert_all(conn, new)
    routed = {row["event_id"] for row in new}
    if routed:
        conn.execute(_SET_ROUTED, {"ids": sorted(routed)})
    if gone := [row.id for row in rows if row.id not in routed]:
        conn.execute(_DELETE_EVENTS, {"ids": gone})
    return len(rows)


def unrouted(most: int) -> sa.Select[Any]:
    """Return the query of the events without deliveries, the oldest first."""
    query = sa.select(events.c.id, events.c.type, events.c.level, events.c.created_at)
    return query.where(events.c.routed == sa.false()).order_by(events.c.id).limit(most)


_INSERT_DELIVERIES = PreparedChange(sa.insert(deliveries))
_SET_ROUTED = sa.update(events).where(events.c.id.in_(_IDS)).values(routed=True)
_DELETE_EVENTS = sa.delete(events).where(events.c.id.in_(_IDS))


class Delivery(NamedTuple):
    """An event on its way to a receiver."""

    id: int
    event_id: int
    attempts: int
    created_at: datetime.datetime
    event: Row


_EVENT = tuple(column for column in events.c if column.name not in ("id", "routed"))


def has_due(conn: sa.Connection, receiver: int) -> bool:
    """Return whether a receiver has deliveries that are due."""
    return conn.execute(DUE.limit(1), {"receiver": receiver, "now": clock.now()}).first() is not None


DUE = sa.select(deliveries.c.id).where(
    deliveries.c.webhook_id == sa.bindparam("receiver"), deliveries.c.dead == sa.false(),
    deliveries.c.due_at <= sa.bindparam("now", type_=deliveries.c.due_at.type)).order_by(deliveries.c.due_at)
_CLAIMED = sa.select(
    deliveries.c.id, deliveries.c.event_id, deliveries.c.attempts, deliveries.c.created_at, *_EVENT).join(
    events, events.c.id == deliveries.c.event_id).where(deliveries.c.id.in_(_IDS)).order_by(deliveries.c.event_id)


def claim(conn: sa.Connection, receiver: int, most: int, worker: str) -> list[Delivery]:
    """Return deliveries of a receiver that are due, in the order of their events; now ``worker`` tries them.

    :param worker: differs each time; at most 64 characters
    """
    now = clock.now()
    ids = list(conn.scalars(DUE.limit(most).with_for_update(skip_locked=True), {"receiver": receiver, "now": now}))
    if not ids:
        return []
    conn.execute(sa.update(deliveries).where(deliveries.c.id.in_(_IDS)).values(
        due_at=now + datetime.timedelta(seconds=LEASE_S), claimed_by=worker), {"ids": ids})
    return [Delivery(row[0], row[1], row[2], row[3], row) for row in conn.execute(_CLAIMED, {"ids": ids}).all()]


class Failure(NamedTuple):
    """A delivery that was tried in vain.

    :ivar due_at: when it is tried again; None: it is given up
    """

    id: int
    error: str
    due_at: datetime.datetime | None


def finish(conn: sa.Connection, worker: str, done: Collection[Delivery] = (), failed: Collection[Failure] = (),
           untried: Collection[tuple[int, datetime.datetime]] = ()) -> None:
    """Note the results of deliveries that ``worker`` has claimed; what others have claimed since is theirs.

    :param untried: ids, and when they are due
    """
    mine = deliveries.c.claimed_by == worker
    drop(conn, done, mine)
    for each in failed:
        values: dict[str, Any] = {"claimed_by": None, "attempts": deliveries.c.attempts + 1, "error": each.error[:255]}
        values |= {"dead": True} if each.due_at is None else {"due_at": each.due_at}
        conn.execute(sa.update(deliveries).where(deliveries.c.id == each.id, mine).values(values))
    for at in sorted({due_at for _, due_at in untried}):
        conn.execute(sa.update(deliveries).where(deliveries.c.id.in_(_IDS), mine).values(claimed_by=None, due_at=at),
                     {"ids": [ident for ident, due_at in untried if due_at == at]})


_IS_DELIVERED = ~sa.exists().where(deliveries.c.event_id == events.c.id)
_HOLD = sa.select(events.c.id).where(events.c.id.in_(_IDS)).order_by(events.c.id).with_for_update()
_FORGET = sa.delete(events).where(events.c.id.in_(_IDS), _IS_DELIVERED)


def drop(conn: sa.Connection, rows: Collection[Any], *conditions: sa.ColumnElement[bool]) -> None:
    """Delete deliveries, and the events that have no other ones.

    The events are locked first: of two transactions that delete the last deliveries of an event at the same time, each
    would see that of the other one, and the event would stay.

    :param rows: with ``id`` and ``event_id``;  conditions: what else the deliveries have to fulfil
    """
    if not rows:
        return
    event_ids = {"ids": sorted({row.event_id for row in rows})}
    conn.execute(_HOLD, event_ids).all()
    conn.execute(sa.delete(deliveries).where(deliveries.c.id.in_(_IDS), *conditions), {"ids": [row.id for row in rows]})
    conn.execute(_FORGET, event_ids)


def forget_unrouted(conn: sa.Connection, before: datetime.datetime, most: int = BATCH) -> int:
    """Delete events without deliveries from before ``before``; return how many, at most ``most``."""
    old = unrouted(most).where(events.c.created_at < before)
    ids = [row.id for row in conn.execute(old.with_for_update(skip_locked=True))]
    if ids:
        conn.execute(_DELETE_EVENTS, {"ids": ids})
    return len(ids)


def give_up(conn: sa.Connection, before: datetime.datetime, most: int = BATCH) -> int:
    """Give up deliveries that have waited since before ``before``; return how many, at most ``most``.

    Events for webhooks become dead letters, notifications are deleted.
    """
    query = sa.select(deliveries.c.id, deliveries.c.event_id, deliveries.c.webhook_id).where(
        deliveries.c.dead == sa.false(), deliveries.c.created_at < before).order_by(deliveries.c.created_at).limit(most)
    rows = conn.execute(query.with_for_update(skip_locked=True)).all()
    if letters := [row.id for row in rows if row.webhook_id != BUS]:
        conn.execute(sa.update(deliveries).where(deliveries.c.id.in_(_IDS)).values(dead=True, claimed_by=None),
                     {"ids": letters})
    drop(conn, [row for row in rows if row.webhook_id == BUS])
    return len(rows)


def prune_dead(conn: sa.Connection, before: datetime.datetime, keep: int, most: int = BATCH) -> int:
    """Delete dead letters of events from before ``before``, and beyond the newest ``keep``; return how many."""
    # Locked, and without those that a request delivers again now.
    dead = sa.select(deliveries.c.id, deliveries.c.event_id).where(
        deliveries.c.dead == sa.true()).with_for_update(skip_locked=True)
    rows = conn.execute(dead.where(deliveries.c.created_at < before).order_by(deliveries.c.created_at)
                        .limit(most)).all()
    if not rows:
        rows = conn.execute(dead.order_by(deliveries.c.created_at.desc()).offset(keep).limit(most)).all()
    drop(conn, rows)
    return len(rows)


def bound(conn: sa.Connection, most_events: int, most: int = BATCH) -> int:
    """Delete the oldest events beyond ``most_events``; return how many, at most ``most``.

    They are counted only if they may be more: there are at most as many as the difference between the newest and the
    oldest id, which also one dead letter makes large.
    """
    first, last = conn.execute(sa.select(sa.func.min(events.c.id), sa.func.max(events.c.id))).one()
    if first is None or last - first < most_events:
        return 0
    newest_gone = conn.scalar(sa.select(events.c.id).order_by(events.c.id.desc()).offset(most_events).limit(1))
    if newest_gone is None:
        return 0
    ids = list(conn.scalars(sa.select(events.c.id).where(events.c.id <= newest_gone)
                            .order_by(events.c.id).limit(most)))
    conn.execute(_DELETE_EVENTS, {"ids": ids})
    return len(ids)


class Outbox(NamedTuple):
    """The outbox in numbers.

    :ivar oldest_s: seconds for which the event has waited that waits longest; 0: none does
    :ivar dead: dead letters, at most ``_MOST_COUNTED``
    """

    oldest_s: float
    dead: int


_MOST_COUNTED = 100_000
OLDEST = (
    sa.select(events.c.created_at).where(events.c.routed == sa.false()).order_by(events.c.id).limit(1),
    sa.select(deliveries.c.created_at).where(deliveries.c.dead == sa.false())
    .order_by(deliveries.c.created_at).limit(1))
_DEAD = sa.select(sa.func.count()).select_from(
    sa.select(deliveries.c.id).where(deliveries.c.dead == sa.true()).limit(_MOST_COUNTED).subquery())


def read(conn: sa.Connection, now: datetime.datetime) -> Outbox:
    """Return the numbers, each from an index."""
    since = [moment for query in OLDEST if (moment := conn.scalar(query)) is not None]
    dead = conn.scalar(_DEAD)
    return Outbox(max(0.0, (now - min(since)).total_seconds()) if since else 0.0, dead or 0)
