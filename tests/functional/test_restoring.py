"""Backups that are restored later: the commands of the page, and the machines that have changed since."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest
import sqlalchemy as sa

from ironic_rules.cmd import dbsync
from ironic_rules.conductor import recovery, restoring
from ironic_rules.db import clock, conductors, operations, outbox, processes
from ironic_rules.db import nodes as db_nodes
from ironic_rules.db.nodes import Lock
from ironic_rules.db.tables import events, node_history, nodes, revisions
from ironic_rules.exceptions import ConfigurationError
from ironic_rules.models import states
from tests.functional import databases, whole

PAGE = Path(__file__).parents[2] / "doc" / "source" / "admin" / "backup.rst"
PASSING = sorted(states.TRANSIENT | states.WAITING | states.HOLDING)


@pytest.fixture
def database(tmp_path):
    with databases.migrated_database("sqlite") as url:
        made = databases.open_database(url)
        yield made
        made.dispose()


def node(database, **values):
    return database.write(lambda conn: databases.insert_node(conn, **values))


def row(database, node_id):
    with database.reader() as conn:
        return db_nodes.get_by_id(conn, node_id)


@pytest.mark.parametrize("state", PASSING)
def test_what_was_begun_is_not_continued(database, state):
    node_id = node(database, provision_state=state, reservation="old-1", reservation_token="t", agent_token_hash="h",
                   reserved_at=clock.now(), deploy_step={"step": "x"}, driver_internal_info={
                       "agent_url": "http://10.0.0.9:9999", "deploy_step_index": 1, "kept": 1})
    restoring.settle(database, 60)
    found = row(database, node_id)

    assert found.provision_state not in PASSING
    assert (found.reservation, found.agent_token_hash, found.deploy_step) == (None, None, {})
    assert found.driver_internal_info == {"kept": 1}
    assert found.maintenance and found.maintenance_reason == restoring.REASON
    assert found.last_error.startswith(f"{state} was not continued. ")
    with database.reader() as conn:
        assert [each.event_type for each in conn.execute(sa.select(node_history))] == ["restore"]


def test_what_was_ended_is_reported_as_events(database):
    outbox.want(database.engine, outbox.Wanted("info", True, "dbsync"))
    ended = node(database, provision_state="deploying", target_provision_state="active")
    free = node(database, provision_state="available")
    uuids = {f"nodes/{row(database, node_id).uuid}": name for node_id, name in ((ended, "ended"), (free, "free"))}
    restoring.settle(database, 60)

    with database.reader() as conn:
        found = [(uuids[each.subject], each.type, orjson.loads(each.payload).get("previous_provision_state"))
                 for each in conn.execute(sa.select(events).order_by(events.c.id))]
    set_ = [f"baremetal.node.maintenance_set.{status}" for status in ("start", "end")]
    assert found[0] == ("ended", "baremetal.node.provision_set.error", "deploying")
    assert sorted(found[1:]) == [(name, kind, None) for name in ("ended", "free") for kind in sorted(set_)]


def test_a_node_that_may_have_an_instance_by_now_is_not_given_away(database):
    free = node(database, provision_state="available")
    used = node(database, provision_state="active", agent_token_hash="h")
    busy = node(database, provision_state="active", reservation="old-1", target_power_state="rebooting")
    looked = node(database, provision_state="available", maintenance=True, maintenance_reason="fan")
    first = restoring.settle(database, 60)
    again = restoring.settle(database, 60)

    assert [each.maintenance for each in first] == [True, True]
    assert again == []
    assert row(database, free).maintenance
    assert (row(database, used).maintenance, row(database, used).agent_token_hash) == (False, "h")
    assert (row(database, busy).maintenance, row(database, busy).target_power_state) == (True, None)
    assert row(database, looked).maintenance_reason == "fan"


def test_actions_on_many_nodes_are_not_continued(database):
    node(database, provision_state="manageable")
    begun = {kind: database.write(lambda conn, kind=kind: operations.create(
        conn, kind, {}, None, sa.select(nodes.c.uuid))).id for kind in ("delete", "inspect", "reapply", "find_facts")}
    restoring.settle(database, 60)
    with database.reader() as conn:
        running = {each.id for each in operations.running(conn)}

    assert running == {begun["find_facts"]}


def test_tags_of_before_fit_no_set_of_after(database):
    with database.reader() as conn:
        before = {each.name: each.revision for each in conn.execute(sa.select(revisions))}
    restoring.settle(database, 60)
    with database.reader() as conn:
        after = {each.name: each.revision for each in conn.execute(sa.select(revisions))}

    assert {name for name in after if after[name] == before[name] + restoring.STEP} == {
        "inspection_rules", "legacy_rules", "facts"}


def test_nothing_is_changed_while_a_process_is_alive(database):
    node_id = node(database, provision_state="cleaning")
    database.write(lambda conn: processes.report(conn, "i", "api", "api-1", "0.1.0", "r"))
    with pytest.raises(ConfigurationError, match="on api-1: stop them"):
        restoring.settle(database, 60)
    assert row(database, node_id).provision_state == "cleaning"


@pytest.mark.parametrize("is_told", [False, True])
def test_a_conductor_continues_what_a_backup_shows_unless_it_is_ended(tmp_path, is_told):
    """The reason for the command: without it, the first conductor continues what the backup shows."""
    databases.write_sqlite(tmp_path / "whole.sqlite")
    old = databases.open_database(f"sqlite:///{tmp_path}/whole.sqlite")
    an_hour_ago = clock.now() - datetime.timedelta(hours=1)
    old.write(lambda conn: conductors.register(conn, "conductor-1", "", {}, "old-run", now=an_hour_ago))
    node_id = node(old, provision_state="cleaning", target_provision_state="available", driver="fake-hardware",
                   power_interface="fake", management_interface="fake", deploy_interface="fake", boot_interface="fake",
                   network_interface="noop", storage_interface="noop", bios_interface="fake", raid_interface="fake")
    old.write(lambda conn: db_nodes.reserve(conn, Lock(node_id, "conductor-1", "old"), "provision: provide"))
    if is_told:
        restoring.settle(old, 60)
    old.dispose()
    with whole.running(tmp_path) as service:
        recovery.resume_orphans(service.conductor)
        found = row(service.db, node_id)

    assert (found.provision_state == "clean failed" and found.maintenance) is is_told


def blocks() -> dict[str, list[str]]:
    """Return the commands of the page by the title of their section."""
    found: dict[str, list[str]] = {}
    title = ""
    lines = PAGE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line and number + 1 < len(lines) and re.fullmatch(r"[-=]{3,}", lines[number + 1]):
            title = line
        elif command := re.match(r"\s+[$#] (.+)", line):
            found.setdefault(title, []).append(command[1])
    return found


@pytest.mark.parametrize(("kind", "title"), [
    ("sqlite", "SQLite"), pytest.param("mysql", "MariaDB", marks=pytest.mark.servers),
    pytest.param("postgresql", "PostgreSQL", marks=pytest.mark.servers)])
def test_the_commands_of_the_page_make_a_backup_and_restore_it(kind, title, tmp_path, capsys):
    with databases.migrated_database(kind) as url:
        made = databases.open_database(url)
        node(made, name="kept", provision_state="available", extra={"é": ["😀", "it's"]})
        backing_up, restoring_it = split(blocks()[title])
        run(backing_up, url, tmp_path)
        node(made, name="later", provision_state="enroll")
        made.dispose()
        run(restoring_it, url, tmp_path)
        file = tmp_path / "service.conf"
        file.write_text(f"[database]\nconnection = {url}\n")
        told = [(dbsync.main(["--config-file", str(file), *command]), capsys.readouterr().out)
                for command in (["version"], ["upgrade"], ["restored"])]
        made = databases.open_database(url)
        with made.reader() as conn:
            found = conn.execute(sa.select(nodes)).all()
        made.dispose()

    assert [status for status, _ in told] == [0, 0, 0]
    assert told[2][1].endswith("1 nodes were changed. The processes may be started.\n")
    assert [(each.name, each.extra, each.maintenance) for each in found] == [
        ("kept", {"é": ["😀", "it's"]}, True)]


def split(commands: list[str]) -> tuple[list[str], list[str]]:
    """Return the commands that back up, and those that restore."""
    number = next(index for index, command in enumerate(commands) if "restore" in command or "DROP" in command
                  or "dropdb" in command or command.startswith("rm "))
    return commands[:number], commands[number:]


def run(commands: list[str], url: str, folder: Path) -> None:
    """Run commands of the page with this database, and this folder for backups."""
    parsed = sa.make_url(url)
    backups = folder / "backups"
    backups.mkdir(exist_ok=True)
    for command in commands:
        text = command.replace("/var/backups", str(backups))
        if parsed.get_backend_name() == "sqlite":
            text = text.replace("/var/lib/ironic-rules/ironic-rules.sqlite", str(parsed.database)).replace(
                "-o ironic -g ironic ", "")
        else:
            login = f"-h {parsed.host} -P {parsed.port} -u {parsed.username}" if title_is_mysql(parsed) else (
                f"-h {parsed.host} -p {parsed.port} -U {parsed.username}")
            text = re.sub(r'^su postgres -c "([^"]*)"', r"\1", text)
            text = re.sub(r"^((?:mariadb|pg_|dropdb|createdb)[a-z_-]*)", rf"\1 {login}", text)
            text = text.replace("ironic_rules", str(parsed.database)).replace(" -O ironic", "")
        done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (text, done.stderr)


def title_is_mysql(url: sa.URL) -> bool:
    return url.get_backend_name() == "mysql" and shutil.which("mariadb-dump") is not None
