"""Databases that this version must not touch: those of other programs, and of a newer version."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.cmd import dbsync
from ironic_rules.db import migration, ownership
from ironic_rules.db.tables import nodes, revisions
from ironic_rules.exceptions import ConfigurationError
from tests.functional import databases
from tests.walking import walking

#: Some tables of each program, with the revision of its newest schema.
OTHERS = {
    "Ironic": (["nodes", "chassis", "ports", "conductors", "node_traits", "bios_settings", "deploy_templates"],
               "e4827561979d"),
    "ironic-inspector": (["nodes", "attributes", "rules", "rule_conditions", "rule_actions", "introspection_data"],
                         "b55109d5063a"),
    "another program": (["instances", "quotas"], "960aac0e09ea"),
}

#: The first and the last revision from before the first release.
FORMER = ("b3f1c2a94d07", "4e1f8c26b0d9")

#: Commands that read or change a schema.
WORK = (migration.is_current, migration.upgrade, migration.stamp, lambda engine: migration.revision(engine, "x"))

#: Runs every command with each configuration file in one process, to import the package once.
RUN_ALL = """
import contextlib, io, itertools, json, sys
from ironic_rules.cmd import api, conductor, dbsync, pxe_filter, standalone, status
told = {file: {} for file in sys.argv[1:]}
for file, (name, main, arguments) in itertools.product(told, [
    ("ironic-rules", standalone.main, []), ("api", api.main, []), ("conductor", conductor.main, []),
    ("pxe-filter", pxe_filter.main, []), ("once", pxe_filter.main, ["--once"]),
    ("status", pxe_filter.main, ["--status"]), ("upgrade", dbsync.main, ["upgrade"]),
    ("version", dbsync.main, ["version"]), ("stamp", dbsync.main, ["stamp", "head"]),
    ("check", status.main, ["upgrade", "check"]),
]):
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        code = main(["--config-file", file, *arguments])
    told[file][name] = code, output.getvalue()
print(json.dumps(told))
"""


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.servers),
                        pytest.param("postgresql", marks=pytest.mark.servers)])
def engine(request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    with databases.temporary_database(request.param) as url:
        made = sa.create_engine(url)
        yield made
        made.dispose()


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Give this version one more migration, which adds a column; return the revision before it and its own."""
    first, newest = migration.HEAD, "0d5e1c9f7a26"
    folder = shutil.copytree(migration._SCRIPTS, tmp_path / "migrations")
    (folder / "versions" / f"{newest}_colours.py").write_text(
        f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = {newest!r}\ndown_revision = {first!r}\n\n\n"
        "def upgrade():\n    op.add_column('conductors', sa.Column('colour', sa.String(32)))\n")
    monkeypatch.setattr(migration, "_SCRIPTS", folder)
    monkeypatch.setattr(migration, "HEAD", newest)
    return first, newest


def create(engine: sa.Engine, tables: list[str], revision: str | None) -> None:
    """Create the database of another program."""
    with engine.begin() as conn:
        for table in tables:
            conn.execute(sa.text(f"create table {table} (id integer primary key)"))
        if revision is not None:
            conn.execute(sa.text("create table alembic_version (version_num varchar(32))"))
            conn.execute(sa.text("insert into alembic_version values (:revision)"), {"revision": revision})


@pytest.mark.parametrize("name", OTHERS)
def test_the_database_of_another_program_is_named_and_not_changed(engine: sa.Engine, name: str) -> None:
    tables, revision = OTHERS[name]
    create(engine, tables, revision)

    before = databases.dump(engine)
    for work in WORK:
        with pytest.raises(ConfigurationError, match=f"^.database.connection is the database of {name}"):
            work(engine)
    assert databases.dump(engine) == before


@pytest.mark.parametrize(("statements", "named"), [
    (["CREATE TABLE wp_posts (id INTEGER)", "CREATE TABLE wp_users (id INTEGER)"], "wp_posts, wp_users"),
    (["CREATE TABLE nodes (id INTEGER)"], "nodes"),
    (["CREATE TABLE nodes (id INTEGER)", "CREATE TABLE machines (id INTEGER)"], "machines, nodes"),
    (['CREATE TABLE "Nodes" (id INTEGER)'], "Nodes"),
    (["CREATE VIEW nodes AS SELECT 1 AS id"], "nodes"),
    # Databases of another program at its first revision, and of one that has gone back before it.
    (["CREATE TABLE alembic_version (version_num VARCHAR(32))", "CREATE TABLE wp_posts (id INTEGER)"], "wp_posts"),
    (["CREATE TABLE alembic_version (number INTEGER)"], "alembic_version"),
    (["CREATE TABLE alembic_version (version_num VARCHAR(32))", "INSERT INTO alembic_version VALUES ('abc')"],
     "alembic_version"),
    (["CREATE TABLE alembic_version (version_num VARCHAR(32))", "INSERT INTO alembic_version VALUES ('abc')",
      "CREATE TABLE nodes (id INTEGER)"], "nodes"),
    (["CREATE TABLE alembic_version (version_num VARCHAR(32))", "INSERT INTO alembic_version VALUES ('abc')",
      "CREATE TABLE inspection_rules (id INTEGER)", "CREATE TABLE wp_posts (id INTEGER)"],
     "inspection_rules, wp_posts"),
])
def test_what_is_neither_empty_nor_ours_is_not_changed(
        engine: sa.Engine, statements: list[str], named: str) -> None:
    with engine.begin() as conn:
        for statement in statements:
            conn.exec_driver_sql(statement.replace('"', "`") if engine.dialect.name == "mysql" else statement)
    before = databases.dump(engine)

    for work in WORK:
        with pytest.raises(ConfigurationError) as caught:
            work(engine)
        text = str(caught.value)
        assert f"did not create ({named}). Nothing in it was changed. Create an empty database" in text
        assert f"the database {engine.url.database}" in text
        assert "\n" not in text
    assert databases.dump(engine) == before


@pytest.mark.parametrize(("tables", "revision"), [
    ([], migration.HEAD), (["wp_posts"], migration.HEAD), (["wp_posts"], FORMER[-1])])
def test_our_revision_without_our_tables_is_not_changed(
        engine: sa.Engine, tables: list[str], revision: str) -> None:
    create(engine, tables, revision)
    before = databases.dump(engine)

    for work in WORK:
        with pytest.raises(ConfigurationError, match=f"revision {revision} of ironic-rules, but lacks the tables"):
            work(engine)
    assert databases.dump(engine) == before


@pytest.mark.parametrize("revision", FORMER)
def test_a_database_from_before_the_first_release_is_not_changed(engine: sa.Engine, revision: str) -> None:
    create(engine, ["nodes", "node_bmc_addresses", "inspection_rules", "ports"], revision)
    before = databases.dump(engine)

    for work in WORK:
        with pytest.raises(ConfigurationError) as caught:
            work(engine)
        assert str(caught.value) == (
            f"The database is at revision {revision}, from before the first release of ironic-rules: to upgrade it, "
            "run 'ironic-rules-dbsync upgrade' of commit 718239a1 first. Nothing in it was changed.")
    assert databases.dump(engine) == before


@pytest.mark.servers
@pytest.mark.parametrize(("kind", "name"), [
    ("mysql", "mysql"), ("mysql", "information_schema"), ("mysql", "performance_schema"), ("mysql", "sys"),
    ("mysql", ""), ("postgresql", "template1"), ("postgresql", "search_path=pg_catalog"),
    ("postgresql", "search_path=information_schema"), ("postgresql", "search_path=nowhere")])
def test_a_database_of_the_server_itself_is_not_changed(kind: str, name: str) -> None:
    with databases.temporary_database(kind) as own:
        url = sa.make_url(own)
        url = url.update_query_dict({"options": f"-c{name}"}) if "=" in name else url.set(database=name)
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        before = databases.dump(engine) if name else []
        for work in WORK:
            with pytest.raises(ConfigurationError, match=r"server itself|has no schema|names a server"):
                work(engine)
        assert (databases.dump(engine) if name else []) == before


@pytest.mark.servers
def test_a_schema_of_ones_own_in_a_database_of_postgresql_is_enough() -> None:
    with databases.temporary_database("postgresql") as url:
        shared = sa.create_engine(url, poolclass=sa.NullPool)
        create(shared, ["wp_posts"], None)
        with shared.begin() as conn:
            conn.exec_driver_sql("CREATE SCHEMA ours")
        before = databases.dump(shared)

        def of(path: str) -> sa.Engine:
            return sa.create_engine(sa.make_url(url).update_query_dict({"options": f"-csearch_path={path}"}),
                                    poolclass=sa.NullPool)

        # With public in the path, a name could mean a table of the other program.
        for work in WORK:
            with pytest.raises(ConfigurationError, match="wp_posts"):
                work(of("ours,public"))
        migration.upgrade(of("ours"))
        assert migration.is_current(of("ours"))
        assert databases.dump(shared) == before


@pytest.mark.servers
def test_what_an_extension_has_brought_leaves_a_database_empty() -> None:
    with databases.temporary_database("postgresql") as url:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.begin() as conn:
            if not conn.scalar(sa.text("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_stat_statements'")):
                pytest.skip("the server has no extension with a view")
            conn.exec_driver_sql("CREATE EXTENSION pg_stat_statements")
        migration.upgrade(engine)
        assert migration.is_current(engine)


@contextlib.contextmanager
def user_with(kind: str, grants: str) -> Iterator[sa.Engine]:
    """Yield an engine for an empty database, as a user with some rights; ``$`` in ``grants`` stands for both names."""
    with databases.temporary_database(kind) as url:
        name = sa.make_url(url).database
        admin = sa.create_engine(url, poolclass=sa.NullPool)
        with admin.begin() as conn:
            if kind == "mysql":
                conn.exec_driver_sql(f"CREATE USER '{name[:32]}'@'%%' IDENTIFIED BY 'secret-7f3a'")
                conn.exec_driver_sql(f"GRANT {grants} ON {name}.* TO '{name[:32]}'@'%%'")
            else:
                conn.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'secret-7f3a'")
                conn.exec_driver_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        try:
            yield sa.create_engine(admin.url.set(username=name[:32], password="secret-7f3a"), poolclass=sa.NullPool)
        finally:
            with admin.begin() as conn:
                conn.exec_driver_sql(f"DROP USER '{name[:32]}'@'%%'" if kind == "mysql" else f"DROP ROLE {name}")


@pytest.mark.servers
@pytest.mark.parametrize(("kind", "grants", "told"), [
    ("postgresql", "", "to create and change tables"),
    ("mysql", "SELECT", "DROP"),
    ("mysql", "SELECT, DROP", "CREATE"),
    ("mysql", "SELECT, DROP, CREATE, INDEX", "ALTER"),
    ("mysql", "SELECT, DROP, CREATE, INDEX, ALTER, REFERENCES", "INSERT"),
    ("mysql", "SELECT, DROP, CREATE, INDEX, ALTER, REFERENCES, INSERT", "UPDATE"),
])
def test_a_right_that_is_missing_is_named_and_nothing_is_made(kind: str, grants: str, told: str) -> None:
    with user_with(kind, grants) as engine:
        assert not migration.is_current(engine)
        with pytest.raises(ConfigurationError) as caught:
            migration.upgrade(engine)
        text = str(caught.value)
        assert f"the user {engine.url.username} lacks the right {told} in the database {engine.url.database}" in text
        assert ("Grant it, for example: " in text, "secret-7f3a" in text, "\n" in text) == (True, False, False)
        with engine.connect() as conn:
            assert ownership.names(conn) == set()


@pytest.mark.servers
@pytest.mark.parametrize(("rows", "told"), [
    (0, "drop the database, create it again, and run 'ironic-rules-dbsync upgrade'"),
    (1, "has tables and rows of ironic-rules, but no revision. Restore a backup")])
def test_an_upgrade_that_was_interrupted_tells_how_to_go_on(rows: int, told: str) -> None:
    """MariaDB commits each statement: the tables remain, and alembic has not recorded the revision."""
    with databases.temporary_database("mysql") as url:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        migration.upgrade(engine)
        with engine.begin() as conn:
            conn.exec_driver_sql("DELETE FROM alembic_version")
            conn.exec_driver_sql("DROP TABLE ports")
            if rows:
                databases.insert_node(conn)
        before = databases.dump(engine)

        assert not migration.is_current(engine)  # as while another process creates them
        with pytest.raises(ConfigurationError, match=told):
            migration.upgrade(engine)
        assert databases.dump(engine) == before

        if rows:
            migration.stamp(engine, migration.HEAD)
            assert migration.version(engine) == migration.HEAD


@pytest.mark.servers
def test_a_later_upgrade_that_was_interrupted_tells_what_to_do(next_version: tuple[str, str]) -> None:
    first, _ = next_version
    with databases.temporary_database("mysql") as url:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        migration.upgrade(engine, first)
        with engine.begin() as conn:
            conn.exec_driver_sql("ALTER TABLE conductors ADD COLUMN colour VARCHAR(32)")
        told = rf"interrupted after revision {first} \(Duplicate column name 'colour'\). Restore the backup"
        with pytest.raises(ConfigurationError, match=told):
            migration.upgrade(engine)
        assert migration.version(engine) == first


@pytest.mark.parametrize("is_database", [True, False])
def test_a_file_of_another_program_stays_byte_for_byte(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], is_database: bool) -> None:
    file = tmp_path / "notes.db"
    if is_database:
        made = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
        create(made, ["notes"], None)
    else:
        file.write_text("A list of what to do.\n")
    before = file.read_bytes()

    for arguments in (["upgrade"], ["stamp", "head"], ["version"], ["revision", "-m", "x"]):
        (tmp_path / "service.conf").write_text(f"[database]\nconnection = sqlite:///{file}\n")
        assert dbsync.main(["--config-file", str(tmp_path / "service.conf"), *arguments]) == 2
        line, = capsys.readouterr().err.splitlines()
        assert str(file) in line

    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.db", "service.conf"]


def test_neither_an_upgrade_goes_back_nor_a_newer_schema_is_touched(
        engine: sa.Engine, next_version: tuple[str, str]) -> None:
    first, newest = next_version
    for revision in (first, newest):
        migration.upgrade(engine, revision)
    for revision in (first, first[:4], "base"):
        with pytest.raises(ConfigurationError, match=rf"revision {newest}, which is newer than {revision}: "):
            migration.upgrade(engine, revision)
    assert migration.version(engine) == newest

    with engine.begin() as conn:
        conn.execute(sa.text("update alembic_version set version_num = 'd00dfeed1234'"))
    for work in (migration.is_current, migration.upgrade):
        with pytest.raises(ConfigurationError, match=r"revision d00dfeed1234, of a newer version.* Start the newer"):
            work(engine)


def test_an_upgrade_goes_forward_by_names_and_numbers_of_revisions(
        engine: sa.Engine, next_version: tuple[str, str]) -> None:
    first, newest = next_version
    for revision, reached in [(first, first), (first, first), ("+1", newest), ("heads", newest), ("head", newest)]:
        migration.upgrade(engine, revision)
        assert migration.version(engine) == reached
        # A table of another program that was created later is no obstacle.
        with engine.begin() as conn:
            conn.execute(sa.text("create table if not exists others (id integer primary key)"))


TOLD = [
    ("Ironic", "has tables that this service did not create (bios_settings, chassis, conductors, deploy_templates, "
               "node_traits, nodes, ports). Nothing in it was changed. Create an empty database for this service, and "
               "set the option to it."),
    ("d00dfeed1234", "of a newer version of ironic-rules; the newest that this version knows is "),
    (FORMER[-1], "to upgrade it, run 'ironic-rules-dbsync upgrade' of commit 718239a1 first."),
]


def refusing_configuration(folder: Path, name: str) -> Path:
    """Make the database of ``name``, another program or a revision, in ``folder``; return a configuration file."""
    folder.mkdir()
    url = f"sqlite:///{folder}/database"
    if name not in OTHERS:
        migration.upgrade(url)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    if name in OTHERS:
        create(engine, *OTHERS[name])
    else:
        with engine.begin() as conn:
            conn.execute(sa.text("update alembic_version set version_num = :revision"), {"revision": name})
    file = folder / "service.conf"
    file.write_text(f"[DEFAULT]\ntransport_url = ironic-rules-memory://\nstate_path = {folder}/state\n"
                    f"[database]\nconnection = {url}\n[pxe_filter]\ndhcp_hostsdir = {folder}\n")
    return file


@pytest.fixture(scope="module")
def outputs_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The folder of each database of ``TOLD``, and status and output of each command."""
    files = {name: refusing_configuration(tmp_path_factory.mktemp("foreign") / name, name) for name, _ in TOLD}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RUN_ALL, *map(str, files.values())],
                          capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: (file.parent, found[str(file)]) for name, file in files.items()}


@walking("name, told", TOLD)
def test_every_command_tells_it_in_one_line(
        outputs_of: dict[str, tuple[Path, dict[str, Any]]], name: str, told: str) -> None:
    folder, outputs = outputs_of[name]
    check = "".join(outputs.pop("check")[1].split())
    assert "".join(told.split()) in check.replace("|", "")
    assert {command: code for command, (code, _) in outputs.items()} == dict.fromkeys(outputs, 2)
    lines = {command: [line for line in output.splitlines() if " DEBUG " not in line]
             for command, (_, output) in outputs.items()}
    assert {command: len(found) for command, found in lines.items()} == dict.fromkeys(lines, 1)
    assert [command for command, (line,) in lines.items() if told not in line] == []
    engine = sa.create_engine(f"sqlite:///{folder}/database", poolclass=sa.NullPool)
    assert nodes.name in sa.inspect(engine).get_table_names()
    assert sa.inspect(engine).has_table(revisions.name) is (name not in OTHERS)
