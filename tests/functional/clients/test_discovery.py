"""Discovered nodes, as users see them: in a real ``openstack`` and with openstacksdk."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
from openstack import exceptions

from ironic_rules.client.sdk import Nodes
from tests.functional.clients import machines
from tests.functional.clients.test_cli import Cli
from tests.functional.installations import served
from tests.functional.processes import wait_for

# The library warns of its own deprecations.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")]

CONFIG = "[api]\nmax_limit = 2\n[auto_discovery]\nenabled = true\ndriver = fake-hardware\n"
MACS = [f"52:54:00:00:00:0{number}" for number in range(3)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service with discovery enabled; its pages are so short that clients have to follow links."""
    with served(tmp_path_factory.mktemp("discovery"), CONFIG) as url:
        yield url


@pytest.fixture(scope="module")
def discovered(endpoint: str) -> list[str]:
    """The UUIDs of three discovered nodes, among which is one that was not discovered."""
    found = [post(endpoint, MACS[0])]
    machines.call(endpoint, "POST", "nodes", {"driver": "fake-hardware", "name": "by-hand"})
    found += [post(endpoint, mac) for mac in MACS[1:]]
    wait_for("the inspections", lambda: all(
        machines.call(endpoint, "GET", f"nodes/{uuid}")["inspection_finished_at"] for uuid in found))
    return found


def post(endpoint: str, mac: str) -> str:
    """Send a machine's data as its ramdisk does; return the node's UUID."""
    body = {"inventory": {"interfaces": [{"name": "eth0", "mac_address": mac}], "cpu": {"architecture": "x86_64"}}}
    request = urllib.request.Request(f"{endpoint}/v1/continue_inspection", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return str(json.load(reply)["uuid"])


@pytest.fixture
def cli(endpoint: str, tmp_path: Path) -> Cli:
    return Cli(endpoint, tmp_path)


@pytest.fixture
def nodes(endpoint: str) -> Iterator[Nodes]:
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint) as connection:
        yield Nodes(connection.baremetal)


def uuids(listed: list[dict[str, Any]]) -> list[str]:
    return [node["uuid"] for node in listed]


def test_m_36_discovered_nodes_are_listed(cli: Cli, discovered: list[str]) -> None:
    listed = cli.json("node list --provision-state enroll --auto-discovered --limit 0")

    assert uuids(listed) == discovered
    assert uuids(cli.json("node list --auto-discovered --limit 1")) == discovered[:1]
    assert cli.json("node list --auto-discovered --provision-state active --limit 0") == []
    long = cli.json("node list --auto-discovered --long --limit 0")
    assert [node["driver"] for node in long] == ["fake-hardware"] * 3
    chosen = cli.json("node list --auto-discovered --limit 0 --fields uuid provision_state")
    assert {node["provision_state"] for node in chosen} == {"enroll"}


def test_without_the_option_all_nodes_are_listed(cli: Cli, discovered: list[str]) -> None:
    listed = cli.json("node list --limit 0")

    assert len(listed) == 4
    assert set(discovered) < set(uuids(listed))


def test_m_37_the_sdk_gets_the_inventory_by_uuid_and_by_node(nodes: Nodes, discovered: list[str]) -> None:
    node = next(nodes.nodes(auto_discovered=True))

    assert nodes.get_inventory(node) == nodes.get_inventory(discovered[0])
    assert nodes.get_inventory(node, status="processed") == {**nodes.get_inventory(node), "status": "processed"}
    assert nodes.get_inventory(node)["inventory"]["interfaces"][0]["mac_address"] == MACS[0]
    version, = nodes.inventory_versions(node)
    assert nodes.get_inventory(node, version=version["version"]) == {**nodes.get_inventory(node), "status": "processed"}
    assert nodes.inventory_diff(node, version["version"], version["version"])["patch"] == []
    with pytest.raises(exceptions.NotFoundException, match="before version"):
        nodes.inventory_diff(node)
    with pytest.raises(exceptions.NotFoundException):
        nodes.get_inventory("by-hand")
    with pytest.raises(exceptions.NotFoundException, match="no inspection inventory that is failed"):
        nodes.get_inventory(node, status="failed")


def test_m_38_the_sdk_filters_discovered_nodes(nodes: Nodes, discovered: list[str]) -> None:
    detailed = list(nodes.nodes(details=True, auto_discovered=True, provision_state="enroll"))

    assert [node.id for node in nodes.nodes(auto_discovered=True)] == discovered
    assert [(node.id, node.is_auto_discovered, node.inspection_scope) for node in detailed] == [
        (uuid, True, None) for uuid in discovered]
    assert [node.name for node in nodes.nodes(auto_discovered=False)] == ["by-hand"]
    assert len(list(nodes.nodes())) == 4
