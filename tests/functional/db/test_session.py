"""Transactions of the service's database."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from ironic_rules.db import nodes
from ironic_rules.db.session import Database
from tests.functional.db.concurrency import at_once


def test_a_failed_writer_leaves_nothing(db: Database) -> None:
    with pytest.raises(RuntimeError), db.writer() as conn:
        nodes.create(conn, {"driver": "d", "name": "n"})
        raise RuntimeError
    with db.writer() as conn:
        nodes.create(conn, {"driver": "d", "name": "n"})


def test_the_next_writer_waits_from_its_beginning(db: Database) -> None:
    """What was read before the first write is still true when it is written, also with a reader in between."""
    node = db.write(lambda conn: nodes.create(conn, {"driver": "d", "extra": {"n": 0}}))

    def count(conn: sa.Connection) -> None:
        # SQLite has one writer from BEGIN on; the others lock the row.
        row = conn.execute(sa.select(nodes.nodes).where(nodes.nodes.c.id == node.id).with_for_update()).one()
        with db.reader() as other:
            nodes.get_by_id(other, node.id)
        nodes.update(conn, node.id, {"extra": {"n": row.extra["n"] + 1}})

    def work() -> None:
        for _ in range(5):
            with db.writer() as conn:
                count(conn)

    assert at_once([work] * 6) == [None] * 6
    with db.reader() as conn:
        assert nodes.get_by_id(conn, node.id).extra == {"n": 30}


def test_a_reader_does_not_wait_for_a_writer(db: Database) -> None:
    node = db.write(lambda conn: nodes.create(conn, {"driver": "d", "name": "old"}))
    seen: list[str] = []

    def read() -> None:
        with db.reader() as conn:
            seen.append(nodes.get_by_id(conn, node.id).name)

    with db.writer() as conn:
        nodes.update(conn, node.id, {"name": "new"})
        thread = threading.Thread(target=read)
        thread.start()
        thread.join(30)
        assert seen == ["old"]


def test_every_connection_speaks_utf8_and_commits_are_seen_at_once(db: Database) -> None:
    if db.dialect != "mysql":
        pytest.skip("of MariaDB only")
    with db.reader() as conn, db.reader() as other:
        for connection in (conn, other):
            row = connection.execute(sa.text("select @@tx_isolation, @@character_set_connection")).one()
            assert tuple(row) == ("READ-COMMITTED", "utf8mb4")
