"""The time that conductors use for heartbeats: that of the database server, whatever this host's clock shows."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.db import clock


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.setattr(clock, "_known", None)


def hours(number):
    return datetime.timedelta(hours=number)


def test_the_time_is_the_databases(db, monkeypatch):
    true = clock.wall()
    with db.reader() as conn:
        if conn.dialect.name != "sqlite":
            monkeypatch.setattr(clock, "wall", lambda: datetime.datetime.now(datetime.UTC) + hours(5))
        ahead_s = clock.follow(conn)
    assert abs(clock.now() - true) < datetime.timedelta(seconds=30)
    assert abs(ahead_s - (0 if db.engine.dialect.name == "sqlite" else 5 * 3600)) < 30


@pytest.mark.parametrize("jump", [hours(30), -hours(30)])
def test_a_jump_of_the_hosts_clock_changes_nothing(db, monkeypatch, jump):
    with db.reader() as conn:
        clock.follow(conn)
    before = clock.now()
    monkeypatch.setattr(clock, "wall", lambda: datetime.datetime.now(datetime.UTC) + jump)
    assert datetime.timedelta(0) <= clock.now() - before < datetime.timedelta(seconds=30)


def test_who_follows_nothing_has_the_hosts_time(monkeypatch):
    moment = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    monkeypatch.setattr(clock, "wall", lambda: moment)
    assert clock.now() == moment
