"""One database per kind and test session (of each worker); every test starts with empty tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db import inspection_rules, nodes
from ironic_rules.db.session import Database
from ironic_rules.db.tables import metadata, revisions
from tests.functional import databases


@pytest.fixture(scope="session", params=[
    "sqlite", pytest.param("mysql", marks=pytest.mark.servers), pytest.param("postgresql", marks=pytest.mark.servers)])
def shared_database(request: pytest.FixtureRequest) -> Iterator[Database]:
    with databases.migrated_database(request.param) as url:
        database = databases.open_database(url, max_pool_size=10, max_overflow=10)
        yield database
        database.dispose()


#: Those that tests fill, each before the ones to which it refers.
_TABLES = [table for table in reversed(metadata.sorted_tables) if table is not revisions]
#: Deleting from the empty ones too takes 10 ms on a server, asking 1 ms.
_WHICH_HAVE_ROWS = "SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {table.name})" for table in _TABLES)


@pytest.fixture
def db(shared_database: Database) -> Database:
    with shared_database.writer() as conn:
        for table, has_rows in zip(_TABLES, conn.exec_driver_sql(_WHICH_HAVE_ROWS).one(), strict=True):
            if has_rows:
                conn.execute(sa.delete(table))
        conn.execute(sa.update(revisions).where(revisions.c.name == inspection_rules.RULE_SET).values(revision=0))
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
