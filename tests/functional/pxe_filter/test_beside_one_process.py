"""The smallest set-up: ``ironic-rules`` with SQLite, without a broker, and a filter beside it or in it."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.functional.processes import Process, standalone, wait_for
from tests.functional.pxe_filter.network import verdicts

MAC = "52:54:00:00:00:01"


class Client:
    """Requests to the API without authentication."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, method: str, path: str, **body: Any) -> Any:
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode() if body else None, method=method,
            headers={"X-OpenStack-Ironic-API-Version": "latest", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or b"null")

    def state(self, node: str) -> str:
        return str(self("GET", f"/v1/nodes/{node}")["provision_state"])

    def provision(self, node: str, target: str, state: str) -> None:
        self("PUT", f"/v1/nodes/{node}/states/provision", target=target)
        wait_for(state, lambda: self.state(node) == state)

    def enroll(self) -> str:
        """Return a manageable node of fake hardware with a port."""
        node = self("POST", "/v1/nodes", driver="fake-hardware")["uuid"]
        self("POST", "/v1/ports", node_uuid=node, address=MAC)
        self.provision(node, "manage", "manageable")
        return str(node)


def shows(folder: Path, expected: dict[str, bool]) -> None:
    # The filter reads the database every 45 seconds; this must not be what brings the change.
    wait_for(f"the files to say {expected}", lambda: verdicts(folder) == expected, timeout_s=20)


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    folder = tmp_path / "hosts"
    folder.mkdir()
    return folder


def test_a_filter_beside_it_needs_no_option_but_its_folder(tmp_path: Path, hosts: Path) -> None:
    file = tmp_path / "filter.conf"
    file.write_text(f"[pxe_filter]\ndhcp_hostsdir = {hosts}\n")
    with standalone(tmp_path) as (_, url):
        client = Client(url)
        node = client.enroll()
        process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(file), "--state-dir",
                                                          str(tmp_path / "state")], tmp_path, "filter")
        try:
            process.printed("is running")
            shows(hosts, {MAC: False, "*": False})
            client.provision(node, "inspect", "inspect wait")
            # It has started the machine after that.
            assert verdicts(hosts) == {MAC: True, "*": True}
            assert "does not serve" not in (tmp_path / "state" / "ironic-rules.log").read_text()
            client.provision(node, "abort", "inspect failed")
            shows(hosts, {MAC: False, "*": False})
            assert "rabbit" not in process.text().lower()
            process.terminate()
            assert process.status == 0
        finally:
            process.close()


def test_without_a_database_it_says_where_it_looks_for_one(tmp_path: Path, hosts: Path) -> None:
    file = tmp_path / "filter.conf"
    file.write_text(f"[pxe_filter]\ndhcp_hostsdir = {hosts}\n")
    process = Process("ironic_rules.cmd.pxe_filter", ["--config-file", str(file)], tmp_path, "filter")
    try:
        process.printed(r"commands beside it find it by \[DEFAULT\]state_path or --state-dir")
        assert process.status != 0
    finally:
        process.close()


def test_it_runs_the_filter_itself_with_one_option(tmp_path: Path, hosts: Path) -> None:
    config = f"[pxe_filter]\nin_process = true\ndhcp_hostsdir = {hosts}\n"
    with standalone(tmp_path, config=config) as (process, url):
        client = Client(url)
        node = client.enroll()
        shows(hosts, {MAC: False, "*": False})
        client.provision(node, "inspect", "inspect wait")
        # It has started the machine after that.
        assert verdicts(hosts) == {MAC: True, "*": True}
        client.provision(node, "abort", "inspect failed")
        shows(hosts, {MAC: False, "*": False})
        process.terminate()
        assert process.status == 0


def test_a_folder_that_is_missing_is_reported_at_its_start(tmp_path: Path) -> None:
    file = tmp_path / "service.conf"
    file.write_text("[pxe_filter]\nin_process = true\ndhcp_hostsdir = /nowhere/hosts\n")
    process = Process("ironic_rules.cmd.standalone", ["--config-file", str(file), "--state-dir",
                                                      str(tmp_path / "state"), "--port", "0"], tmp_path, "service")
    try:
        process.printed("/nowhere/hosts")
        assert process.status != 0
    finally:
        process.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_beside", [False, True])
def test_a_machine_that_is_not_served_is_started_with_a_warning(tmp_path: Path, hosts: Path, is_beside: bool) -> None:
    """No dnsmasq runs with the process id in the file: whether it serves the machine is never observed."""
    config = f"[pxe_filter]\ndhcp_hostsdir = {hosts}\ndnsmasq_pid_file = {tmp_path / 'dnsmasq.pid'}\n"
    with contextlib.ExitStack() as stack:
        _, url = stack.enter_context(standalone(tmp_path, config="" if is_beside else f"{config}in_process = true\n"))
        if is_beside:
            (tmp_path / "filter.conf").write_text(config)
            process = Process("ironic_rules.cmd.pxe_filter", [
                "--config-file", str(tmp_path / "filter.conf"), "--state-dir", str(tmp_path / "state")],
                tmp_path, "filter")
            stack.callback(process.close)
            process.printed("is running")
        client = Client(url)
        node = client.enroll()
        client.provision(node, "inspect", "inspect wait")

        log = (tmp_path / "state" / "ironic-rules.log").read_text()
        assert f"Node {node} boots its ramdisk, but after 10 seconds the DHCP server does not serve {MAC}" in log
