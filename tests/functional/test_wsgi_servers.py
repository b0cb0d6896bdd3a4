"""The API under gunicorn and uWSGI, with workers that are forked before and after the application is loaded."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.functional.brokers import temporary_vhost
from tests.functional.databases import migrated_database
from tests.functional.processes import Cluster, Process, answers, free_port, wait_for

APPLICATION = "ironic_rules.api.wsgi:application"
WORKERS = 2

#: Name -> (program, its first arguments, how it prints the worker's process id with each request).
SERVERS = {
    "gunicorn": ("gunicorn", ["--bind", "127.0.0.1:{port}"], r"^worker <(\d+)>$"),
    "gunicorn-preload": ("gunicorn", ["--preload", "--bind", "127.0.0.1:{port}"], r"^worker <(\d+)>$"),
    "uwsgi": ("uwsgi", ["--http-socket", "127.0.0.1:{port}"], r"\[pid: (\d+)\|"),
    "uwsgi-lazy-apps": ("uwsgi", ["--lazy-apps", "--http-socket", "127.0.0.1:{port}"], r"\[pid: (\d+)\|"),
}
OPTIONS = {
    # A worker that does not end by itself is not killed before the test fails.
    "gunicorn": ["--workers", str(WORKERS), "--graceful-timeout", "600", "--threads", "4", "--access-logfile", "-",
                 "--access-logformat", "worker %(p)s", APPLICATION],
    "uwsgi": ["--master", "--need-app", "--die-on-term", "--processes", str(WORKERS), "--threads", "4", "--module",
              APPLICATION, "--binary-path", sys.executable],
}


class Api:
    """Requests to an API, at the newest version."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self._url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"X-OpenStack-Ironic-API-Version": "1.96", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            return json.loads(text) if text else None


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A database with the schema, a broker, and one conductor."""
    with migrated_database("postgresql") as database, temporary_vhost() as transport:
        made = Cluster(tmp_path_factory.mktemp("cluster"), database, transport)
        try:
            made.conductor("conductor")
            yield made
        finally:
            made.close()


def serve(config: str, name: str, folder: Path, port: int) -> Process:
    """Start a WSGI server with a configuration file."""
    program, arguments, _ = SERVERS[name]
    filled = [argument.format(port=port) for argument in arguments] + OPTIONS[program]
    environment = {"IRONIC_RULES_CONFIG_FILE": config}
    if program == "uwsgi":
        # It is a C module without a ``__main__``.
        program = "run_uwsgi"
        (folder / f"{program}.py").write_text("import pyuwsgi\n\npyuwsgi.run()\n")
        environment["PYTHONPATH"] = str(folder)
    return Process(program, filled, folder, name, environment)


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    "gunicorn", "uwsgi", pytest.param("gunicorn-preload", marks=pytest.mark.long),
    pytest.param("uwsgi-lazy-apps", marks=pytest.mark.long)])
def test_a_wsgi_server_serves_the_api_and_each_worker_reaches_the_conductor(name, cluster, tmp_path):
    url = f"http://127.0.0.1:{(port := free_port())}"
    server = serve(cluster.configuration(name), name, tmp_path, port)
    try:
        wait_for(f"{name} to answer", lambda: server.is_running() and answers(url + "/"))
        api = Api(url)
        assert api("GET", "/")["default_version"]["version"] == "1.96"
        wait_for("the health check", lambda: answers(url + "/healthcheck"))
        made = api("POST", "/v1/nodes", {"name": name, "driver": "fake-hardware"})
        assert made["uuid"] in [node["uuid"] for node in api("GET", "/v1/nodes")["nodes"]]
        api("PUT", f"/v1/nodes/{name}/states/provision", {"target": "manage"})
        wait_for("the node to be manageable",
                 lambda: api("GET", f"/v1/nodes/{name}")["provision_state"] == "manageable")

        def every_worker_has_validated() -> bool:
            # RPC calls with an answer: the transport and its waiting thread work in each worker. Several at once,
            # because an idle worker may handle all requests that are sent one by one.
            with ThreadPoolExecutor(8) as pool:
                replies = list(pool.map(lambda _: api("GET", f"/v1/nodes/{name}/validate"), range(16)))
            assert all(reply["power"]["result"] is True for reply in replies)
            return len(set(re.findall(SERVERS[name][2], server.text(), re.MULTILINE))) == WORKERS

        wait_for(f"answers from {WORKERS} workers", every_worker_has_validated)
        if name != "gunicorn-preload":  # gunicorn keeps the application that it has loaded before it forked
            reload(server, cluster.configuration(name), url)
    finally:
        server.terminate()
        server.close()


def reload(server: Process, config: str, url: str) -> None:
    """Change the configuration, send SIGHUP, and wait until the same process serves with it."""
    with open(config, "a", encoding="utf-8") as file:
        file.write("[api]\npublic_endpoint = http://reloaded.example.org\n")
    os.kill(server.pid, signal.SIGHUP)

    def has_reloaded() -> bool:
        assert server.is_running(), server.text()
        try:
            with urllib.request.urlopen(url + "/", timeout=5) as response:
                return b"http://reloaded.example.org" in response.read()
        except OSError:  # between the old workers and the new
            return False

    wait_for("the server to read its configuration again", has_reloaded)
