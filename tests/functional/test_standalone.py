"""``ironic-rules`` as a new user runs it: one process, without configuration."""

from __future__ import annotations

import json
import os
import signal
import ssl
import urllib.request
from pathlib import Path

import httpx
import pytest

from ironic_rules.cmd import dbsync
from ironic_rules.rpc import memory
from tests.functional import databases
from tests.functional.fleets import Simulation
from tests.functional.processes import Process, answers, free_port, standalone, wait_for

NODES = 24
#: Arguments of a fleet that repeats its requests for 50 s: on a busy machine, a process takes that long to start again.
PATIENT = ("--retry-delay", "4")


def get(url, **changed):
    request = urllib.request.Request(url, headers={
        "X-OpenStack-Ironic-API-Version": "1.96", "Content-Type": "application/json"}, **changed)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response) if response.status == 200 else None


@pytest.mark.slow
def test_a_fleet_ends_manageable_and_is_so_after_a_restart(tmp_path):
    with standalone(tmp_path) as (process, url):
        report = Simulation(url, NODES, tmp_path).report()
        assert report["status"] == 0, report
        states = [node["provision_state"] for node in get(url + "/v1/nodes?limit=1000")["nodes"]]
        assert states == ["manageable"] * NODES
        process.terminate()
        assert process.status == 0
    assert "has stopped." in process.text()
    with standalone(tmp_path, name="again") as (_, url):
        assert len(get(url + "/v1/nodes?provision_state=manageable&limit=1000")["nodes"]) == NODES


def test_the_demo_shows_every_sample_and_goes_on_serving(tmp_path):
    with standalone(tmp_path, "--demo") as (process, url):
        process.printed("Still serving")
        samples = Path(__file__).parents[2] / "ironic_rules" / "samples" / "inventories"
        nodes = {node["name"]: node["provision_state"] for node in get(url + "/v1/nodes")["nodes"]}
        assert set(nodes) == {f"demo-{path.stem}" for path in samples.glob("*.json")}
        failed = {name for name, state in nodes.items() if state != "manageable"}
        assert failed == {"demo-ramdisk-error"}
        text = process.text()
        assert all(name in text for name in nodes)

        # Its machines boot when they are inspected, and the one that failed has been repaired.
        node = f"{url}/v1/nodes/demo-ramdisk-error"
        get(f"{node}/states/provision", method="PUT", data=json.dumps({"target": "inspect"}).encode())
        wait_for("the repaired machine", lambda: get(node)["provision_state"] == "manageable")
        inspections = get(f"{node}/inspections")["inspections"]
        assert sorted(each["outcome"] for each in inspections) == ["failed", "finished"]
        process.terminate()


def test_sigterm_ends_it_and_nothing_is_lost(tmp_path):
    port = free_port()
    with standalone(tmp_path, port=port) as (process, url):
        fleet = Simulation(url, NODES, tmp_path, *PATIENT)
        wait_for("the first inspected node", lambda: get(url + "/v1/nodes?provision_state=manageable&limit=1")["nodes"])
        process.terminate()
        assert process.status == 0
    with standalone(tmp_path, port=port, name="again"):
        report = fleet.report()
        assert report["status"] == 0, report


def test_sighup_reads_the_configuration_again_but_not_the_built_in_rules(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("- {description: first, actions: [{op: log, args: {msg: hello}}]}")
    with standalone(tmp_path, config=f"[inspection_rules]\nbuilt_in = {rules}\n") as (process, url):
        log = tmp_path / "state" / "ironic-rules.log"
        rules.write_text("this is: [no rule file")
        with (tmp_path / "ironic-rules.conf").open("a") as file:
            file.write("[DEFAULT]\ndebug = true\n")

        os.kill(process.pid, signal.SIGHUP)

        wait_for("the new configuration", lambda: "DEFAULT.debug changed" in log.read_text())
        assert [rule["description"] for rule in get(url + "/v1/inspection_rules")["inspection_rules"]] == ["first"]
        process.terminate()
        assert process.status == 0


def test_sighup_changes_what_is_mutable_for_nodes_that_wait_already(tmp_path):
    config = "[conductor]\nrecovery_interval = 1\n"
    with standalone(tmp_path, config=config) as (process, url), httpx.Client(
            base_url=url, headers={"X-OpenStack-Ironic-API-Version": "1.96"}, timeout=60) as client:
        node = client.post("/v1/nodes", json={"driver": "fake-hardware", "name": "a"}).json()["uuid"]
        states = f"/v1/nodes/{node}/states/provision"

        def at(state: str) -> bool:
            return client.get(f"/v1/nodes/{node}").json()["provision_state"] == state

        client.put(states, json={"target": "manage"})
        wait_for("the node", lambda: at("manageable"))
        client.put(states, json={"target": "inspect"})
        wait_for("the wait", lambda: at("inspect wait"))
        with (tmp_path / "ironic-rules.conf").open("a") as file:
            file.write("[conductor]\ninspect_wait_timeout = 1\nworkers_pool_size = 7\n")

        os.kill(process.pid, signal.SIGHUP)

        wait_for("the end of the wait", lambda: at("inspect failed"))
        assert "Ignoring change to immutable option conductor.workers_pool_size" in (
            tmp_path / "state" / "ironic-rules.log").read_text()


@pytest.mark.slow
def test_a_sudden_death_in_the_middle_of_the_work_loses_nothing(tmp_path):
    port = free_port()
    with standalone(tmp_path, port=port) as (process, url):
        fleet = Simulation(url, NODES, tmp_path, *PATIENT)
        wait_for("a node in the middle of its inspection",
                 lambda: get(url + "/v1/nodes?provision_state=inspecting&limit=1")["nodes"], interval_s=0.001)
        process.kill()
    with standalone(tmp_path, port=port, name="again") as (_, url):
        report = fleet.report()
        assert report["status"] == 0, report
        assert not [node for node in get(url + "/v1/nodes?detail=true")["nodes"] if node["reservation"]]


def test_it_answers_from_where_it_says_refuses_a_second_one_in_its_folder_and_ends_with_ctrl_c(tmp_path):
    with standalone(tmp_path, "--host", "127.0.0.1") as (first, url):
        assert get(url + "/")["default_version"]["version"] == "1.96"
        assert "ironic-rules-simulate" in first.printed("Try next").string
        second = Process("ironic_rules.cmd.standalone", ["--state-dir", str(tmp_path / "state"), "--port", "0"],
                         tmp_path, "second")
        try:
            wait_for("the end of the second process", lambda: not second.is_running())
            assert second.status == 2
            assert "Another ironic-rules already uses" in second.text()
        finally:
            second.close()
        assert first.is_running()
        wait_for("the health check", lambda: answers(url + "/healthcheck"))

        os.kill(first.pid, signal.SIGINT)
        wait_for("the end of the process", lambda: not first.is_running())
        assert first.status == 0


def test_a_conductor_that_waits_for_its_broker_ends_when_it_is_told(tmp_path):
    with databases.migrated_database("sqlite") as database:
        file = tmp_path / "no-broker.conf"
        file.write_text(f"[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:{free_port()}/\n"
                        f"[database]\nconnection = {database}\n")
        process = Process("ironic_rules.cmd.conductor", ["--config-file", str(file)], tmp_path, "conductor")
        try:
            process.printed("Connection failed|unreachable")
            process.terminate()
            assert process.status == 0
            assert process.text().endswith("stopped while it was starting\n")
        finally:
            process.close()


def test_a_bad_configuration_is_told_in_one_line(tmp_path):
    file = tmp_path / "bad.conf"
    file.write_text("[inspector]\nhooks = ramdisk-error,no-such-hook\n")
    process = Process("ironic_rules.cmd.standalone", ["--config-file", str(file), "--state-dir", str(tmp_path / "s")],
                      tmp_path, "bad")
    try:
        wait_for("the end of the process", lambda: not process.is_running())
        assert process.status == 2
        assert "no-such-hook" in process.text()
        assert "Traceback" not in process.text()
    finally:
        process.close()


def test_listening_for_everybody_without_authentication_and_options_without_effect_are_warned_of(tmp_path):
    # 192.0.2.1 is not an address of this machine: the warning is logged before binding to it fails.
    config = tmp_path / "api.conf"
    config.write_text(f"[DEFAULT]\ntransport_url = {memory.DEFAULT_URL}\n"
                      f"[database]\nconnection = sqlite:///{tmp_path}/api.sqlite\n")
    assert dbsync.main(["--config-file", str(config), "upgrade"]) == 0
    one = tmp_path / "one.conf"
    one.write_text("[conductor]\nworkers = 3\n[api]\nworkers = 1\n")
    listen = ["--host", "192.0.2.1", "--port", "0"]
    for module, arguments in (("standalone", ["--config-file", str(one), "--state-dir", str(tmp_path / "s")]),
                              ("api", ["--config-file", str(config)])):
        process = Process(f"ironic_rules.cmd.{module}", [*arguments, *listen], tmp_path, module)
        try:
            wait_for("the end of the process", lambda process=process: not process.is_running())
            assert "noauth and the API listens on 192.0.2.1: every client that can reach its port" in process.text()
            assert "Cannot listen on 192.0.2.1" in process.text()
            assert (f"{one}: [conductor]workers is 3, which has no effect" in process.text()) == (
                module == "standalone")
            assert "[api]workers" not in process.text()
        finally:
            process.close()


def test_a_missing_file_of_users_is_told_in_one_line(tmp_path):
    file = tmp_path / "basic.conf"
    file.write_text(f"[DEFAULT]\nauth_strategy = http_basic\nhttp_basic_auth_user_file = {tmp_path}/nosuch\n")
    process = Process("ironic_rules.cmd.standalone", ["--config-file", str(file), "--state-dir", str(tmp_path / "s")],
                      tmp_path, "basic")
    try:
        wait_for("the end of the process", lambda: not process.is_running())
        assert process.status == 2
        assert "http_basic_auth_user_file cannot be read" in process.text()
        assert "Traceback" not in process.text()
    finally:
        process.close()


def test_a_demo_over_tls_shows_how_its_certificate_is_trusted(tmp_path):
    process = Process("ironic_rules.cmd.standalone", ["--tls", "--demo", "--state-dir", str(tmp_path / "s"), "--port",
                                                      "0"], tmp_path, "tls")
    try:
        url = process.printed(r"listens on (https://\S+)").group(1)
        process.printed("Still serving on")
        certificate = tmp_path / "s" / "trial-certificate.pem"
        assert f"curl -s --cacert {certificate} {url}/v1/nodes" in process.text()
        assert (tmp_path / "s" / "trial-key.pem").stat().st_mode & 0o077 == 0
        nodes = httpx.get(f"{url}/v1/nodes", verify=ssl.create_default_context(cafile=str(certificate)))
        assert len(nodes.json()["nodes"]) == 6
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)
    finally:
        process.close()
