"""Webhooks, and the dead letters of each: events that it could not be given."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ironic_rules.db import clock, outbox
from ironic_rules.db.collection import Collection as Rows
from ironic_rules.db.paging import Page
from ironic_rules.db.projection import Row
from ironic_rules.db.tables import event_deliveries as deliveries
from ironic_rules.db.tables import events, webhooks
from ironic_rules.exceptions import (
    MarkerNotFound,
    dead_letter_not_found,
    duplicate_webhook_name,
    too_many_webhooks,
    webhook_already_exists,
    webhook_not_found,
)
from ironic_rules.models.events import is_at_least, matches
from ironic_rules.models.webhooks import MAX_WEBHOOKS, Webhook

WEBHOOKS = Rows(webhooks, "webhook", missing=lambda ident: webhook_not_found(webhook=ident), taken={
    "uuid": lambda values: webhook_already_exists(uuid=values.get("uuid")),
    "name": lambda values: duplicate_webhook_name(name=values.get("name"))})


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
    """A webhook as a receiver of events."""

    id: int
    patterns: Sequence[str]
    level: str

    def wants(self, event_type: str, level: str) -> bool:
        """Return whether it gets events of a type and a level."""
        return is_at_least(level, self.level) and matches(event_type, self.patterns)


def create(conn: sa.Connection, values: dict[str, Any]) -> Webhook:
    """Store a new webhook and return it.

    :raises too_many_webhooks, webhook_already_exists, duplicate_webhook_name: 409
    """
    if (conn.scalar(sa.select(sa.func.count()).select_from(webhooks)) or 0) >= MAX_WEBHOOKS:
        raise too_many_webhooks(most=MAX_WEBHOOKS)
    # SQLite gives a new row the id of the newest one if that was deleted: what waited for it is not for this one.
    while conn.dialect.name == "sqlite" and drop_orphans(conn, _BATCH):
        pass
    webhook: Webhook = WEBHOOKS.create(conn, values)
    return webhook


def receivers(conn: sa.Connection) -> list[WebhookReceiver]:
    """Return the webhooks that get new events."""
    query = sa.select(webhooks.c.id, webhooks.c.events, webhooks.c.level).where(webhooks.c.enabled == sa.true())
    return [WebhookReceiver(*row) for row in conn.execute(query)]


def due(conn: sa.Connection) -> list[int]:
    """Return the ids of the webhooks to which something can be sent now."""
    now = clock.now()
    has_some = sa.exists().where(deliveries.c.webhook_id == webhooks.c.id, deliveries.c.dead == sa.false(),
                                 deliveries.c.due_at <= now)
    may = sa.or_(webhooks.c.retry_at.is_(None), webhooks.c.retry_at <= now)
    return list(conn.scalars(sa.select(webhooks.c.id).where(webhooks.c.enabled == sa.true(), may, has_some)))


def find(conn: sa.Connection, webhook_id: int) -> Webhook | None:
    """Return an enabled webhook; None: there is none, or it waits."""
    query = sa.select(webhooks).where(webhooks.c.id == webhook_id, webhooks.c.enabled == sa.true())
    row: Any = conn.execute(query).one_or_none()
    return None if row is None or (row.retry_at is not None and row.retry_at > clock.now()) else row


def note_success(conn: sa.Connection, webhook_id: int) -> None:
    """Note that a receiver has replied as it should."""
    conn.execute(sa.update(webhooks).where(webhooks.c.id == webhook_id).values(
        failures=0, retry_at=None, last_error=None, delivered_at=clock.now()))


def note_failure(conn: sa.Connection, webhook_id: int, error: str, retry_at: datetime.datetime | None, *,
                 disable: bool = False) -> None:
    """Note that a receiver has not replied as it should.

    :param retry_at: when it is tried again; None: other events are tried at once
    :param disable: it gets nothing any more
    """
    values: dict[str, Any] = {"failures": webhooks.c.failures + 1, "last_error": error[:255], "retry_at": retry_at}
    conn.execute(sa.update(webhooks).where(webhooks.c.id == webhook_id).values(
        {**values, "enabled": False} if disable else values))


_DEAD = sa.select(
    deliveries.c.id, deliveries.c.attempts, deliveries.c.error, events.c.uuid.label("event"), events).join(
    events, events.c.id == deliveries.c.event_id).where(deliveries.c.dead == sa.true())


def dead_letters(conn: sa.Connection, webhook_id: int, page: Page) -> Sequence[Row]:
    """Return a page of the dead letters of a webhook, the oldest first; the marker is the UUID of an event.

    :raises MarkerNotFound: 404
    """
    query = _DEAD.where(deliveries.c.webhook_id == webhook_id)
    if page.marker is not None:
        last = conn.execute(query.where(events.c.uuid == page.marker)).first()
        if last is None:
            raise MarkerNotFound(marker=page.marker)
        query = query.where(deliveries.c.id > last[0])
    return conn.execute(query.order_by(deliveries.c.id).limit(page.limit)).all()


def dead_letter(conn: sa.Connection, webhook: Webhook, event: str) -> Row:
    """Return one dead letter.

    :raises dead_letter_not_found: 404
    """
    query = _DEAD.where(deliveries.c.webhook_id == webhook.id, events.c.uuid == event)
    row = conn.execute(query).first()
    if row is None:
        raise dead_letter_not_found(webhook=webhook.uuid, event=event)
    return row


def _ids(conn: sa.Connection, webhook: Webhook, uuids: Collection[str] | None) -> list[int]:
    """Return the ids of the deliveries of dead letters.

    :param uuids: UUIDs of their events; None: all
    :raises dead_letter_not_found: 404, one of them is none
    """
    query = sa.select(deliveries.c.id, events.c.uuid).join(events, events.c.id == deliveries.c.event_id).where(
        deliveries.c.webhook_id == webhook.id, deliveries.c.dead == sa.true())
    ids = {row.uuid: row.id for row in conn.execute(
        query if uuids is None else query.where(events.c.uuid.in_(uuids)))}
    for event in uuids or ():
        if event not in ids:
            raise dead_letter_not_found(webhook=webhook.uuid, event=event)
    return list(ids.values())


#: Rows of one statement.
_BATCH = 500


def redeliver(conn: sa.Connection, webhook: Webhook, uuids: Collection[str] | None) -> int:
    """Let dead letters be delivered again, as if they were new; return how many.

    :param uuids: UUIDs of their events; None: all
    :raises dead_letter_not_found: 404
    """
    now, ids = clock.now(), _ids(conn, webhook, uuids)
    for start in range(0, len(ids), _BATCH):
        conn.execute(sa.update(deliveries).where(deliveries.c.id.in_(ids[start:start + _BATCH])).values(
            dead=False, attempts=0, created_at=now, due_at=now, error=None, claimed_by=None))
    if ids:
        conn.execute(sa.update(webhooks).where(webhooks.c.id == webhook.id).values(retry_at=None))
    return len(ids)


def forget(conn: sa.Connection, webhook: Webhook, uuids: Collection[str] | None) -> None:
    """Delete dead letters.

    :param uuids: UUIDs of their events; None: all
    :raises dead_letter_not_found: 404
    """
    ids = _ids(conn, webhook, uuids)
    for start in range(0, len(ids), _BATCH):
        of_events = sa.select(deliveries.c.id, deliveries.c.event_id).where(
            deliveries.c.id.in_(ids[start:start + _BATCH]))
        outbox.drop(conn, conn.execute(of_events).all())


def drop_orphans(conn: sa.Connection, most: int) -> int:
    """Delete deliveries to webhooks that were deleted; return how many, at most ``most``."""
    known = set(conn.scalars(sa.select(webhooks.c.id)))
    # From receiver to receiver in the index: a query of all deliveries without a webhook would read all of them.
    receiver = outbox.BUS
    while (receiver := conn.scalar(_NEXT_RECEIVER, {"last": receiver})) in known:
        pass
    if receiver is None:
        return 0
    rows = conn.execute(sa.select(deliveries.c.id, deliveries.c.event_id).where(
        deliveries.c.webhook_id == receiver).limit(most)).all()
    outbox.drop(conn, rows)
    return len(rows)


_NEXT_RECEIVER: sa.Select[int | None] = sa.select(sa.func.min(deliveries.c.webhook_id)).where(
    deliveries.c.webhook_id > sa.bindparam("last"))
