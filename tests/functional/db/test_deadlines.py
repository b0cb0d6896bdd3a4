"""A server that becomes silent, and what waits for too long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.db import migration, nodes
from ironic_rules.db.deadlines import Watchdog
from ironic_rules.db.errors import DatabaseBusy
from ironic_rules.db.session import Database
from tests.functional import databases
from tests.functional.processes import wait_for
from tests.functional.relay import Relay

SLEEP = {"mysql": "SELECT SLEEP(30)", "postgresql": "SELECT pg_sleep(30)"}
#: MariaDB's SLEEP() is cancelled without an error.
LONG = {**SLEEP, "mysql": "SELECT sum(a.seq * b.seq) FROM seq_1_to_100000000 AS a, seq_1_to_1000 AS b"}
PORTS = {"mysql": 3306, "postgresql": 5432}


@pytest.fixture(scope="module", params=["mysql", "postgresql"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with databases.migrated_database(request.param) as url:
        yield url


@contextlib.contextmanager
def opened(url: str, **options: Any) -> Iterator[Database]:
    database = databases.open_database(url, **options)
    try:
        yield database
    finally:
        database.dispose()


@contextlib.contextmanager
def relayed(url: str) -> Iterator[tuple[Relay, str]]:
    server = sa.make_url(url)
    relay = Relay(server.host or "127.0.0.1", server.port or PORTS[server.get_backend_name()])
    try:
        yield relay, server.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False)
    finally:
        relay.cut()


def new_node(db: Database) -> int:
    return int(db.write(lambda conn: nodes.create(conn, {"driver": "d"})).id)


def took(call: Any) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def test_the_server_cancels_a_statement_that_takes_too_long(url: str) -> None:
    with opened(url, statement_timeout=1) as db:
        def wait() -> None:
            with pytest.raises(DatabaseBusy), db.reader() as conn:
                conn.execute(sa.text(LONG[db.dialect]))

        assert took(wait) < 4
        assert new_node(db)


def test_a_wait_for_a_lock_ends_and_is_not_repeated(url: str) -> None:
    with opened(url, lock_timeout=1) as db, opened(url) as other:
        node = new_node(db)
        with other.writer() as conn:
            nodes.get_by_id(conn, node, for_update=True)

            def wait() -> None:
                with pytest.raises(DatabaseBusy):
                    db.write(lambda conn: nodes.update(conn, node, {"name": "x"}))

            assert took(wait) < 4


def test_a_row_that_is_locked_is_skipped_at_once(url: str) -> None:
    with opened(url) as db, opened(url) as other:
        node, free = new_node(db), new_node(db)
        with other.writer() as conn:
            nodes.get_by_id(conn, node, for_update=True)
            assert took(lambda: db.write(lambda conn: nodes.is_lockable(conn, node))) < 2
            assert [db.write(lambda conn, one=one: nodes.is_lockable(conn, one)) for one in (node, free)] == [
                False, True]


def test_the_server_ends_a_transaction_in_which_nothing_happens(url: str) -> None:
    with opened(url, idle_transaction_timeout=1) as db, opened(url) as other:
        node = new_node(db)
        with pytest.raises(db_exc.DBConnectionError), db.writer() as conn:
            nodes.update(conn, node, {"name": "stale"})
            wait_for("the row", lambda: other.write(lambda conn: nodes.is_lockable(conn, node)), 10)
            nodes.update(conn, node, {"name": "staler"})
        with db.reader() as conn:
            assert nodes.get_by_id(conn, node).name is None


@pytest.mark.parametrize("commits", [False, True], ids=["statement", "commit"])
def test_a_server_that_becomes_silent_is_given_up(url: str, commits: bool) -> None:
    with relayed(url) as (relay, through), opened(through, statement_timeout=1) as db:
        # Seconds that the server's reply may take are in addition.
        assert db._watchdog is not None
        db._watchdog._limit_s = 1.5
        node = new_node(db)

        def wait() -> None:
            with pytest.raises(db_exc.DBConnectionError), db.writer() as conn:
                if commits:
                    nodes.update(conn, node, {"name": "lost"})
                relay.is_silent = True
                if not commits:
                    nodes.update(conn, node, {"name": "lost"})

        assert took(wait) < 6
        relay.is_silent = False
        # The other connections of the pool are replaced without waiting for each.
        assert took(lambda: [new_node(db) for _ in range(3)]) < 3


def test_a_migration_has_no_deadline(url: str) -> None:
    with opened(url, statement_timeout=1) as db, migration._engine(db.engine) as engine, engine.connect() as conn:
        conn.execute(sa.text(SLEEP[db.dialect].replace("30", "1.5")))
        assert not {"read_timeout", "tcp_user_timeout"} & set(engine.url.query)


def test_the_watchdog_leaves_alone_what_is_in_time() -> None:
    now = [0.0]
    watchdog = Watchdog(10, lambda: now[0])
    shut = threading.Event()

    class Connection:
        def fileno(self) -> int:
            shut.set()
            raise OSError

    with watchdog.over(Connection()):
        now[0] = 9.9
        assert watchdog.look()
        assert not shut.is_set()
        now[0] = 10.0
        watchdog.look()
        assert shut.is_set()
    assert not watchdog.look()
    watchdog.stop()


def test_a_watchdog_that_was_stopped_starts_again_with_the_next_statement_and_only_once() -> None:
    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "database-watchdog"]

    others = set(threads())
    watchdog = Watchdog(10)
    for _ in range(2):
        started = set()
        for _ in range(3):
            with watchdog.over(object()):
                started |= set(threads()) - others
        assert len(started) == 1
        watchdog.stop()
        assert set(threads()) <= others
