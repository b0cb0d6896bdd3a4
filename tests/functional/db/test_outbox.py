"""The outbox on each kind of database: who gets what, once, and how it stays small."""

from __future__ import annotations

import datetime
import threading
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, outbox, webhooks
from ironic_rules.db.session import Database
from ironic_rules.db.tables import event_deliveries, events
from ironic_rules.db.tables import webhooks as webhooks_table
from ironic_rules.models.events import Event, matches
from tests.functional.db.test_many_rows import cost_of


class Wants(NamedTuple):
    id: int
    pattern: str

    def wants(self, event_type: str, level: str) -> bool:
        return matches(event_type, [self.pattern])


@pytest.fixture
def wanting(db: Database) -> Any:
    outbox.want(db.engine, outbox.Wanted("info", True, "conductor-1"))
    yield db
    db.engine.update_execution_options(**{"ironic_rules.events": None})


def add(db: Database, number: int, name: str = "a") -> None:
    db.write(lambda conn: outbox.add(conn, [
        Event(f"baremetal.{name}.update.end", f"nodes/{each}", "ironic/NodePayload/1.17", '{"a": 1}')
        for each in range(number)]))


def count(db: Database, table: sa.Table) -> int:
    with db.reader() as conn:
        found: int = conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    return found


def routed(db: Database, *receivers: Wants) -> int:
    return db.write(lambda conn: outbox.route(conn, lambda conn: receivers))


def test_nothing_is_stored_while_nothing_is_wanted(db: Database) -> None:
    add(db, 3)
    assert count(db, events) == 0


def test_each_receiver_gets_what_it_wants_and_the_rest_is_forgotten(wanting: Database) -> None:
    add(wanting, 2)
    add(wanting, 1, "b")
    add(wanting, 1, "c")
    assert routed(wanting, Wants(0, "*.a.*"), Wants(7, "*.[ab].*")) == 4
    assert (count(wanting, events), count(wanting, event_deliveries)) == (3, 5)
    assert routed(wanting, Wants(0, "*")) == 0
    for receiver, expected in ((0, ["a", "a"]), (7, ["a", "a", "b"])):
        found = wanting.write(lambda conn: outbox.claim(conn, receiver, 10, "w"))  # noqa: B023
        assert [each.event.type.split(".")[1] for each in found] == expected
        assert wanting.write(lambda conn: outbox.claim(conn, receiver, 10, "v")) == []  # noqa: B023
        wanting.write(lambda conn: outbox.finish(conn, "w", found))  # noqa: B023
    assert (count(wanting, events), count(wanting, event_deliveries)) == (0, 0)


def test_conductors_at_the_same_time_claim_different_deliveries(wanting: Database) -> None:
    add(wanting, 60)
    claimed: list[int] = []

    def work(name: str) -> None:
        routed(wanting, Wants(3, "*"))
        while found := wanting.write(lambda conn: outbox.claim(conn, 3, 7, name)):
            claimed.extend(each.id for each in found)

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 60


def test_a_failure_is_due_again_and_what_a_dead_conductor_has_claimed_too(wanting: Database) -> None:
    add(wanting, 2)
    routed(wanting, Wants(3, "*"))
    now = clock.now()
    first, second = wanting.write(lambda conn: outbox.claim(conn, 3, 10, "w"))
    wanting.write(lambda conn: outbox.finish(conn, "w", failed=[outbox.Failure(first.id, "503", now)],
                                             untried=[(second.id, now)]))
    again = wanting.write(lambda conn: outbox.claim(conn, 3, 10, "dies"))
    assert [each.attempts for each in again] == [1, 0]
    with wanting.writer() as conn:
        conn.execute(sa.update(event_deliveries).values(due_at=now))  # its lease is over
    assert len(wanting.write(lambda conn: outbox.claim(conn, 3, 10, "lives"))) == 2
    # The late one changes nothing.
    wanting.write(lambda conn: outbox.finish(conn, "dies", again))
    assert count(wanting, event_deliveries) == 2
    wanting.write(lambda conn: outbox.finish(conn, "lives", failed=[
        outbox.Failure(first.id, "410", None), outbox.Failure(second.id, "410", None)]))
    with wanting.reader() as conn:
        assert outbox.read(conn, clock.now()) == (0.0, 2)


def test_what_waits_too_long_is_given_up_and_too_many_are_deleted(wanting: Database) -> None:
    add(wanting, 20)
    routed(wanting, Wants(outbox.BUS, "*"), Wants(3, "*"))
    later = clock.now() + datetime.timedelta(hours=1)
    with wanting.reader() as conn:
        assert 0 < outbox.read(conn, later).oldest_s < 3700
    assert wanting.write(lambda conn: outbox.give_up(conn, later)) == 40
    with wanting.reader() as conn:
        assert outbox.read(conn, later) == (0.0, 20)
    assert wanting.write(lambda conn: outbox.prune_dead(conn, clock.now() - datetime.timedelta(hours=1), 15)) == 5
    assert wanting.write(lambda conn: outbox.prune_dead(conn, later, 15)) == 15
    assert (count(wanting, events), count(wanting, event_deliveries)) == (0, 0)
    add(wanting, 30)
    while wanting.write(lambda conn: outbox.bound(conn, 10, most=5)):
        pass
    assert count(wanting, events) == 10



def test_the_last_two_receivers_of_an_event_at_the_same_time_leave_nothing(wanting: Database) -> None:
    add(wanting, 3)
    routed(wanting, Wants(0, "*"), Wants(3, "*"))
    first, second = (wanting.write(lambda conn: outbox.claim(conn, receiver, 10, "w"))  # noqa: B023
                     for receiver in (0, 3))
    other = threading.Thread(target=lambda: wanting.write(lambda conn: outbox.finish(conn, "w", second)))
    with wanting.writer() as conn:
        outbox.finish(conn, "w", first)
        other.start()
        other.join(0.3)
    other.join()
    assert (count(wanting, events), count(wanting, event_deliveries)) == (0, 0)


def test_a_dead_letter_stays_while_there_are_few_events(wanting: Database) -> None:
    add(wanting, 30)
    with wanting.writer() as conn:
        ids = list(conn.scalars(sa.select(events.c.id).order_by(events.c.id)))
        conn.execute(sa.delete(events).where(events.c.id.in_(ids[1:-1])))
    assert wanting.write(lambda conn: outbox.bound(conn, 10)) == 0
    assert count(wanting, events) == 2


def test_a_new_webhook_gets_nothing_of_one_that_was_deleted(wanting: Database) -> None:
    def made(name: str) -> int:
        return wanting.write(lambda conn: webhooks.create(conn, {
            "name": name, "url": "https://hooks.example.com/", "secret": "whsec_x", "events": ["*"], "level": "debug",
            "enabled": True})).id

    old = made("old")
    add(wanting, 3)
    routed(wanting, Wants(old, "*"))
    wanting.write(lambda conn: webhooks.WEBHOOKS.destroy(conn, old))
    new = made("new")
    assert wanting.write(lambda conn: outbox.claim(conn, new, 10, "w")) == []
    wanting.write(lambda conn: webhooks.WEBHOOKS.destroy(conn, new))


def test_a_large_outbox_is_read_by_its_indexes(wanting: Database) -> None:
    now = clock.now()
    rows = [{"uuid": "u", "created_at": now, "type": "t", "level": "info", "subject": "s", "payload_type": "p",
             "service": "s", "host": "h", "context": {}, "payload": "{}", "routed": True} for _ in range(5000)]
    with wanting.writer() as conn:
        conn.execute(sa.insert(events), rows)
        ids = list(conn.scalars(sa.select(events.c.id)))
        conn.execute(sa.insert(event_deliveries), [
            {"event_id": each, "webhook_id": each % 2, "dead": False, "attempts": 0, "created_at": now, "due_at": now}
            for each in ids])
    if wanting.dialect != "sqlite":
        with wanting.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            for name in ("events", "event_deliveries"):
                conn.execute(sa.text(f"ANALYZE {'TABLE ' if wanting.dialect == 'mysql' else ''}{name}"))
    explain = "EXPLAIN QUERY PLAN" if wanting.dialect == "sqlite" else "EXPLAIN"
    queries = [
        (outbox.DUE.limit(50), "event_deliveries_due_idx"),
        (outbox.OLDEST[0], "events_routed_id_idx"), (outbox.OLDEST[1], "event_deliveries_dead_idx"),
        (outbox.unrouted(500), "events_routed_id_idx"),
    ]
    with wanting.reader() as conn:
        for query, index in queries:
            compiled = query.params(receiver=1, now=now).compile(
                wanting.engine, compile_kwargs={"literal_binds": True})
            plan = str(conn.exec_driver_sql(f"{explain} {compiled}".replace("%", "%%")).all())
            assert index in plan, plan
    with wanting.writer() as conn:
        conn.execute(sa.insert(webhooks_table).values(
            id=1, uuid="u", url="https://hooks.example.com/", secret="whsec_x", events=["*"], level="info",
            enabled=True, created_at=now))
    found, read = cost_of(wanting, lambda conn: webhooks.drop_orphans(conn, 500))
    with wanting.writer() as conn:
        conn.execute(sa.delete(webhooks_table))
    assert (found, read < 500) == (0, True), read
