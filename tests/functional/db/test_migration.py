"""Migrations lead from an empty database to exactly what ``tables.py`` says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from ironic_rules.db import inspection_rules, migration
from ironic_rules.db.tables import metadata, nodes
from ironic_rules.exceptions import ConfigurationError
from tests.functional import databases
from tests.functional.db.concurrency import at_once
from tests.functional.processes import Process

#: Order of indexes of PostgreSQL, where the tables cannot declare it.
ORDERS = {"name": 'name COLLATE "C" NULLS FIRST', "updated_at": "updated_at NULLS FIRST",
          "natural_name": 'natural_name COLLATE "C" NULLS FIRST'}


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.servers),
                        pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with databases.temporary_database(request.param) as empty:
        yield empty


@pytest.fixture
def engine(url: str) -> Iterator[sa.Engine]:
    engine = sa.create_engine(url)
    yield engine
    engine.dispose()


def test_an_empty_database_has_no_version(engine: sa.Engine) -> None:
    assert migration.version(engine) is None
    assert not migration.is_current(engine)


def test_upgrade_makes_the_schema_current(engine: sa.Engine) -> None:
    migration.upgrade(engine)
    assert migration.version(engine) == migration.HEAD
    assert migration.is_current(engine)


def test_upgrade_of_a_current_database_changes_nothing(engine: sa.Engine, url: str) -> None:
    migration.upgrade(engine)
    with engine.begin() as conn:
        conn.execute(sa.insert(metadata.tables["revisions"]).values(name="other", revision=7))
    migration.upgrade(url)
    with engine.connect() as conn:
        assert conn.scalar(sa.text("select revision from revisions where name = 'other'")) == 7


def test_the_migrations_make_what_the_tables_declare(engine: sa.Engine) -> None:
    with databases.temporary_database(engine.dialect.name) as other, databases.engine(other) as declared:
        metadata.create_all(declared)
        migration.upgrade(engine, migration.HEAD)

        expected = described(declared)
        assert expected.keys() == metadata.tables.keys()
        assert described(engine) == expected


def described(engine: sa.Engine) -> dict[str, Any]:
    """Return all that the database says about each table but alembic's."""
    inspector = sa.inspect(engine)
    return {name: {
        "columns": {column.pop("name"): {**column, "type": repr(column["type"])}
                    for column in map(dict, inspector.get_columns(name))},
        "primary key": inspector.get_pk_constraint(name),
        "foreign keys": _sorted(inspector.get_foreign_keys(name)),
        "unique": _sorted(inspector.get_unique_constraints(name)),
        "checks": _sorted(inspector.get_check_constraints(name)),
        "indexes": _sorted(index for index in inspector.get_indexes(name) if index["name"] not in _own(engine)),
        "options": inspector.get_table_options(name),
    } for name in inspector.get_table_names() if name != "alembic_version"}


def _sorted(found: Iterable[Any]) -> list[Any]:
    return sorted(found, key=lambda one: str(one["name"]))


def _own(engine: sa.Engine) -> set[str]:
    """Return the indexes that the tables cannot declare."""
    return {f"nodes_{name}_order_idx" for name in ORDERS} if engine.dialect.name == "postgresql" else set()


def test_developers_see_no_difference_between_tables_and_migrations(engine: sa.Engine) -> None:
    migration.upgrade(engine, migration.HEAD)
    with engine.connect() as conn:
        context = MigrationContext.configure(
            conn, opts={"compare_type": True, "include_object": lambda _, name, *rest: name not in _own(engine)})
        assert compare_metadata(context, metadata) == []


@pytest.mark.servers
def test_indexes_of_postgresql_are_in_the_order_of_lists() -> None:
    with databases.migrated_database("postgresql") as url, databases.engine(url) as engine, engine.connect() as conn:
        query = sa.text("SELECT indexdef FROM pg_indexes WHERE indexname = :name")
        for name, order in ORDERS.items():
            assert f"({order})" in conn.scalar(query, {"name": f"nodes_{name}_order_idx"})


def test_the_rule_set_starts_at_revision_0(engine: sa.Engine) -> None:
    migration.upgrade(engine)
    with engine.connect() as conn:
        assert inspection_rules.revision(conn) == 0


def test_stamp_only_notes_the_version(engine: sa.Engine) -> None:
    with pytest.raises(ConfigurationError, match="no tables of ironic-rules that could be at a revision"):
        migration.stamp(engine)
    migration.upgrade(engine)
    with engine.begin() as conn:
        for statement in ("drop table inspection_journal_keys", "delete from alembic_version"):
            conn.execute(sa.text(statement))
    migration.stamp(engine)
    assert migration.is_current(engine)
    assert not sa.inspect(engine).has_table("inspection_journal_keys")


def test_processes_and_threads_may_upgrade_at_the_same_time(url: str, tmp_path: Path) -> None:
    opened = [databases.open_database(url) for _ in range(3)]
    (tmp_path / "dbsync.conf").write_text(f"[database]\nconnection = {url}\n")
    processes = [Process("ironic_rules.cmd.dbsync", ["--config-file", "dbsync.conf", "upgrade"], tmp_path, name)
                 for name in ("dbsync-1", "dbsync-2")]
    threads = at_once([partial(migration.upgrade, database.engine) for database in opened])
    for process in processes:
        process.printed("is at revision")
    assert threads == [None] * 3
    assert all(migration.is_current(database.engine) for database in opened)
    for database in opened:
        database.dispose()


def test_mariadb_stores_times_to_the_microsecond_and_json_of_any_size(engine: sa.Engine) -> None:
    if engine.dialect.name != "mysql":
        pytest.skip("of MariaDB only")
    migration.upgrade(engine)
    query = sa.text("select column_name, column_type, collation_name from information_schema.columns "
                    "where table_schema = database() and table_name = 'nodes'")
    with engine.connect() as conn:
        types = {row[0]: (row[1], row[2]) for row in conn.execute(query)}
    assert types["created_at"][0] == "datetime(6)"
    assert types["properties"] == ("longtext", "utf8mb4_nopad_bin")
    assert types["name"] == ("varchar(255)", "utf8mb4_nopad_bin")
    assert types.keys() == set(nodes.c.keys())


def test_a_new_sqlite_database_is_what_the_migrations_make(tmp_path: Path) -> None:
    code = ("import sys; from ironic_rules.db import migration; migration.upgrade(sys.argv[1]);"
            "raise SystemExit('alembic' in sys.modules)")
    made, migrated = (f"sqlite:///{tmp_path}/{name}" for name in ("made", "migrated"))
    assert subprocess.run([sys.executable, "-c", code, made], check=False).returncode == 0
    # Not "head": by the migrations.
    migration.upgrade(migrated, migration.HEAD)

    with databases.engine(made) as one, databases.engine(migrated) as another:
        assert described(one) == described(another)
        assert _rows(one) == _rows(another)


def _rows(engine: sa.Engine) -> dict[str, list[Any]]:
    with engine.connect() as conn:
        return {name: conn.exec_driver_sql(f'SELECT * FROM "{name}"').all()
                for name in sa.inspect(conn).get_table_names()}


def test_head_names_the_newest_migration() -> None:
    assert ScriptDirectory(str(migration._SCRIPTS)).get_current_head() == migration.HEAD


def test_a_start_does_not_import_alembic() -> None:
    code = "import sys; from ironic_rules.db import migration; raise SystemExit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
