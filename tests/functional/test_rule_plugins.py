"""Actions of other packages, calls to other services and invalid built-in rules, in the real service."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.functional import plugins
from tests.functional.fleets import Simulation
from tests.functional.processes import Process, standalone, wait_for

HEADERS = {"X-OpenStack-Ironic-API-Version": "1.96", "Content-Type": "application/json"}


def send(url: str, body: Any = None) -> tuple[int, Any]:
    """GET, or POST if there is a body; return status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, HEADERS), timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as exc:
        return exc.code, json.load(exc)


def extras(url: str) -> list[dict[str, Any]]:
    return [node["extra"] for node in send(url + "/v1/nodes?fields=extra")[1]["nodes"]]


@pytest.fixture(scope="module")
def installed() -> Path:
    """The sample package."""
    return plugins.installed("sample_actions")


@pytest.fixture
def with_plugin(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the sample package available to processes that are started from here."""
    monkeypatch.setenv("PYTHONPATH", str(installed))


@contextlib.contextmanager
def without_leftovers(url: str) -> Iterator[str]:
    """Let a test use a service of several ones; delete its rules and nodes afterwards."""
    yield url
    for collection in ("inspection_rules", "nodes"):
        for one in send(f"{url}/v1/{collection}?limit=1000")[1][collection]:
            path = f"{url}/v1/{collection}/{one['uuid']}"
            urllib.request.urlopen(urllib.request.Request(path, headers=HEADERS, method="DELETE"), timeout=60).close()


@pytest.fixture(scope="module")
def service_with_plugin(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # For this process only.
            patch.setenv("PYTHONPATH", str(installed))
            _, url = stack.enter_context(standalone(tmp_path_factory.mktemp("with-plugin")))
        yield url


@pytest.fixture
def extended(service_with_plugin: str) -> Iterator[str]:
    """The URL of a service in whose environment the sample package is."""
    with without_leftovers(service_with_plugin) as url:
        yield url


@pytest.fixture(scope="module")
def service_without_plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("without-plugin")) as (_, url):
        yield url


@pytest.fixture
def plain(service_without_plugin: str) -> Iterator[str]:
    """The URL of a service without the sample package and without configuration."""
    with without_leftovers(service_without_plugin) as url:
        yield url


def tagging(name: str, **values: Any) -> dict[str, Any]:
    return {"actions": [{"op": "sample-tag", "args": {"name": name, "note": "{as it is}"}}], **values}


@pytest.mark.slow
def test_r45_an_action_of_another_package_works_from_its_installation_to_the_node(tmp_path, extended):
    assert send(extended + "/v1/inspection_rules", tagging("{inventory[cpu][architecture]}"))[0] == 201
    assert send(extended + "/v1/inspection_rules", tagging("{inventory[hostname]}", phase="early"))[0] == 201
    report = Simulation(extended, 3, tmp_path).report()
    assert report["status"] == 0, report
    assert extras(extended) == [{"tags": ["x86_64 ({as it is})"]}] * 3


def test_the_tests_of_the_sample_package_pass(tmp_path, with_plugin):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull,
         str(plugins.SAMPLES / "sample_actions" / "test_sample_rule_actions.py")],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_r86_a_rule_that_does_not_fit_the_action_is_refused(extended):
    status, body = send(extended + "/v1/inspection_rules", {"actions": [{"op": "sample-tag", "args": {"nmae": "x"}}]})
    assert status == 400
    text = json.dumps(body)
    assert "/actions/0/args/nmae" in text
    assert "did you mean 'name'?" in text


def test_without_the_package_the_action_is_unknown(plain):
    status, body = send(plain + "/v1/inspection_rules", tagging("x"))
    assert status == 400
    assert "there is no such action" in json.dumps(body)


def test_a_rule_whose_action_was_uninstalled_fails_inspections_and_says_so(tmp_path, installed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(installed))
        with standalone(tmp_path) as (process, url):
            assert send(url + "/v1/inspection_rules", tagging("x"))[0] == 201
            process.terminate()
    with standalone(tmp_path, name="again") as (_, url):
        Simulation(url, 1, tmp_path).report()
        node, = send(url + "/v1/nodes?detail=true")[1]["nodes"]
        assert node["provision_state"] == "inspect failed"
        assert "/actions/0/op" in node["last_error"]


def failed_start(folder: Path, config: str) -> str:
    """Run the service, which must not start, and return its output."""
    file = folder / "bad.conf"
    file.write_text(config)
    process = Process("ironic_rules.cmd.standalone", ["--config-file", str(file), "--state-dir", str(folder / "s")],
                      folder, "bad")
    try:
        wait_for("the end of the process", lambda: not process.is_running())
        assert process.status == 2
        return process.text()
    finally:
        process.close()


def test_a_broken_plugin_stops_the_start(tmp_path, installed, monkeypatch):
    broken = shutil.copytree(installed, tmp_path / "broken")
    (broken / "sample_rule_actions.py").write_text("import no_such_library\n")
    monkeypatch.setenv("PYTHONPATH", str(broken))

    text = failed_start(tmp_path, "")

    assert "action 'sample-tag': ModuleNotFoundError: No module named 'no_such_library'" in text
    assert "Traceback" not in text


def test_r03_bad_built_in_rules_stop_the_start_with_every_problem(tmp_path):
    (tmp_path / "rules.yaml").write_text(
        "- {conditions: [{op: eqq}], actions: []}\n- {priority: x, actions: [{op: log}]}\n")

    text = failed_start(tmp_path, f"[inspection_rules]\nbuilt_in = {tmp_path}/rules.yaml\n")

    for place in ("/0/conditions/0/op: ", "/0/actions: ", "/1/priority: ", "/1/actions/0/args: "):
        assert f"rules.yaml: {place}" in text
    assert "Traceback" not in text


def test_the_built_in_rules_are_read_once_for_the_whole_process(tmp_path):
    (tmp_path / "rules.yaml").write_text("- {description: tags, actions: [{op: add-trait, args: [CUSTOM_SEEN]}]}\n")
    with standalone(tmp_path, config=f"[inspection_rules]\nbuilt_in = {tmp_path}/rules.yaml\n") as (_, url):
        listed = send(url + "/v1/inspection_rules")[1]["inspection_rules"]
        assert [(rule["description"], rule["built_in"]) for rule in listed] == [("tags", True)]
        assert Simulation(url, 1, tmp_path).report()["status"] == 0
        assert [node["traits"] for node in send(url + "/v1/nodes?detail=true")[1]["nodes"]] == [["CUSTOM_SEEN"]]

    log = (tmp_path / "state" / "ironic-rules.log").read_text()
    assert log.count("1 built-in inspection rules from") == 1


class Cmdb(BaseHTTPRequestHandler):
    """Answers 200 to paths that begin with /known, and 404 to all others."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["X-Token"]))  # type: ignore[attr-defined]
        self.send_response(200 if self.path.startswith("/known") else 404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def cmdb_of_module() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Cmdb)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cmdb(cmdb_of_module: Any) -> Any:
    """A server that no test has called yet."""
    cmdb_of_module.asked.clear()
    return cmdb_of_module


@pytest.fixture(scope="module")
def service_that_calls(cmdb_of_module: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("calling")
    config = f"[inspection_rules]\napi_call_allowed_hosts = 127.0.0.1:{cmdb_of_module.server_port}\n"
    with standalone(folder, config=config) as (_, url):
        yield url, folder / "state" / "ironic-rules.log"


@pytest.fixture
def caller(service_that_calls: tuple[str, Path]) -> Iterator[str]:
    """The URL of a service that may call the CMDB."""
    with without_leftovers(service_that_calls[0]) as url:
        yield url


def calling(server: Any, path: str) -> dict[str, Any]:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    return {"actions": [{"op": "api-call", "args": {"url": url, "headers": {"X-Token": "t"}}}]}


def test_api_call_reaches_an_allowed_host(tmp_path, cmdb, caller):
    assert send(caller + "/v1/inspection_rules", calling(cmdb, "/known/{inventory[cpu][architecture]}"))[0] == 201
    report = Simulation(caller, 2, tmp_path).report()
    assert report["status"] == 0, report
    assert cmdb.asked == [("/known/x86_64", "t")] * 2


def test_api_call_that_fails_fails_the_inspection_with_nothing_secret(tmp_path, cmdb, caller, service_that_calls):
    assert send(caller + "/v1/inspection_rules", calling(cmdb, "/s3cret"))[0] == 201
    Simulation(caller, 1, tmp_path).report()
    node, = send(caller + "/v1/nodes?detail=true")[1]["nodes"]
    assert node["provision_state"] == "inspect failed"
    assert f"127.0.0.1:{cmdb.server_port} answered with status 404" in node["last_error"]
    assert "s3cret" not in node["last_error"] + service_that_calls[1].read_text()


def test_api_call_is_refused_where_nothing_is_configured(cmdb, plain):
    status, body = send(plain + "/v1/inspection_rules", calling(cmdb, "/known"))
    assert status == 400
    assert "/actions/0/args/url: api-call is disabled" in json.dumps(body)
