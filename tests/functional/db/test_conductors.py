"""Registration and heartbeats of conductors."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import clock, conductors, nodes, tables
from ironic_rules.db.session import Database
from ironic_rules.exceptions import conductor_already_registered, conductor_not_found
from tests.functional import databases
from tests.functional.db.concurrency import at_once
from tests.wordings import refused, says

NOW = datetime.datetime(2026, 1, 1, 12, 0, 0, tzinfo=datetime.UTC)
TYPES = {"fake-hardware": {"power": {"enabled": ["fake"], "default": "fake"}}}


def later(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


def hosts(rows: list[Any]) -> list[str]:
    return [row.hostname for row in rows]


def test_register_notes_what_the_conductor_offers(conn: sa.Connection) -> None:
    row = conductors.register(conn, "host-1", "east", TYPES, "life-1", now=NOW)
    assert (row.hostname, row.conductor_group, row.hardware_types, row.instance, row.online, row.updated_at) == (
        "host-1", "east", TYPES, "life-1", True, NOW)
    assert conductors.get(conn, "host-1") == row
    with refused(conductor_not_found):
        conductors.get(conn, "host-2")


@pytest.mark.parametrize(("instance", "seconds"), [("life-1", 1), ("life-2", 1), ("life-2", 61)])
def test_the_latest_process_has_the_name_however_fresh_the_last_sign_of_life(
        conn: sa.Connection, instance: str, seconds: int) -> None:
    first = conductors.register(conn, "host-1", "", TYPES, "life-1", now=NOW)
    again = conductors.register(conn, "host-1", "west", {}, instance, now=later(seconds))
    assert (again.id, again.created_at, again.instance) == (first.id, first.created_at, instance)
    assert (again.conductor_group, again.hardware_types, again.updated_at) == ("west", {}, later(seconds))


def test_living_conductors_have_the_release_that_they_are_pinned_to(conn: sa.Connection) -> None:
    for number, pinned in enumerate(("0.1", "", "0.1", None)):  # an earlier release says nothing
        conductors.register(conn, f"host-{number}", "", TYPES, f"life-{number}", pinned_release=pinned, now=NOW)
    conductors.unregister(conn, "host-2", "life-2")
    assert conductors.pins(conn, 60, now=later(59)) == {"host-0": "0.1", "host-1": ""}
    assert conductors.pins(conn, 60, now=later(61)) == {}
    assert conductors.register(conn, "host-0", "", TYPES, "life-3", now=NOW).pinned_release is None


def test_a_displaced_process_learns_it_from_its_next_sign_of_life(conn: sa.Connection) -> None:
    conductors.register(conn, "host-1", "", TYPES, "life-1", now=NOW)
    conductors.register(conn, "host-1", "", TYPES, "life-2", now=later(1))
    assert not conductors.touch(conn, "host-1", "life-1", now=later(2))


def test_after_an_orderly_end_the_name_is_free_at_once(conn: sa.Connection) -> None:
    conductors.register(conn, "host-1", "", TYPES, "life-1", now=NOW)
    assert not conductors.unregister(conn, "host-1", "life-2")
    assert conductors.unregister(conn, "host-1", "life-1")
    assert conductors.alive(conn, 60, now=NOW) == []
    assert conductors.register(conn, "host-1", "", TYPES, "life-2", now=later(1)).online


def test_of_processes_with_one_name_that_start_at_once_one_has_it(db: Database) -> None:
    def register(instance: str) -> Callable[[], Any]:
        return lambda: db.write(lambda conn: conductors.register(conn, "host-1", "", TYPES, instance))

    results = at_once([register(f"life-{index}") for index in range(4)])
    assert [result for result in results if isinstance(result, Exception)
            and not says(result, conductor_already_registered)] == []
    with db.reader() as conn:
        assert [row.hostname for row in conductors.list_conductors(conn)] == ["host-1"]


def test_touch_is_a_sign_of_life_of_one_instance(conn: sa.Connection) -> None:
    conductors.register(conn, "host-1", "", TYPES, "life-1", now=NOW)
    assert conductors.touch(conn, "host-1", "life-1", now=later(30))
    assert not conductors.touch(conn, "host-1", "life-2", now=later(40))
    assert not conductors.touch(conn, "host-2", "life-1", now=later(40))
    assert conductors.get(conn, "host-1").updated_at == later(30)


def test_the_clock_divides_the_living_from_the_dead(conn: sa.Connection) -> None:
    conductors.register(conn, "old", "", TYPES, "a", now=NOW)
    conductors.register(conn, "new", "", TYPES, "b", now=later(50))
    conductors.register(conn, "gone", "", TYPES, "c", now=NOW)
    conductors.unregister(conn, "gone", "c")
    assert hosts(conductors.list_conductors(conn)) == ["gone", "new", "old"]
    assert hosts(conductors.alive(conn, 60, now=later(60))) == ["new", "old"]
    assert hosts(conductors.alive(conn, 60, now=later(61))) == ["new"]
    assert [conductors.is_any_alive(conn, 60, now=later(seconds)) for seconds in (110, 111)] == [True, False]
    for seconds in (60, 61):
        assert [(row.hostname, row.conductor_group, row.instance, row.updated_at)
                for row in conductors.living_hosts(conn, 60, now=later(seconds))] == [
            (row.hostname, row.conductor_group, row.instance, row.updated_at)
            for row in conductors.alive(conn, 60, now=later(seconds))]
    assert hosts(conductors.dead(conn, 60, now=later(60))) == []
    assert hosts(conductors.dead(conn, 60, now=later(61))) == ["old"]


def test_without_a_given_time_the_clock_counts(conn: sa.Connection) -> None:
    conductors.register(conn, "host-1", "", TYPES, "a")
    conductors.register(conn, "host-2", "", TYPES, "b", now=clock.now() - datetime.timedelta(seconds=90))
    assert hosts(conductors.alive(conn, 60)) == ["host-1"]
    assert hosts(conductors.dead(conn, 60)) == ["host-2"]
    assert conductors.touch(conn, "host-2", "b")
    assert hosts(conductors.alive(conn, 60)) == ["host-1", "host-2"]


def test_only_a_silent_conductor_is_marked_dead(conn: sa.Connection) -> None:
    conductors.register(conn, "host-1", "", TYPES, "a", now=NOW)
    assert not conductors.mark_dead(conn, "host-1", 60, now=later(60))
    assert conductors.mark_dead(conn, "host-1", 60, now=later(61))
    assert not conductors.get(conn, "host-1").online
    assert conductors.dead(conn, 60, now=later(61)) == []
    assert conductors.touch(conn, "host-1", "a", now=later(70))
    assert hosts(conductors.alive(conn, 60, now=later(70))) == ["host-1"]


def test_who_still_holds_a_lock_is_cleaned_up_after(conn: sa.Connection) -> None:
    conductors.register(conn, "host-1", "", TYPES, "a", now=NOW)
    node = nodes.create(conn, {"driver": "d", "reservation": "host-1"})
    assert conductors.mark_dead(conn, "host-1", 60, now=later(61))
    assert hosts(conductors.dead(conn, 60, now=later(61))) == ["host-1"]
    assert conductors.mark_dead(conn, "host-1", 60, now=later(61))
    nodes.take_over(conn, nodes.Lock(node.id, "host-1", None), nodes.Lock(node.id, "host-2", "run:1"))
    assert conductors.dead(conn, 60, now=later(61)) == []


@pytest.mark.parametrize("seconds", [120, -120])
def test_a_host_whose_clock_is_wrong_sees_who_is_alive(
        conn: sa.Connection, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    if conn.dialect.name == "sqlite":
        pytest.skip("there is no other clock than the host's")
    conductors.register(conn, "alive", "", TYPES, "a")
    conductors.register(conn, "dead", "", TYPES, "b")
    long_ago = sa.literal_column(f"{clock.TIME_OF_SERVER[conn.dialect.name]} - INTERVAL '90' SECOND")
    conn.execute(sa.update(tables.conductors).where(tables.conductors.c.hostname == "dead").values(updated_at=long_ago))
    wrong = datetime.timedelta(seconds=seconds)
    monkeypatch.setattr(clock, "_known", None)
    monkeypatch.setattr(clock, "wall", lambda: datetime.datetime.now(datetime.UTC) + wrong)
    assert hosts(conductors.alive(conn, 60)) == hosts(conductors.living_hosts(conn, 60)) == ["alive"]
    assert hosts(conductors.dead(conn, 60)) == ["dead"]
    assert conductors.serves(conn, "", 60)
    assert conductors.is_any_alive(conn, 60)
    assert [conductors.mark_dead(conn, name, 60) for name in ("alive", "dead")] == [False, True]
    assert conductors.touch(conn, "dead", "b")
    assert hosts(conductors.alive(conn, 60)) == ["alive", "dead"]


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_a_process_has_the_servers_time_from_its_first_connection(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_known", None)
    monkeypatch.setattr(clock, "wall", lambda: datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=5))
    with databases.temporary_database(kind) as url:
        databases.open_database(url).dispose()
        database = databases.open_database(url)
        with database.reader():
            ahead = clock.wall() - clock.now()
        database.dispose()
    assert abs(ahead - datetime.timedelta(hours=5)) < datetime.timedelta(seconds=30)
