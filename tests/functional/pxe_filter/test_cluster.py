"""API, conductor, RabbitMQ and two filters: changes of nodes and ports are in the files immediately.

The interval of the filters' periodic synchronization is an hour, so every change is the result of a message.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ironic_rules import samples
from tests.functional.brokers import temporary_vhost
from tests.functional.databases import temporary_database
from tests.functional.processes import Cluster, Process, wait_for
from tests.functional.pxe_filter.network import verdicts

pytestmark = pytest.mark.servers

_CONFIG = """\
inspect_wait_timeout = 8
[auto_discovery]
driver = fake-hardware
[pxe_filter]
sync_period = 3600
"""


class Site:
    """A cluster, its API, and the folders of its filters."""

    def __init__(self, cluster: Cluster, url: str, folders: list[Path]) -> None:
        self.cluster, self._url, self.folders = cluster, url, folders
        self._serial = 0

    def call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self._url}/v1/{path}", method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "1.96"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read() or b"null")

    def machine(self, **fields: Any) -> tuple[str, str]:
        """Enroll a node with a port, and make it manageable; return its UUID and the address."""
        self._serial += 1
        mac = f"52:54:00:33:00:{self._serial:02x}"
        uuid = self.call("POST", "nodes", {"driver": "fake-hardware", **fields})["uuid"]
        self.call("POST", "ports", {"node_uuid": uuid, "address": mac})
        self.call("PUT", f"nodes/{uuid}/states/provision", {"target": "manage"})
        self.reaches(uuid, "manageable")
        return uuid, mac

    def inspect(self, uuid: str) -> None:
        self.call("PUT", f"nodes/{uuid}/states/provision", {"target": "inspect"})

    def reaches(self, uuid: str, state: str) -> None:
        wait_for(f"{state}", lambda: self.call("GET", f"nodes/{uuid}")["provision_state"] == state)

    def deliver(self, uuid: str, mac: str, **more: Any) -> None:
        """Send what the node's ramdisk would send."""
        body = samples.inventory(samples.inventory_names()[0])
        body.pop("error", None)
        body["inventory"]["interfaces"] = [
            {"name": f"eth{number}", "mac_address": address, "ipv4_address": f"192.0.2.{number + 9}"}
            for number, address in enumerate([mac, *more.pop("other_macs", ())])]
        self.call("POST", f"continue_inspection?node_uuid={uuid}", {**body, **more})

    def says(self, mac: str, allowed: bool | None) -> None:
        """Wait until all filters allow the address, or deny it."""
        wait_for(f"{mac} to be {allowed}", lambda: [verdicts(folder).get(mac) for folder in self.folders] ==
                 [allowed] * len(self.folders), interval_s=0.01)


def start_filter(cluster: Cluster, name: str, folder: Path) -> Process:
    folder.mkdir()
    file = cluster.configuration(name)
    text = Path(file).read_text().replace("[pxe_filter]\n", f"[pxe_filter]\ndhcp_hostsdir = {folder}\n")
    Path(file).write_text(text)
    process = cluster.start("ironic_rules.cmd.pxe_filter", file, name)
    process.printed("is running")
    log = cluster.folder / f"{name}.log"
    wait_for("the filter to listen", lambda: "Listening for messages" in log.read_text())
    return process


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("cluster")
    with temporary_database("postgresql") as database, temporary_vhost() as transport:
        cluster = Cluster(folder, database, transport, _CONFIG)
        try:
            cluster.sync_database()
            cluster.conductor("conductor-1")
            folders = [folder / "hosts-1", folder / "hosts-2"]
            for number, hosts in enumerate(folders):
                start_filter(cluster, f"filter-{number}", hosts)
            yield Site(cluster, cluster.api("api-1")[1], folders)
        finally:
            cluster.close()


def test_a_machine_comes_in_when_its_inspection_starts_and_out_when_it_is_done(site):
    uuid, mac = site.machine()
    site.says(mac, False)

    site.inspect(uuid)
    site.reaches(uuid, "inspect wait")
    # The conductor has asked until one of the filters served the machine.
    assert True in [verdicts(folder).get(mac) for folder in site.folders]
    assert "does not serve" not in (site.cluster.folder / "conductor-1.log").read_text()
    site.says(mac, True)
    site.says("*", True)
    site.deliver(uuid, mac, other_macs=["52:54:00:44:00:01"])

    site.says(mac, False)
    site.says("52:54:00:44:00:01", False)
    site.says("*", False)


def test_out_when_the_inspection_fails(site):
    uuid, mac = site.machine()
    site.inspect(uuid)
    site.reaches(uuid, "inspect wait")
    site.says(mac, True)

    site.deliver(uuid, mac, error="the disk is on fire")

    site.says(mac, False)
    site.reaches(uuid, "inspect failed")


def test_out_when_the_inspection_is_aborted(site):
    uuid, mac = site.machine()
    site.inspect(uuid)
    site.reaches(uuid, "inspect wait")
    site.says(mac, True)

    site.call("PUT", f"nodes/{uuid}/states/provision", {"target": "abort"})

    site.says(mac, False)


@pytest.mark.slow
def test_out_when_the_ramdisk_does_not_come(site):
    uuid, mac = site.machine()
    site.inspect(uuid)
    site.says(mac, True)

    site.says(mac, False)
    site.reaches(uuid, "inspect failed")


def test_ports_are_followed(site):
    uuid, _ = site.machine()
    other = "52:54:00:33:01:01"
    port = site.call("POST", "ports", {"node_uuid": uuid, "address": other})["uuid"]
    site.says(other, False)
    site.inspect(uuid)
    site.says(other, True)
    site.reaches(uuid, "inspect wait")

    changed = "52:54:00:33:01:02"
    site.call("PATCH", f"ports/{port}", [{"op": "replace", "path": "/address", "value": changed}])
    site.says(changed, True)
    added = "52:54:00:33:01:03"
    site.call("POST", "ports", {"node_uuid": uuid, "address": added})
    site.says(added, True)

    site.call("PUT", f"nodes/{uuid}/states/provision", {"target": "abort"})
    site.says(changed, False)
    site.says(added, False)


@pytest.mark.slow
def test_deleted_nodes_and_ports_go_with_the_unknown_ones(site):
    (uuid, mac), (kept, kept_mac) = site.machine(), site.machine()
    site.says(mac, False)  # what is created and deleted between two readings has no line, as any unknown address
    site.inspect(kept)
    site.says(kept_mac, True)
    site.call("DELETE", f"nodes/{uuid}")
    site.says(mac, True)

    site.says("*", False)
    site.says(mac, False)


def test_a_node_of_another_inspect_interface_stays_out(site):
    uuid, mac = site.machine()
    site.call("PATCH", f"nodes/{uuid}", [{"op": "replace", "path": "/inspect_interface", "value": "no-inspect"}])
    site.call("POST", "ports", {"node_uuid": uuid, "address": "52:54:00:33:02:01"})
    site.says("52:54:00:33:02:01", False)

    assert verdicts(site.folders[0])[mac] is False
