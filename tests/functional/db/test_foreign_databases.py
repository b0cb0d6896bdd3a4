"""Databases that this version must not touch: those of other programs, and of a newer version."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules.db import migration
from ironic_rules.db.tables import nodes, revisions
from ironic_rules.exceptions import ConfigurationError
from tests.functional import databases

#: Some tables of each program, with the revision of its newest schema.
OTHERS = {
    "Ironic": (["nodes", "chassis", "ports", "conductors", "node_traits", "bios_settings", "deploy_templates"],
               "e4827561979d"),
    "ironic-inspector": (["nodes", "attributes", "rules", "rule_conditions", "rule_actions", "introspection_data"],
                         "b55109d5063a"),
    "another program": (["instances", "quotas"], "960aac0e09ea"),
}

#: Runs every command in one process, to import the package once.
RUN_ALL = """
import contextlib, io, json, sys
from ironic_rules.cmd import api, conductor, dbsync, pxe_filter, standalone, status
file, told = ["--config-file", sys.argv[1]], {}
for name, main, arguments in [
    ("ironic-rules", standalone.main, []), ("api", api.main, []), ("conductor", conductor.main, []),
    ("pxe-filter", pxe_filter.main, []), ("once", pxe_filter.main, ["--once"]),
    ("status", pxe_filter.main, ["--status"]), ("upgrade", dbsync.main, ["upgrade"]),
    ("version", dbsync.main, ["version"]), ("stamp", dbsync.main, ["stamp", "head"]),
    ("check", status.main, ["upgrade", "check"]),
]:
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        code = main([*file, *arguments])
    told[name] = code, output.getvalue()
print(json.dumps(told))
"""


@pytest.fixture(params=["sqlite", pytest.param("mysql", marks=pytest.mark.servers),
                        pytest.param("postgresql", marks=pytest.mark.servers)])
def engine(request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    with databases.temporary_database(request.param) as url:
        made = sa.create_engine(url)
        yield made
        made.dispose()


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

    for work in (migration.is_current, migration.upgrade):
        with pytest.raises(ConfigurationError, match=f"^.database.connection is the database of {name}"):
            work(engine)
    assert set(sa.inspect(engine).get_table_names()) == {*tables, "alembic_version"}


def test_tables_of_our_names_without_a_revision_are_of_another_program(engine: sa.Engine) -> None:
    create(engine, ["nodes", "machines"], None)

    with pytest.raises(ConfigurationError, match=r"it has tables that this service did not create \(machines, nodes\)"):
        migration.upgrade(engine)


def test_neither_an_upgrade_goes_back_nor_a_newer_schema_is_touched(engine: sa.Engine) -> None:
    migration.upgrade(engine)
    for revision in ("f06b2d9c4e81", "b3f1c2a94d07", "base", "b3f1"):
        with pytest.raises(ConfigurationError, match=rf"revision {migration.HEAD}, which is newer than {revision}: "):
            migration.upgrade(engine, revision)
    assert migration.version(engine) == migration.HEAD

    with engine.begin() as conn:
        conn.execute(sa.text("update alembic_version set version_num = 'd00dfeed1234'"))
    for work in (migration.is_current, migration.upgrade):
        with pytest.raises(ConfigurationError, match=r"revision d00dfeed1234, of a newer version.* Start the newer"):
            work(engine)


def test_an_upgrade_goes_forward_by_names_and_numbers_of_revisions(engine: sa.Engine) -> None:
    # A table beside ours, here of PostGIS, is no obstacle.
    create(engine, ["spatial_ref_sys"], None)
    for revision, reached in [("b3f1c2a94d07", "b3f1c2a94d07"), ("b3f1c2a94d07", "b3f1c2a94d07"),
                              ("+1", "8e816a9bd7c3"), ("heads", migration.HEAD), ("head", migration.HEAD)]:
        migration.upgrade(engine, revision)
        assert migration.version(engine) == reached


@pytest.mark.parametrize(("name", "told"), [
    ("Ironic", "[database]connection is the database of Ironic, which this service neither reads nor changes. "
               "Set it to a database of its own, which may be empty."),
    ("newer", "of a newer version of ironic-rules; the newest that this version knows is "),
])
def test_every_command_tells_it_in_one_line(tmp_path: Path, name: str, told: str) -> None:
    url = f"sqlite:///{tmp_path}/database"
    if name == "newer":
        migration.upgrade(url)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    if name == "newer":
        with engine.begin() as conn:
            conn.execute(sa.text("update alembic_version set version_num = 'd00dfeed1234'"))
    else:
        create(engine, *OTHERS[name])
    file = tmp_path / "service.conf"
    file.write_text(f"[DEFAULT]\ntransport_url = ironic-rules-memory://\nstate_path = {tmp_path}/state\n"
                    f"[database]\nconnection = {url}\n[pxe_filter]\ndhcp_hostsdir = {tmp_path}\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RUN_ALL, str(file)], capture_output=True, text=True,
                          timeout=60)

    outputs = json.loads(done.stdout.splitlines()[-1])
    check = "".join(outputs.pop("check")[1].split())
    assert "".join(told.split()) in check.replace("|", "")
    assert {command: code for command, (code, _) in outputs.items()} == dict.fromkeys(outputs, 2)
    lines = {command: [line for line in output.splitlines() if " DEBUG " not in line]
             for command, (_, output) in outputs.items()}
    assert {command: len(found) for command, found in lines.items()} == dict.fromkeys(lines, 1)
    assert [command for command, (line,) in lines.items() if told not in line] == []
    assert nodes.name in sa.inspect(engine).get_table_names()
    assert sa.inspect(engine).has_table(revisions.name) is (name == "newer")
