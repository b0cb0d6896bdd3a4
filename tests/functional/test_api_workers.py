"""``[api]workers``: several processes of one ``ironic-rules-api``, on one port."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.functional.databases import write_sqlite
from tests.functional.processes import Cluster, answers, free_port, wait_for

WORKERS = "[api]\nworkers = 2\n"


@pytest.fixture
def cluster(tmp_path):
    write_sqlite(tmp_path / "api.sqlite")
    # No broker is needed for what these requests ask.
    cluster = Cluster(tmp_path, f"sqlite:///{tmp_path}/api.sqlite", "rabbit://127.0.0.1:1/", WORKERS,
                      import_themselves=True)
    try:
        yield cluster
    finally:
        cluster.close()


def children(process):
    return {int(pid) for task in Path(f"/proc/{process.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()}


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_for("the stop", lambda: state(pid) == "T")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_each_process_serves_a_killed_one_is_replaced_wrong_options_end_none_and_all_stop_together(cluster):
    process, url = cluster.api("api")
    wait_for("both processes", lambda: process.text().count("listens on") == 2)
    assert "process 1 of 2" in process.text() and "process 2 of 2" in process.text()
    first = children(process)
    assert len(first) == 2
    for pid in first:
        with stopped(pid):
            assert answers(f"{url}/v1/nodes")

    os.kill(min(first), signal.SIGKILL)
    assert answers(f"{url}/v1/nodes")
    wait_for("the process in its place", lambda: process.text().count("listens on") == 3)
    second = children(process)
    assert len(second) == 2
    with stopped(max(first)):
        assert answers(f"{url}/v1/nodes")

    with (cluster.folder / "api.conf").open("a") as file:
        file.write("[DEFAULT]\ndebug = maybe\n")
    os.kill(process.pid, signal.SIGHUP)
    log, told = cluster.folder / "api.log", f"is not reloaded: {file.name}: [DEFAULT]debug = maybe"
    wait_for("both refusals", lambda: log.read_text().count(told) == 2)
    assert children(process) == second

    process.terminate()
    assert process.status == 0
    assert {state(pid) for pid in first | second} <= {"gone", "Z"}
    assert not answers(f"{url}/v1/nodes")


@pytest.mark.slow
def test_each_process_serves_two_listeners(tmp_path):
    write_sqlite(tmp_path / "api.sqlite")
    with contextlib.closing(Cluster(
            tmp_path, f"sqlite:///{tmp_path}/api.sqlite", "rabbit://127.0.0.1:1/",
            f"{WORKERS}public_host_ip = 127.0.0.1\npublic_port = {free_port()}\n", import_themselves=True)) as cluster:
        process, url = cluster.api("api")
        wait_for("both processes", lambda: process.text().count("listens on") == 2)
        ramdisks = re.search(r"for ramdisks on (http://\S+)", process.text())[1]

        def statuses(path: str) -> tuple[int, int]:
            return tuple(httpx.get(f"{each}{path}", timeout=60).status_code for each in (url, ramdisks))

        def check() -> None:
            assert statuses("/v1/nodes") == (200, 404)
            assert statuses("/v1/lookup?addresses=52:54:00:00:00:01") == (404, 404)
            assert statuses("/healthcheck/live") == (200, 200)

        first = children(process)
        for pid in first:
            with stopped(pid):
                check()
        os.kill(min(first), signal.SIGKILL)
        wait_for("the replacement", lambda: process.text().count("listens on") == 3)
        for pid in children(process):
            with stopped(pid):
                check()


@pytest.mark.slow
@pytest.mark.long
def test_the_processes_end_with_the_command_even_if_it_is_killed(cluster):
    process, _ = cluster.api("api")
    wait_for("both processes", lambda: process.text().count("listens on") == 2)
    pids = children(process)

    process.kill()

    wait_for("the end of the processes", lambda: {state(pid) for pid in pids} <= {"gone", "Z"})


@pytest.mark.slow
@pytest.mark.long
def test_a_port_in_use_is_told_once_and_starts_nothing(cluster):
    with socket.create_server(("127.0.0.1", 0)) as other:
        process = cluster.run("ironic_rules.cmd.api", "--port", str(other.getsockname()[1]), name="api")
        with pytest.raises(AssertionError, match="ended with status 75"):
            process.printed("listens on")
    assert process.text().count("Cannot listen on") == 1
