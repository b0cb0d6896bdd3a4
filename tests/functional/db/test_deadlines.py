"""A server that becomes silent, and what waits for too long."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ironic_rules.conductor import recovery
from ironic_rules.db import conductors, migration, nodes
from ironic_rules.db.deadlines import Watchdog
from ironic_rules.db.errors import DatabaseBusy
from ironic_rules.db.session import Database
from tests.functional import databases
from tests.functional.processes import in_time, wait_for
from tests.functional.relay import Relay
from tests.functional.whole import configuration, make_conductor

SLEEP = {"mysql": "SELECT SLEEP(600)", "postgresql": "SELECT pg_sleep(600)"}
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


def test_the_server_cancels_a_statement_that_takes_too_long(url: str) -> None:
    with opened(url, statement_timeout=1) as db:
        with in_time(), pytest.raises(DatabaseBusy), db.reader() as conn:
            conn.execute(sa.text(LONG[db.dialect]))
        assert new_node(db)


def test_a_wait_for_a_lock_ends_and_is_not_repeated(url: str) -> None:
    with opened(url, lock_timeout=1) as db, opened(url) as other:
        node = new_node(db)
        with other.writer() as conn:
            nodes.get_by_id(conn, node, for_update=True)
            with in_time(), pytest.raises(DatabaseBusy):
                db.write(lambda conn: nodes.update(conn, node, {"name": "x"}))


def test_a_row_that_is_locked_is_skipped_at_once(url: str) -> None:
    with opened(url) as db, opened(url) as other:
        node, free = new_node(db), new_node(db)
        with other.writer() as conn:
            nodes.get_by_id(conn, node, for_update=True)
            assert [db.write(lambda conn, one=one: nodes.is_lockable(conn, one)) for one in (node, free)] == [
                False, True]


def test_the_server_ends_a_transaction_in_which_nothing_happens(url: str) -> None:
    with opened(url, idle_transaction_timeout=1) as db, opened(url) as other:
        node = new_node(db)
        with pytest.raises(db_exc.DBConnectionError), db.writer() as conn:
            nodes.update(conn, node, {"name": "stale"})
            wait_for("the row", lambda: other.write(lambda conn: nodes.is_lockable(conn, node)))
            nodes.update(conn, node, {"name": "staler"})
        with db.reader() as conn:
            assert nodes.get_by_id(conn, node).name is None


def test_a_session_that_the_server_ends_while_it_is_prepared_is_a_lost_connection(
        url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without processor time for so long; the request is then answered with 503."""
    with opened(url, idle_transaction_timeout=1) as db:
        driver = type(db.engine.raw_connection().driver_connection)
        db.engine.dispose()
        commit, stalled = driver.commit, threading.Event()

        def late(connection: Any) -> None:
            if not stalled.is_set():
                stalled.set()
                time.sleep(1.5)  # longer than the server allows
            commit(connection)

        monkeypatch.setattr(driver, "commit", late)
        with pytest.raises(db_exc.DBConnectionError) if db.dialect == "postgresql" else contextlib.nullcontext(), \
                db.reader() as conn:
            conn.scalar(sa.text("SELECT 1"))
        assert stalled.is_set()
        with db.reader() as conn:
            assert conn.scalar(sa.text("SELECT 1")) == 1


def send_a_part(driver_connection: Any, of: str) -> None:
    """Send what the network has delivered of a statement, or of a batch, when it loses the client."""
    if isinstance(driver_connection, psycopg.Connection):
        pgconn = driver_connection.pgconn
        pgconn.nonblocking = 1
        pgconn.enter_pipeline_mode()
        # psycopg begins a batch with the end of prepared statements that it has not used for long.
        pgconn.send_query_params(b"SELECT 1", None) if of == "statement" else pgconn.send_close_prepared(b"old")
        pgconn.flush()
    else:
        driver_connection._sock.sendall({"statement": b"\x00\x40\x00\x00\x03SELECT ", "batch": b"\x00\x40"}[of])


@contextlib.contextmanager
def half_written(lost: Database, node: int, of: str) -> Iterator[None]:
    """Yield while a transaction has locked a node and sent a part of its next statement; check that it is lost."""
    connection = lost.engine.connect()
    try:
        nodes.update(connection, node, {"name": "stale"}, unlocked=False)
        send_a_part(connection.connection.driver_connection, of)
        yield
        with pytest.raises((sa.exc.OperationalError, db_exc.DBConnectionError)):
            connection.commit()
    finally:
        connection.invalidate()
        connection.close()


@pytest.mark.parametrize("of", ["statement", "batch"])
def test_a_transaction_ends_of_whose_next_statement_only_a_part_arrives(url: str, of: str) -> None:
    with opened(url, idle_transaction_timeout=1) as lost, opened(url) as db:
        node = new_node(db)
        # A user of the same role, and a migration, may take their time.
        user = sa.create_engine(url, poolclass=sa.NullPool)
        with half_written(lost, node, of), db.reader() as quiet, user.connect() as slow:
            assert quiet.scalar(sa.text("SELECT 1")) == slow.scalar(sa.text("SELECT 1")) == 1
            assert not db.write(lambda conn: nodes.is_lockable(conn, node))
            assert conductors.end_stalled_sessions(db, 60) == conductors.end_stalled_sessions(db, 0) == 0
            wait_for("the session", lambda: conductors.end_stalled_sessions(db, 1) == (db.dialect == "postgresql"))
            wait_for("the row", lambda: db.write(lambda conn: nodes.is_lockable(conn, node)))
            assert quiet.scalar(sa.text("SELECT 1")) == slow.scalar(sa.text("SELECT 1")) == 1
        with db.reader() as conn:
            assert nodes.get_by_id(conn, node).name is None


def test_recovery_ends_such_a_transaction_of_a_conductor_that_is_gone(url: str, tmp_path: Path) -> None:
    with opened(url, idle_transaction_timeout=1) as lost, opened(url) as db:
        conductor = make_conductor(configuration(tmp_path, "[database]\nidle_transaction_timeout = 1"), db)
        db.write(lambda conn: conductors.register(conn, conductor.host, conductor.group, {}, conductor.instance))
        node = new_node(db)
        db.write(lambda conn: nodes.update(
            conn, node, {"conductor_group": conductor.group, "reservation": "gone"}, unlocked=False))

        def is_released() -> bool:
            recovery.resume_orphans(conductor)
            with db.reader() as conn:
                return nodes.get_by_id(conn, node).reservation is None

        try:
            with half_written(lost, node, "batch"):
                assert not is_released()
                wait_for("the node", is_released)
        finally:
            conductor.workers.stop(10)


def test_recovery_does_not_depend_on_the_sessions_of_the_database(
        url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(conductors, "_END", sa.text("SELECT x FROM nowhere"))
    with opened(url) as db:
        conductor = make_conductor(configuration(tmp_path), db)
        try:
            recovery.resume_orphans(conductor)
        finally:
            conductor.workers.stop(10)
        assert ("cannot be read" in caplog.text) == (db.dialect == "postgresql")


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("given", "name"), [("", "ironic-rules"), ("mine", "mine ironic-rules")])
def test_sessions_have_a_name(url: str, given: str, name: str) -> None:
    named = sa.make_url(url).update_query_dict({"application_name": given} if given else {})
    with opened(named.render_as_string(hide_password=False)) as db, db.reader() as conn:
        assert conn.scalar(sa.text("SELECT current_setting('application_name')")) == name


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_the_server_looks_whether_a_client_is_there(url: str) -> None:
    query = sa.text("SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_keepalives_%'")
    with opened(url) as db, db.reader() as conn:
        assert {name: int(setting) for name, setting in conn.execute(query)} == {
            "tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}


@pytest.mark.parametrize("commits", [False, True], ids=["statement", "commit"])
def test_a_server_that_becomes_silent_is_given_up(url: str, commits: bool) -> None:
    with relayed(url) as (relay, through), opened(through, statement_timeout=1) as db:
        # Seconds that the server's reply may take are in addition.
        assert db._watchdog is not None
        db._watchdog._limit_s = 1.5
        node = new_node(db)

        with in_time(), pytest.raises(db_exc.DBConnectionError), db.writer() as conn:
            if commits:
                nodes.update(conn, node, {"name": "lost"})
            relay.is_silent = True
            if not commits:
                nodes.update(conn, node, {"name": "lost"})

        relay.is_silent = False
        # The other connections of the pool are replaced without waiting for each.
        db._watchdog._limit_s = 120
        with in_time():
            for _ in range(3):
                new_node(db)


def test_a_migration_has_no_deadline(url: str) -> None:
    with opened(url, statement_timeout=1) as db, migration._engine(db.engine) as engine, engine.connect() as conn:
        conn.execute(sa.text(SLEEP[db.dialect].replace("600", "1.5")))
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
