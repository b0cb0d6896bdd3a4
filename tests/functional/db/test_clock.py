"""The time that conductors use for heartbeats: that of the database server, whatever this host's clock shows."""

from __future__ import annotations

import datetime
from types import SimpleNamespace

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


def test_the_time_does_not_go_back_while_another_thread_sets_it(monkeypatch):
    moment, later = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(seconds=50)
    clock._known = clock._Known(moment, 100.0)

    def monotonic() -> float:
        clock._known = clock._Known(moment + later, 150.0)
        return 150.0

    monkeypatch.setattr(clock.time, "monotonic", monotonic)
    assert clock.now() == moment + later


class Host:
    """The clocks of a host: the wall clock, which may jump, and the monotonic one, in seconds."""

    def __init__(self) -> None:
        self.wall = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
        self.shown = 1000.0

    def passes(self, seconds: float) -> None:
        self.wall += datetime.timedelta(seconds=seconds)
        self.shown += seconds


@pytest.fixture
def host(monkeypatch):
    host = Host()
    monkeypatch.setattr(clock, "wall", lambda: host.wall)
    # Not of the module that the rest of this process uses.
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: host.shown))
    return host


@pytest.fixture
def warnings(monkeypatch):
    found = []
    monkeypatch.setattr(clock.LOG, "warning", lambda text, *values: found.append(text % values))
    return found


@pytest.mark.parametrize("jump", [hours(24), -hours(24)])
def test_with_sqlite_a_jump_is_approached_slowly_and_logged_once(host, warnings, jump):
    clock.follow_host()
    before = clock.now()
    host.wall += jump

    times = []
    for _ in range(6):
        clock.follow_host()
        host.passes(10)
        times.append(clock.now())

    pace = 1.1 if jump > hours(0) else 0.9
    assert times == [before + datetime.timedelta(seconds=10 * pace * number) for number in range(1, 7)]
    assert [f"jumped by {jump.total_seconds():+.0f} s" in text for text in warnings] == [True]
    assert clock.is_off()


def test_the_hosts_time_is_reached_and_not_passed(host, warnings):
    clock.follow_host()
    host.wall += datetime.timedelta(seconds=60)
    clock.follow_host()
    host.passes(3600)  # without a look at the clock

    assert clock.now() == host.wall
    clock.follow_host()
    assert (clock.now(), clock.is_off(), len(warnings)) == (host.wall, False, 1)


def test_a_second_jump_is_logged_too(host, warnings):
    clock.follow_host()
    for jump in (hours(1), -hours(1)):
        host.wall += jump
        clock.follow_host()

    assert [text.split(" s,")[0].rsplit(" ", 1)[1] for text in warnings] == ["+3600", "-3600"]
    assert not clock.is_off()


def test_a_small_difference_is_no_jump(host, warnings):
    clock.follow_host()
    host.wall += datetime.timedelta(seconds=4)
    clock.follow_host()
    host.passes(40)

    assert (clock.now(), warnings) == (host.wall, [])


def test_the_hosts_time_can_be_had_at_once(host, warnings):
    clock.follow_host()
    host.wall -= hours(24)
    clock.follow_host()

    clock.catch_up()

    assert (clock.now(), clock.is_off()) == (host.wall, False)


def test_a_jump_of_the_servers_clock_is_logged_and_followed(host, warnings):
    clock.set_to(host.wall, host.shown)
    host.passes(10)
    clock.set_to(host.wall, host.shown)
    clock.set_to(host.wall + hours(24), host.shown)

    assert clock.now() == host.wall + hours(24)
    assert [("database server" in text, "+86400 s" in text) for text in warnings] == [(True, True)]
