"""SQLite's own needs: one writer at a time, and connections whose page caches stay useful."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from ironic_rules.db import sqlite
from ironic_rules.db.errors import DatabaseBusy
from ironic_rules.db.session import Database
from tests.functional import databases
from tests.functional.db.concurrency import at_once


@pytest.fixture
def database() -> Iterator[Database]:
    with databases.migrated_database("sqlite") as url:
        opened = databases.open_database(url)
        opened.write(lambda conn: None)
        yield opened
        opened.dispose()


def _connection(conn: sa.Connection) -> int:
    return id(conn.connection.dbapi_connection)


def test_writers_one_after_the_other_have_the_same_connection(database: Database) -> None:
    # What another connection writes empties the page cache of the others.
    with database.reader(), database.reader(), database.reader():
        pass
    used: set[int] = set()
    inside = threading.Semaphore(0)

    def write() -> None:
        inside.release()
        database.write(lambda conn: used.add(_connection(conn)))

    with database.writer() as conn:
        used.add(_connection(conn))
        waiting = [threading.Thread(target=write) for _ in range(4)]
        for thread in waiting:
            thread.start()
        for _ in waiting:
            inside.acquire()
    for thread in waiting:
        thread.join()
    assert len(used) == 1


def test_readers_take_turns(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_READ_PATIENCE_S", 30)
    used: set[int] = set()
    inside: list[int] = []
    most: list[int] = []

    def read() -> None:
        for _ in range(20):
            with database.reader() as conn:
                inside.append(1)
                used.add(_connection(conn))
                assert conn.scalar(sa.text("SELECT 7")) == 7
                most.append(len(inside))
                inside.pop()

    at_once([read] * 4)
    assert (len(most), max(most), len(used)) == (80, 1, 1)


def test_readers_do_not_wait_for_one_that_takes_long(database: Database) -> None:
    found: list[int] = []

    def read() -> None:
        with database.reader() as conn, database.reader() as inner:
            found.extend((_connection(conn), _connection(inner), conn.scalar(sa.text("SELECT 7"))))

    with database.reader() as conn:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join(60)
        assert found[2:] == [7]
        assert len({*found[:2], _connection(conn)}) == 3


def test_a_file_that_another_process_writes_is_a_busy_database_in_time(
        database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    file = database.engine.url.database
    assert file is not None
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 2000)
    left: list[float] = []
    begin = sqlite.begin_writing
    monkeypatch.setattr(sqlite, "begin_writing", lambda conn, left_s: (left.append(left_s), begin(conn, left_s)))
    database.dispose()
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = at_once([lambda: database.write(lambda conn: None)] * 4)
        # Not first for a turn, and then as long again for the file.
        assert sorted(left)[-2] < 1 < max(left)
        assert [type(error) for error in refused] == [DatabaseBusy] * 4
        # As without another writer: readers do not wait, and later writers wait as long as these.
        with database.reader() as conn:
            assert conn.exec_driver_sql("PRAGMA busy_timeout").scalar() == 2000
        other.execute("ROLLBACK")
    assert at_once([lambda: database.write(_increased)] * 4) == [None] * 4
    with database.reader() as conn:
        assert conn.exec_driver_sql("PRAGMA user_version").scalar() == 4


def _increased(conn: sa.Connection) -> None:
    now = conn.exec_driver_sql("PRAGMA user_version").scalar_one()
    conn.exec_driver_sql(f"PRAGMA user_version = {now + 1}")
