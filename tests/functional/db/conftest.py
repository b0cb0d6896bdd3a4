"""One database per kind and test session (of each worker); every test starts with empty tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import nodes
from ironic_rules.db.session import Database
from tests.functional import databases


@pytest.fixture(scope="session", params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def shared_database(request: pytest.FixtureRequest) -> Iterator[Database]:
    with databases.migrated_database(request.param) as url:
        database = databases.open_database(url, max_pool_size=10, max_overflow=10)
        yield database
        database.dispose()


@pytest.fixture
def db(shared_database: Database) -> Database:
    if shared_database.dialect == "sqlite":
        # SQLAlchemy does not forget listeners of other tests when they are removed; statements are prepared without.
        shared_database.engine._has_events = False
    with shared_database.writer() as conn:
        databases.empty(conn)
    return shared_database


@pytest.fixture
def conn(db: Database) -> Iterator[sa.Connection]:
    """One write transaction around the test."""
    with db.writer() as connection:
        yield connection


@pytest.fixture
def make_node(db: Database) -> Callable[..., Any]:
    """Create a node in a transaction of its own."""
    def make(**values: Any) -> Any:
        return db.write(lambda conn: nodes.create(conn, {"driver": "fake-hardware", **values}))

    return make
