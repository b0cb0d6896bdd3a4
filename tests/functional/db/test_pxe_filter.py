"""The list of changed ports: no change is missed, whatever the order in which transactions commit."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from ironic_rules.db import nodes, ports, pxe_filter
from ironic_rules.db.session import Database
from ironic_rules.db.tables import pxe_filter_changes
from ironic_rules.models.task import PortChanges
from tests.functional import databases


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.servers),
                        pytest.param("postgresql", marks=pytest.mark.servers)])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with databases.migrated_database(request.param) as url:
        opened = databases.open_database(url)
        yield opened
        opened.dispose()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def reader(db: Database, clock: Clock | None = None) -> pxe_filter.ChangeReader:
    made = pxe_filter.ChangeReader(clock or Clock())
    with db.reader() as conn:
        made.begin(conn)
    return made


def changed(db: Database, changes: pxe_filter.ChangeReader) -> set[int] | None:
    with db.reader() as conn:
        return changes.changed(conn)


def node(db: Database) -> int:
    return db.write(lambda conn: int(nodes.create(conn, {"driver": "fake-hardware"}).id))


def mac() -> str:
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(3))


def test_every_way_to_change_a_port_is_listed(db: Database) -> None:
    first, second = node(db), node(db)
    changes = reader(db)

    port = db.write(lambda conn: int(ports.create(conn, {"node_id": first, "address": mac()}).id))
    assert changed(db, changes) == {first}
    db.write(lambda conn: ports.update(conn, port, {"address": mac()}))
    assert changed(db, changes) == {first}
    db.write(lambda conn: ports.update(conn, port, {"node_id": second}))
    assert changed(db, changes) == {first, second}
    db.write(lambda conn: ports.destroy(conn, port))
    assert changed(db, changes) == {second}
    db.write(lambda conn: ports.apply_changes(conn, first, PortChanges(created=[{"address": mac()}])))
    assert changed(db, changes) == {first}
    db.write(lambda conn: nodes.destroy(conn, first))
    assert changed(db, changes) == {first}
    assert changed(db, changes) == set()


def test_what_the_filter_does_not_care_for_is_not_listed(db: Database) -> None:
    owner = node(db)
    port = db.write(lambda conn: int(ports.create(conn, {"node_id": owner, "address": mac()}).id))
    changes = reader(db)

    db.write(lambda conn: ports.update(conn, port, {"is_smartnic": True}))
    db.write(lambda conn: ports.apply_changes(conn, owner, PortChanges(updated={port: {"pxe_enabled": False}})))
    db.write(lambda conn: nodes.update(conn, owner, {"provision_state": "inspecting"}))

    assert changed(db, changes) == set()


def test_a_rolled_back_change_is_not_listed(db: Database) -> None:
    changes = reader(db)
    with pytest.raises(ZeroDivisionError), db.writer() as conn:
        pxe_filter.note(conn, 7)
        raise ZeroDivisionError

    assert changed(db, changes) == set()


def test_a_transaction_that_commits_late_is_seen(db: Database) -> None:
    """The change got its id before another one that was committed, and read, first."""
    if db.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time: ids become visible in their order")
    changes = reader(db)
    with db.writer() as slow:
        pxe_filter.note(slow, 1)
        db.write(lambda conn: pxe_filter.note(conn, 2))
        assert changed(db, changes) == {2}
        late = reader(db)
    assert changed(db, changes) == {1}
    assert changed(db, late) == {1}
    assert changed(db, changes) == changed(db, late) == set()


def test_the_reader_settles_and_still_sees_what_is_new(db: Database) -> None:
    clock = Clock()
    changes = reader(db, clock)
    for number in range(1, 30):
        clock.now += pxe_filter.SETTLED_S / 4
        db.write(lambda conn, number=number: pxe_filter.note(conn, number))  # type: ignore[misc]
        assert changed(db, changes) == {number}
    assert len(changes._seen) <= 6


def test_many_writers_and_a_reader_that_misses_none(db: Database) -> None:
    changes = reader(db)
    seen: set[int] = set()

    def write(start: int) -> None:
        for number in range(start, start + 40):
            db.write(lambda conn, number=number: pxe_filter.note(conn, number, number + 1000))  # type: ignore[misc]

    writers = [threading.Thread(target=write, args=(start * 40,)) for start in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        found = changed(db, changes)
        assert found is not None and not seen & found
        seen |= found
    seen |= changed(db, changes) or set()

    assert seen == {*range(160), *range(1000, 1160)}


def test_a_list_that_is_another_one_is_noticed(db: Database) -> None:
    db.write(lambda conn: pxe_filter.note(conn, 1, 2, 3))
    changes = reader(db)
    with db.writer() as conn:
        conn.execute(sa.delete(pxe_filter_changes))

    assert changed(db, changes) is None


def test_too_many_changes_are_noticed(db: Database) -> None:
    changes = reader(db)
    with db.writer() as conn:
        conn.execute(sa.insert(pxe_filter_changes), [{"node_id": 1}] * (pxe_filter.LIMIT + 1))

    assert changed(db, changes) is None
    assert changed(db, reader(db)) == set()


def test_the_list_does_not_grow_for_ever(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pxe_filter, "KEEP", 20)
    monkeypatch.setattr(pxe_filter, "_PRUNE_EVERY", 10)
    for start in range(0, 100, 5):
        db.write(lambda conn, start=start: pxe_filter.note(conn, *range(start, start + 5)))  # type: ignore[misc]

    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(pxe_filter_changes)) <= 30
    assert changed(db, reader(db)) == set()


def test_all_ports_are_read_in_pages(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = node(db)
    addresses = {f"52:54:00:00:00:{number:02x}" for number in range(25)}
    for address in sorted(addresses):
        db.write(lambda conn, address=address: ports.create(  # type: ignore[misc]
            conn, {"node_id": owner, "address": address}))
    monkeypatch.setattr(pxe_filter, "_PORTS", pxe_filter._PORTS.limit(10))

    with db.reader() as conn:
        pages = [list(zip(*columns, strict=True)) for [columns] in pxe_filter.all_ports(conn)]
        assert [len(page) for page in pages] == [10, 10, 5]
        assert sorted(itertools.chain(*pages)) == [(address, owner) for address in sorted(addresses)]
        assert len(pxe_filter.ports_of(conn, [owner, owner + 1])) == 25
