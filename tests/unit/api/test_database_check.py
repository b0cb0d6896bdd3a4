"""A health check of a database that replies, fails, or is silent."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from oslo_db import exception as db_exc

from ironic_rules.api import health
from ironic_rules.api.health import DatabaseCheck, DatabaseCounts
from tests.functional.processes import in_time, wait_for


class Database:
    """Counts how often it is read; while it is silent, nothing is returned."""

    def __init__(self) -> None:
        self.replies = threading.Event()
        self.replies.set()
        self.error: Exception | None = None
        self.reads = 0

    def read(self) -> DatabaseCounts:
        self.reads += 1
        assert self.replies.wait(60)
        if self.error is not None:
            raise self.error
        return DatabaseCounts(self.reads, 0)


@pytest.fixture
def database(monkeypatch) -> Iterator[Database]:
    monkeypatch.setattr(health, "FRESH_S", 0)
    made = Database()
    yield made
    made.replies.set()


def test_each_request_reads(database, monkeypatch):
    monkeypatch.setattr(health, "SHORT_PATIENCE_S", 60)
    monkeypatch.setattr(health, "PATIENCE_S", 60)
    check = DatabaseCheck(database.read)

    assert [check.state().found for _ in range(3)] == [DatabaseCounts(1, 0), DatabaseCounts(2, 0), DatabaseCounts(3, 0)]


@pytest.mark.parametrize("error", [db_exc.DBConnectionError(), RuntimeError("a bug")])
def test_a_database_that_cannot_be_read_is_missed_and_named(database, monkeypatch, caplog, error):
    monkeypatch.setattr(health, "SHORT_PATIENCE_S", 60)
    monkeypatch.setattr(health, "PATIENCE_S", 60)
    check = DatabaseCheck(database.read)
    check.state()
    database.error = error

    is_ok, found, age_s = check.state()

    assert (is_ok, found) == (False, None)
    assert age_s is not None
    assert "cannot be read for a health check" in caplog.text
    database.error = None
    assert check.state().is_ok is True


def test_a_silent_database_holds_one_thread_and_is_missed_when_the_last_result_is_old(database, monkeypatch):
    monkeypatch.setattr(health, "SHORT_PATIENCE_S", 60)
    monkeypatch.setattr(health, "PATIENCE_S", 60)
    check = DatabaseCheck(database.read)
    check.state()
    monkeypatch.setattr(health, "SHORT_PATIENCE_S", 0.01)
    database.replies.clear()

    assert [check.state()[:2] for _ in range(20)] == [(True, DatabaseCounts(1, 0))] * 20
    assert database.reads == 2
    monkeypatch.setattr(health, "STALE_S", 0.0)
    monkeypatch.setattr(health, "PATIENCE_S", 0.01)
    assert check.state()[:2] == (False, None)

    monkeypatch.setattr(health, "STALE_S", 60.0)
    database.replies.set()
    wait_for("the database", lambda: check.state().found == DatabaseCounts(database.reads, 0) and database.reads > 2)


def test_a_result_that_no_longer_counts_is_not_the_reply_when_the_database_is_back(database, monkeypatch):
    monkeypatch.setattr(health, "PATIENCE_S", 60)
    database.error = db_exc.DBConnectionError()
    check = DatabaseCheck(database.read)
    assert check.state().is_ok is False
    check._at -= 40
    database.error = None
    database.replies.clear()
    # As long as connecting again may take.
    threading.Timer(0.1, database.replies.set).start()

    assert check.state()[:2] == (True, DatabaseCounts(2, 0))


def test_a_silent_database_delays_only_the_first_requests(database, monkeypatch):
    monkeypatch.setattr(health, "PATIENCE_S", 1)
    check = DatabaseCheck(database.read)
    check.state()
    check._at -= 40
    database.replies.clear()

    with in_time():
        assert [check.state()[:2] for _ in range(100)] == [(None, None)] * 100

    assert check.state().age_s > 40
    check._begun -= 40
    assert check.state()[:2] == (False, None)


def test_nothing_is_known_before_the_first_reply(database, monkeypatch):
    monkeypatch.setattr(health, "PATIENCE_S", 0.01)
    database.replies.clear()

    assert DatabaseCheck(database.read).state() == (None, None, None)


def test_a_result_counts_for_a_moment(database, monkeypatch):
    monkeypatch.setattr(health, "PATIENCE_S", 60)
    monkeypatch.setattr(health, "FRESH_S", 60)
    check = DatabaseCheck(database.read)

    assert [check.state().found for _ in range(3)] == [DatabaseCounts(1, 0)] * 3
    assert database.reads == 1


def test_the_thread_ends_when_nobody_asks_and_another_one_reads_later(database, monkeypatch):
    monkeypatch.setattr(health, "SHORT_PATIENCE_S", 60)
    monkeypatch.setattr(health, "PATIENCE_S", 60)
    before = set(threading.enumerate())
    check = DatabaseCheck(database.read)
    assert [check.state().found for _ in range(2)] == [DatabaseCounts(1, 0), DatabaseCounts(2, 0)]
    reader, = set(threading.enumerate()) - before
    monkeypatch.setattr(health, "STALE_S", 0.01)
    assert check.state().found in (DatabaseCounts(3, 0), None)  # None: it was too old when it was looked at
    wait_for("the end of the thread", lambda: not reader.is_alive())

    monkeypatch.setattr(health, "STALE_S", 60)
    assert check.state().found == DatabaseCounts(4, 0)
