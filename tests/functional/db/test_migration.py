"""Migrations lead from an empty database to exactly what ``tables.py`` says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from ironic_rules.db import clock, inspection_rules, migration, rule_revisions
from ironic_rules.db.session import write_transaction
from ironic_rules.db.tables import metadata, nodes
from ironic_rules.db.types import Json, UTCDateTime
from ironic_rules.exceptions import ConfigurationError
from tests.functional import databases
from tests.functional.db.concurrency import at_once


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


def test_the_migrated_schema_is_that_of_the_tables(engine: sa.Engine) -> None:
    migration.upgrade(engine, migration.HEAD)
    orders = {"name": 'name COLLATE "C" NULLS FIRST', "updated_at": "updated_at NULLS FIRST"}
    own = {f"nodes_{name}_order_idx" for name in orders} if engine.dialect.name == "postgresql" else set()
    with engine.connect() as conn:
        context = MigrationContext.configure(
            conn, opts={"compare_type": True, "include_object": lambda _, name, *rest: name not in own})
        assert compare_metadata(context, metadata) == []
        for name, order in orders.items() if own else ():
            assert f"({order})" in conn.scalar(
                sa.text("SELECT indexdef FROM pg_indexes WHERE indexname = :name"), {"name": f"nodes_{name}_order_idx"})


def test_constraints_have_the_names_of_the_tables(engine: sa.Engine) -> None:
    migration.upgrade(engine, migration.HEAD)
    inspector = sa.inspect(engine)
    tables = metadata.sorted_tables
    # SQLAlchemy does not read the name of a foreign key that SQLite got with a column that was added.
    found = {table.name: ({unique["name"] for unique in inspector.get_unique_constraints(table.name)},
                          {foreign["name"] or f"{table.name}_{foreign['constrained_columns'][0]}_fkey":
                           foreign["options"].get("ondelete")
                           for foreign in inspector.get_foreign_keys(table.name)}) for table in tables}
    expected = {table.name: ({found.name for found in table.constraints if isinstance(found, sa.UniqueConstraint)},
                             {found.name: found.ondelete for found in table.foreign_key_constraints})
                for table in tables}

    assert [f"{name} has {found[name]}, not {names}" for name, names in expected.items() if found[name] != names] == []


def test_the_rule_set_starts_at_revision_0(engine: sa.Engine) -> None:
    migration.upgrade(engine)
    with engine.connect() as conn:
        assert inspection_rules.revision(conn) == 0


def test_an_upgrade_keeps_how_often_the_work_on_a_node_was_resumed(engine: sa.Engine) -> None:
    migration.upgrade(engine, "7e41c09ab5d6")
    with engine.begin() as conn:
        for purpose in ("provision: active, resumed: 3", "provision: active", None):
            databases.insert_node(conn, reservation_purpose=purpose)
    migration.upgrade(engine)
    with engine.connect() as conn:
        query = sa.select(nodes.c.reservation_purpose, nodes.c.reservation_resumptions).order_by(nodes.c.id)
        assert conn.execute(query).all() == [("provision: active", 3), ("provision: active", 0), (None, 0)]


def test_an_upgrade_keeps_the_rules_as_a_revision_and_makes_them_searchable(engine: sa.Engine) -> None:
    migration.upgrade(engine, "a46d20f7be91")
    action = [{"op": "add-trait", "args": ["CUSTOM_A"]}]
    columns = [*(sa.column(name) for name in ("uuid", "position", "revision", "priority", "phase")), *(
        sa.column(name, type_) for name, type_ in (
            ("created_at", UTCDateTime), ("sensitive", sa.Boolean), ("conditions", Json), ("actions", Json)))]
    with engine.begin() as conn:
        conn.execute(sa.text("update revisions set revision = 7 where name = 'inspection_rules'"))
        conn.execute(sa.insert(sa.table("inspection_rules", *columns)), [
            {"uuid": str(number) * 8, "position": number, "revision": number, "priority": 0, "phase": "main",
             "created_at": clock.now(), "sensitive": number == 2, "conditions": [], "actions": action}
            for number in (1, 2)])
    migration.upgrade(engine)
    with write_transaction(engine) as conn:
        before = inspection_rules.all_rules(conn)
        assert [(rule.enabled, rule.name, rule.bundle, rule.max_nodes) for rule in before] == [
            (True, None, None, None)] * 2
        assert [(rule.ops, rule.writes) for rule in before] == [("\nadd-trait\n", "\n/traits\n"), (None, None)]
        inspection_rules.destroy_all(conn)
        assert [row.revision for row in rule_revisions.list_revisions(conn, 10)] == [8, 7]
        assert [rule.uuid for rule in rule_revisions.rules_at(conn, 7)] == [rule.uuid for rule in before]


def test_an_upgrade_moves_nodes_off_the_deploy_interface_that_pretended(engine: sa.Engine) -> None:
    migration.upgrade(engine, "e2c86f90b1d7")
    given = [("ipmi", "fake", "available"), ("redfish", "fake", "active"), ("redfish", "fake", "wait call-back"),
             ("ipmi", "fake", "deploying"), ("ipmi", "custom-agent", "available"), ("fake-hardware", "fake", "active"),
             ("ipmi", None, "enroll")]
    with engine.begin() as conn:
        for driver, interface, state in given:
            databases.insert_node(conn, driver=driver, deploy_interface=interface, provision_state=state)
    migration.upgrade(engine)
    with engine.connect() as conn:
        assert list(conn.scalars(sa.select(nodes.c.deploy_interface).order_by(nodes.c.id))) == [
            "direct", "direct", "fake", "fake", "custom-agent", "fake", None]


def test_stamp_only_notes_the_version(engine: sa.Engine) -> None:
    with pytest.raises(ConfigurationError, match="no tables of ironic-rules that could be at a revision"):
        migration.stamp(engine)
    migration.upgrade(engine, "b3f1c2a94d07")
    migration.stamp(engine)
    assert migration.is_current(engine)
    assert not sa.inspect(engine).has_table("inspection_journal")


def test_processes_and_threads_may_upgrade_at_the_same_time(url: str) -> None:
    opened = [databases.open_database(url) for _ in range(3)]
    code = ("import sys; from ironic_rules.db import migration; from tests.functional.databases import open_database; "
            "migration.upgrade(open_database(sys.argv[1]).engine)")
    processes = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", code, url]) for _ in range(2)]
    threads = at_once([partial(migration.upgrade, database.engine) for database in opened])
    assert [process.wait(60) for process in processes] == [0, 0]
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
    # Not "head": step by step.
    migration.upgrade(migrated, migration.HEAD)

    assert _content(made) == _content(migrated)


def _content(url: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the parts of the statement of each table and index, in any order, and the rows of each table."""
    engine = sa.create_engine(url)
    with engine.connect() as conn:
        statements = dict(conn.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").all())
        names = sa.inspect(conn).get_table_names()
        rows = {name: conn.exec_driver_sql(f'SELECT * FROM "{name}"').all() for name in names}
    engine.dispose()
    # This key was added with its column, so it is a part of that.
    key = re.compile(r",? CONSTRAINT nodes_chassis_uuid_fkey (FOREIGN KEY\(chassis_uuid\) )?"
                     r"REFERENCES chassis \(uuid\)")
    parts = {}
    for name, sql in statements.items():
        text, found = key.subn("", " ".join(sql.split()))
        assert found == (name == "nodes")
        head, _, body = text.partition("(")
        parts[name] = [head, *sorted(part.strip() for part in re.split(r",\s+(?![^()]*\))", body.removesuffix(")")))]
    return parts, rows


def test_head_names_the_newest_migration() -> None:
    assert ScriptDirectory(str(migration._SCRIPTS)).get_current_head() == migration.HEAD


def test_a_start_does_not_import_alembic() -> None:
    code = "import sys; from ironic_rules.db import migration; raise SystemExit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
