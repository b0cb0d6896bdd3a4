"""``[conductor]workers``: several processes of one ``ironic-rules-conductor``."""

from __future__ import annotations

import os
import signal
from importlib import resources
from pathlib import Path

import pytest
import sqlalchemy as sa

from ironic_rules import samples
from ironic_rules.cmd import lifecycle
from ironic_rules.db.tables import conductors
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.fleets import Simulation
from tests.functional.processes import Cluster, wait_for
from tests.functional.test_cluster import states_and_inventories

pytestmark = pytest.mark.slow

WORKERS = "[conductor]\nworkers = 3\n"


@pytest.fixture
def cluster(tmp_path):
    with migrated_database("mysql") as database, temporary_vhost() as transport:
        cluster = Cluster(tmp_path, database, transport, import_themselves=True)
        cluster.database_url = database
        try:
            yield cluster
        finally:
            cluster.close()


def start(cluster, config=WORKERS):
    file = cluster.configuration("many")
    Path(file).write_text(Path(file).read_text().replace("[conductor]\n", config, 1))
    return cluster.start("ironic_rules.cmd.conductor", file, "many")


def children(process):
    return {int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()} | {
        int(pid) for task in Path(f"/proc/{process.pid}/task").iterdir()
        for pid in (task / "children").read_text().split()}


def are_at_work(process, number):
    def count():
        return process.text().count("is running") >= number

    wait_for(f"{number} processes at work; got:\n{process.text()}", count)


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.long
def test_each_process_is_a_conductor_and_a_killed_one_comes_back(cluster):
    process = start(cluster)
    are_at_work(process, 3)
    # Not by lines: the processes write at the same time, each its text and then the end of the line.
    assert all(f"ironic-rules-conductor {name} is running" in process.text() for name in ("many", "many:2", "many:3"))
    _, url = cluster.api("api")
    first = children(process)
    fleet = Simulation(url, 60, cluster.folder)
    wait_for("the first inspected nodes", lambda: states_and_inventories(cluster.database_url)[1] >= 5, timeout_s=120)
    os.kill(min(first), signal.SIGKILL)

    assert fleet.report()["status"] == 0

    assert states_and_inventories(cluster.database_url) == ({"manageable": 60}, 60, 0)
    are_at_work(process, 4)
    assert len(children(process)) == 3 and children(process) != first
    process.terminate()
    assert process.status == 0
    assert all(is_gone(pid) for pid in first)


def test_the_processes_end_with_the_command_even_if_it_is_killed(cluster):
    process = start(cluster)
    are_at_work(process, 3)
    pids = children(process)
    assert len(pids) == 3

    process.kill()

    wait_for("the end of the processes", lambda: all(map(is_gone, pids)))


def test_a_bad_configuration_is_told_once_and_starts_nothing(cluster):
    process = start(cluster, WORKERS + "[inspector]\nhooks = no-such-hook\n[conductor]\n")

    with pytest.raises(AssertionError, match="ended with status 2"):
        process.printed("is running")

    assert "no-such-hook" in process.text()
    assert process.text().count("\n") == 1


@pytest.mark.parametrize("workers", [1, 3])
def test_a_conductor_whose_name_is_taken_says_so_and_ends_with_a_status_that_its_unit_does_not_restart(
        cluster, workers):
    process = start(cluster, f"[conductor]\nworkers = {workers}\n")
    are_at_work(process, workers)

    engine = sa.create_engine(cluster.database_url, poolclass=sa.NullPool)
    with engine.begin() as conn:  # as another process does when it starts
        conn.execute(sa.update(conductors).where(conductors.c.hostname == "many").values(instance="another"))
    wait_for("the end", lambda: not process.is_running())

    assert process.status == lifecycle.DISPLACED
    assert "[DEFAULT]host: another process has registered as conductor many, so this one ends" in process.text()
    unit = (resources.files(samples) / "host/systemd/ironic-rules-conductor.service").read_text()
    assert f"RestartPreventExitStatus={lifecycle.REFUSED} {lifecycle.DISPLACED}\n" in unit
