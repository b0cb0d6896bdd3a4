"""The statements of each request, as the page on benchmarks says: each is a round trip to the database server."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from ironic_rules.api.v1 import fact_counts, ramdisk
from ironic_rules.db.session import Database
from ironic_rules.rpc import api as rpc_api
from tests.functional.api.conftest import Client
from tests.functional.api.routes import ROUTES, Known
from tests.functional.api.test_garbage import request
from tests.functional.processes import wait_for
from tests.functional.whole import running

PAGE = Path(__file__).parents[3] / "doc" / "source" / "contributor" / "statements.csv"
#: Name of an inspection in the table, from the ramdisk's report to the end; the rest are routes.
INSPECTION = "an inspection, from the report to the end"
#: Routes that need the reply of a conductor, or ask the broker.
_LEFT_OUT = frozenset({"GET /healthcheck", "GET /healthcheck/live"})


def table() -> dict[str, int]:
    """Return the table of the page."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        return {row["Request"]: int(row["Statements"]) for row in csv.DictReader(file, strict=True)}


@contextlib.contextmanager
def counted(engine: sa.Engine) -> Iterator[list[str]]:
    """Yield a list to which each statement is added, without those that only begin transactions."""
    seen: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            seen.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def statements(app: Any, db: Database, route: Known) -> int:
    """Return how many statements a request has, when caches are filled."""
    request(app, route)
    found = []
    for _ in range(2):  # what a cache keeps for a second may just have expired
        with counted(db.engine) as seen:
            request(app, route)
        found.append(len(seen))
    return min(found)


def test_reading_needs_as_many_statements_as_the_page_says(
        app: Client, stocked: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    # Frequent values are counted in each request, however slow the machine is.
    monkeypatch.setattr(fact_counts, "_CHEAP_S", float("inf"))
    reading = [route for route in ROUTES if route.method == "GET" and str(route) not in _LEFT_OUT]
    found = {str(route): statements(app.app, stocked, route) for route in reading}
    expected = table()
    del expected[INSPECTION]
    assert found == expected


def test_an_inspection_needs_as_many_statements_as_the_page_says(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Half a second, however slow the machine is.
    monkeypatch.setattr(ramdisk, "_ALIVE_FOR_S", 60.0)
    monkeypatch.setattr(rpc_api, "_SERVED_FOR_S", 60.0)
    with running(tmp_path, "[conductor]\nheartbeat_interval = 500\nheartbeat_timeout = 600\n") as whole:
        for _ in range(2):  # the first one fills caches
            _, body = whole.machine()
            node = whole.enroll("manageable")
            whole.provision(node, "inspect")
            node_id = whole.row(node).id
            with counted(whole.db.engine) as seen:
                assert whole.callback(node, body).status_int == 200
                wait_for("the worker", lambda node_id=node_id: not whole.conductor.workers.is_active(node_id))
            assert whole.row(node).provision_state == "manageable"
        assert len(seen) == table()[INSPECTION], "\n".join(seen)
