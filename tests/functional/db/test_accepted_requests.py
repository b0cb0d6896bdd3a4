"""What was accepted in the last minutes, on each database."""

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


def ago(seconds: float) -> datetime.datetime:
    return clock.now() - datetime.timedelta(seconds=seconds)


def test_a_request_is_accepted_once_and_its_answer_found(db: Database, make_node: Callable[..., Any]) -> None:
    node, mark = make_node(), Mark(DIGEST, "content", {"uuid": "first"})
    db.write(lambda conn: accepted_requests.note(conn, node.id, mark, clock.now()))

    with pytest.raises(RequestRepeated):
        db.write(lambda conn: accepted_requests.note(conn, node.id, mark, clock.now()))

    with db.reader() as conn:
        assert accepted_requests.find(conn, DIGEST) == mark
        assert accepted_requests.find(conn, DIGEST, node.id + 1) is None


def test_a_report_takes_the_place_of_an_equal_one(db: Database, make_node: Callable[..., Any]) -> None:
    node, other = make_node(), make_node()
    first, second = Mark(DIGEST, "", {"uuid": "first"}), Mark(DIGEST, "", {"uuid": "second"})
    for one, mark, at in ((node, first, ago(60)), (other, first, ago(30)), (node, second, ago(1))):
        db.write(lambda conn, one=one, mark=mark, at=at: accepted_requests.note(  # type: ignore[misc]
            conn, one.id, mark, at, renew=True))

    with db.reader() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(table)) == 2
        assert accepted_requests.find(conn, DIGEST) == second
        assert accepted_requests.find(conn, DIGEST, other.id) == first


def test_what_is_old_does_not_count_and_goes_with_the_next_request(db: Database, make_node: Callable[..., Any]) -> None:
    node, mark = make_node(), Mark(DIGEST, "content", None)
    db.write(lambda conn: accepted_requests.note(conn, node.id, mark, ago(accepted_requests.KEPT_S + 1), renew=True))
    with db.reader() as conn:
        assert accepted_requests.find(conn, DIGEST) is None

    db.write(lambda conn: accepted_requests.note(conn, node.id, mark._replace(digest="e" * 64), clock.now()))

    with db.reader() as conn:
        assert conn.scalars(sa.select(table.c.digest)).all() == ["e" * 64]


@pytest.mark.parametrize("renew", [False, True])
def test_a_node_that_is_deleted_meanwhile_is_not_found(db: Database, renew: bool) -> None:
    with pytest.raises(NodeNotFound):
        db.write(lambda conn: accepted_requests.note(conn, 4711, Mark(DIGEST, "", None), clock.now(), renew=renew))
