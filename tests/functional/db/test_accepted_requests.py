"""Requests that were accepted in the last minutes, on each database."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.context import Mark
from ironic_rules.db import accepted_requests, clock
from ironic_rules.db.session import Database
from ironic_rules.db.tables import accepted_requests as table
from ironic_rules.exceptions import NodeNotFound, RequestRepeated

DIGEST = "d" * 64


def note(db: Database, node: Any, mark: Mark, ago_s: float) -> None:
    """Let a report have been accepted ``ago_s`` seconds ago."""
    with db.writer() as conn:
        noted = accepted_requests.note(conn, node.id, mark, renew=True)
        conn.execute(sa.update(table).where(table.c.node_id == node.id, table.c.digest == mark.digest).values(
            created_at=noted - datetime.timedelta(seconds=ago_s)))


def test_a_request_is_accepted_once_and_its_answer_found(db: Database, make_node: Callable[..., Any]) -> None:
    node, mark = make_node(), Mark(DIGEST, "content", {"uuid": "first"})
    noted = db.write(lambda conn: accepted_requests.note(conn, node.id, mark))
    assert abs((clock.now() - noted).total_seconds()) < 60

    with pytest.raises(RequestRepeated):
        db.write(lambda conn: accepted_requests.note(conn, node.id, mark))

    with db.reader() as conn:
        assert accepted_requests.find(conn, DIGEST) == mark
        assert accepted_requests.find(conn, DIGEST, node.id + 1) is None


def test_a_report_takes_the_place_of_an_equal_one(db: Database, make_node: Callable[..., Any]) -> None:
    node, other = make_node(), make_node()
    first, second = Mark(DIGEST, "", {"uuid": "first"}), Mark(DIGEST, "", {"uuid": "second"})
    for one, mark, ago_s in ((node, first, 60), (other, first, 30), (node, second, 1)):
        note(db, one, mark, ago_s)

    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(table)) == 2
        assert accepted_requests.find(conn, DIGEST) == second
        assert accepted_requests.find(conn, DIGEST, other.id) == first


def test_what_is_old_does_not_count_and_goes_with_the_next_request(db: Database, make_node: Callable[..., Any]) -> None:
    node, mark = make_node(), Mark(DIGEST, "content", None)
    note(db, node, mark, accepted_requests.KEPT_S + 1)
    with db.reader() as conn:
        assert accepted_requests.find(conn, DIGEST) is None

    db.write(lambda conn: accepted_requests.note(conn, node.id, mark._replace(digest="e" * 64)))

    with db.reader() as conn:
        assert conn.scalars(sa.select(table.c.digest)).all() == ["e" * 64]


@pytest.mark.parametrize("renew", [False, True])
def test_a_node_that_is_deleted_meanwhile_is_not_found(db: Database, renew: bool) -> None:
    with pytest.raises(NodeNotFound):
        db.write(lambda conn: accepted_requests.note(conn, 4711, Mark(DIGEST, "", None), renew=renew))
