"""The deliveries of events: what the outbox has is sent to each receiver, and none of them waits for another one.

One thread looks for new events and makes their deliveries; each receiver with some that are due gets a thread for as
long as there are any. Several conductors share the work: each claims some.
"""

from __future__ import annotations

import datetime
import functools
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from oslo_log import log as logging

from ironic_rules.conductor.conductor import Conductor
from ironic_rules.db import clock, outbox, webhooks
from ironic_rules.db.errors import DATABASE_AWAY
from ironic_rules.db.outbox import Delivery, Receiver, Wanted
from ironic_rules.models.webhooks import Webhook
from ironic_rules.rpc.notifications import NotSent

LOG = logging.getLogger(__name__)

#: Seconds in which further events join those that have come: one transaction for many costs as much as for one.
_GATHER_S = 0.2
#: Notifications that one claim has.
_AT_ONCE = 200
#: Events that one claim has of a webhook.
_POSTED_AT_ONCE = 20
#: Seconds after which the rest of a claim is left to others: before its lease ends.
_LATEST_S = outbox.LEASE_S / 2
#: Seconds between two looks for what is too old, or too much.
PRUNE_EVERY_S = 60.0
#: Transactions of one pass that delete rows of one kind: the process may have to end.
_MOST_BATCHES = 200
#: Dead letters that are kept at most.
_MOST_DEAD = 10_000


def backoff(attempts: int) -> datetime.timedelta:
    """Return how long to wait after a failure: twice as long after each, at most an hour, and up to a half less.

    The share is random, so that receivers which were unavailable do not get all at the same moment.

    :param attempts: those before
    """
    longest_s = min(_FIRST_S * 2.0 ** min(attempts, 30), _LONGEST_S)
    return datetime.timedelta(seconds=longest_s * random.uniform(0.5, 1.0))


#: Seconds after the first failure, and after any.
_FIRST_S, _LONGEST_S = 5.0, 3600.0


class Sender(Receiver, Protocol):
    """A receiver of events that is reached by ``send``."""

    def send(self, event: Any) -> None:
        """Send an event, and wait until it has arrived."""


class Deliveries:
    """``start``, ``stop`` and ``wait`` of the deliveries that a conductor makes."""

    def __init__(self, conductor: Conductor, wanted: Wanted, bus: Sender | None) -> None:
        self._conductor, self._db, self._wanted, self._bus = conductor, conductor.db, wanted, bus
        self._stopped = threading.Event()
        self._guard = threading.Lock()
        #: the receivers to which a thread of this process sends
        self._busy: set[int] = set()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the events that are being sent. The next process sends those that a receiver does not take."""
        self._stopped.set()
        self._wanted.stored.set()

    def wait(self, timeout_s: float) -> None:
        """Wait for the end."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self._wanted.stored.wait(self._conductor.conf.events.interval):
                self._wanted.stored.clear()
                self._stopped.wait(_GATHER_S)
            try:
                self.work()
            except DATABASE_AWAY as exc:
                LOG.warning("Events wait, because the database is not available: %s", exc)
            except Exception:  # a pass that fails must not stop the loop
                LOG.exception("Events wait, because they could not be read")

    def work(self) -> None:
        """Make the deliveries of new events, and let what is due be sent."""
        # One that is empty costs a look into an index, and no transaction.
        while self._has_new() and self._db.write(lambda conn: outbox.route(conn, self._receivers)) == outbox.BATCH:
            pass
        with self._db.reader() as conn:
            due = self._due(conn)
        for receiver, send in due:
            self._begin(receiver, send)

    def _has_new(self) -> bool:
        with self._db.reader() as conn:
            return conn.execute(outbox.unrouted(1)).first() is not None

    def _receivers(self, conn: sa.Connection) -> Sequence[Receiver]:
        receivers: list[Receiver] = [] if self._bus is None else [self._bus]
        return [*receivers, *(webhooks.receivers(conn) if self._wanted.others else ())]

    def _due(self, conn: sa.Connection) -> list[tuple[int, Callable[[], None]]]:
        """Return the receivers with deliveries that are due, and the functions that send these."""
        senders: list[tuple[int, Callable[[], None]]] = []
        if self._bus is not None and self._bus.id not in self._busy and outbox.has_due(conn, self._bus.id):
            senders = [(self._bus.id, self._notify)]
        if self._wanted.others:
            ids = webhooks.due(conn)
            # Slow ones must not always be the first.
            random.shuffle(ids)
            senders += [(webhook_id, functools.partial(self._post, webhook_id)) for webhook_id in ids]
        return senders

    def _begin(self, receiver: int, send: Callable[[], None]) -> None:
        with self._guard:
            posting = len(self._busy - {outbox.BUS})
            if receiver in self._busy or self._stopped.is_set() or (
                    receiver != outbox.BUS and posting >= self._conductor.conf.events.webhook_workers):
                return
            self._busy.add(receiver)

        def run() -> None:
            try:
                send()
            except DATABASE_AWAY as exc:
                LOG.warning("Events wait, because the database is not available: %s", exc)
            except Exception:  # they are due again when the lease ends
                LOG.exception("Events could not be sent")
            finally:
                with self._guard:
                    self._busy.discard(receiver)

        # Not a pool, which would wait at the end of the process for a receiver that does not answer.
        threading.Thread(target=run, name=f"events-{receiver}", daemon=True).start()

    def _notify(self) -> None:
        bus, numbers = self._bus, self._conductor.numbers
        assert bus is not None
        while not self._stopped.is_set():
            worker = str(uuid.uuid4())
            claimed = self._db.write(lambda conn: outbox.claim(conn, bus.id, _AT_ONCE, worker))  # noqa: B023
            if not claimed:
                return
            began, delivered, failed = time.monotonic(), [], []
            due_at = clock.now()
            for delivery in claimed:
                if self._stopped.is_set() or time.monotonic() - began > _LATEST_S:
                    break
                try:
                    bus.send(delivery.event)
                except NotSent as exc:
                    LOG.warning("Notifications wait, because one cannot be sent: %s", exc)
                    due_at = clock.now() + backoff(delivery.attempts)
                    failed = [outbox.Failure(delivery.id, str(exc), due_at)]
                    break
                delivered.append(delivery)
            remaining = [(delivery.id, due_at) for delivery in claimed[len(delivered) + len(failed):]]
            self._db.write(lambda conn: outbox.finish(conn, worker, delivered, failed, remaining))  # noqa: B023
            numbers.count("events_delivered", "notifications", "delivered", by=len(delivered))
            if failed:
                numbers.count("events_delivered", "notifications", "failed")
                return

    def _post(self, webhook_id: int) -> None:
        """Send the events that are due to a webhook, until none is left, or its receiver has to be left alone."""
        while not self._stopped.is_set():
            worker = str(uuid.uuid4())

            def claim(conn: sa.Connection) -> tuple[Webhook | None, list[Delivery]]:
                webhook = webhooks.find(conn, webhook_id)
                return webhook, [] if webhook is None else outbox.claim(
                    conn, webhook_id, _POSTED_AT_ONCE, worker)  # noqa: B023

            webhook, claimed = self._db.write(claim)
            if webhook is None or not claimed or not self._posted(webhook, claimed, worker):
                return

    def _posted(self, webhook: Webhook, claimed: list[Delivery], worker: str) -> bool:
        """Send events to a webhook, and note the results; return whether more may be sent."""
        from ironic_rules.conductor.webhooks import send  # here, because httpx takes much memory

        began, delivered, failed, last = time.monotonic(), [], [], None
        for delivery in claimed:
            if self._stopped.is_set() or time.monotonic() - began > _LATEST_S:
                break
            last = send(self._conductor.conf, webhook, delivery)
            if last is None:
                delivered.append(delivery)
                continue
            failed.append(outbox.Failure(delivery.id, last.reason, clock.now() + backoff(delivery.attempts)))
            if not last.of_event or last.is_final:
                break
        now, must_wait = clock.now(), last is not None and not last.of_event
        due_at = now
        if last is not None and must_wait:
            due_at = now + max(backoff(webhook.failures), datetime.timedelta(seconds=last.retry_s))
        remaining = [(delivery.id, due_at) for delivery in claimed[len(delivered) + len(failed):]]

        def finish(conn: sa.Connection) -> None:
            outbox.finish(conn, worker, delivered, failed, remaining)
            if delivered:
                webhooks.note_success(conn, webhook.id)
            if failed:
                reason = failed[-1].error
                webhooks.note_failure(conn, webhook.id, reason, due_at if must_wait else None,
                                      disable=last is not None and last.is_final)

        self._db.write(finish)
        name = webhook.name or webhook.uuid
        for outcome, number in (("delivered", len(delivered)), ("failed", len(failed))):
            if number:
                self._conductor.numbers.count("events_delivered", name, outcome, by=number)
        if failed:
            tell = LOG.warning if not webhook.failures else LOG.info
            tell("Webhook %s: %d events have not arrived: %s", name, len(failed), failed[-1].error)
        if last is not None and last.is_final:
            LOG.warning("Webhook %s is disabled: its receiver has replied with 410", name)
        return not must_wait and not (last is not None and last.is_final)


def prune(conductor: Conductor) -> None:
    """Give up what has waited for too long, and delete what is too much, also while events are switched off."""
    options, now, numbers = conductor.conf.events, clock.now(), conductor.numbers
    oldest = now - datetime.timedelta(hours=options.keep_hours)
    with conductor.db.reader() as conn:
        is_off = outbox.wanted(conn) is None
    # Otherwise a conductor makes their deliveries.
    forgotten = _repeat(conductor, lambda conn: outbox.forget_unrouted(conn, oldest)) if is_off else 0
    given_up = _repeat(conductor, lambda conn: outbox.give_up(conn, oldest))
    deleted = _repeat(conductor, lambda conn: outbox.bound(conn, options.max_events))
    before = now - datetime.timedelta(days=options.dead_letter_days)
    _repeat(conductor, lambda conn: outbox.prune_dead(conn, before, _MOST_DEAD))
    _repeat(conductor, lambda conn: webhooks.drop_orphans(conn, outbox.BATCH))
    if forgotten:
        LOG.warning("%d events were deleted: notifications and webhooks are switched off for %d hours "
                    "([events]keep_hours)", forgotten, options.keep_hours)
    if given_up:
        LOG.error("%d deliveries of events were given up: they could not be made for %d hours "
                  "([events]keep_hours)", given_up, options.keep_hours)
    if deleted:
        LOG.error("%d events were deleted that not all receivers have: more than %d waited ([events]max_events)",
                  deleted, options.max_events)
    for outcome, number in (("given up", given_up), ("deleted", forgotten + deleted)):
        if number:
            numbers.count("events_delivered", "any", outcome, by=number)


def _repeat(conductor: Conductor, work: Callable[[sa.Connection], int]) -> int:
    total = 0
    for _ in range(_MOST_BATCHES):
        number = conductor.db.write(work)
        if not number:
            break
        total += number
    return total
