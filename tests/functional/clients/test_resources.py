"""Resources beside nodes and ports, by openstacksdk and by ``openstack baremetal …``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openstack
import pytest
from openstack import exceptions
from openstack.baremetal.v1._proxy import Proxy

from tests.functional.clients.test_cli import Cli

# The library calls methods that it has itself deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")


@pytest.fixture(scope="module")
def sdk(endpoint: str) -> Iterator[Proxy]:
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint) as connection:
        yield connection.baremetal


@pytest.fixture
def cli(endpoint: str, tmp_path: Path) -> Cli:
    return Cli(endpoint, tmp_path)


def test_the_sdk_keeps_nodes_in_chassis(sdk):
    chassis = sdk.create_chassis(description="rack 7", extra={"a": 1})
    node = sdk.create_node(driver="fake-hardware", chassis_id=chassis.id)
    updated = sdk.update_chassis(chassis.id, description="rack 8")
    patched = sdk.patch_chassis(chassis.id, [{"op": "add", "path": "/extra/b", "value": 2}])
    listed = [item.id for item in sdk.chassis(details=True)]
    found = sdk.find_chassis(chassis.id)
    with pytest.raises(exceptions.BadRequestException) as refused:
        sdk.delete_chassis(chassis.id)
    sdk.delete_node(node)
    sdk.delete_chassis(chassis.id)

    assert (node.chassis_id, updated.description, patched.extra) == (chassis.id, "rack 8", {"a": 1, "b": 2})
    assert listed == [found.id] == [chassis.id]
    assert "still has nodes" in str(refused.value)
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_chassis(chassis.id)


def test_the_command_keeps_nodes_in_chassis(cli):
    chassis = cli.json("chassis create --description rack --extra a=1")["uuid"]
    node = cli.json(f"node create --driver fake-hardware --name of-chassis --chassis-uuid {chassis}")
    cli.run(f"chassis set {chassis} --description rack-8 --extra b=2")
    cli.run(f"chassis unset {chassis} --extra a")
    shown = cli.json(f"chassis show {chassis}")
    listed = cli.json("chassis list --long")
    of_chassis = cli.json(f"node list --chassis {chassis}")
    cli.run("node unset of-chassis --chassis-uuid")
    cli.run(f"chassis delete {chassis}")
    cli.run("node delete of-chassis")

    assert node["chassis_uuid"] == chassis
    assert (shown["description"], shown["extra"]) == ("rack-8", {"b": 2})
    assert [line["uuid"] for line in listed] == [chassis]
    assert [line["uuid"] for line in of_chassis] == [node["uuid"]]


@pytest.mark.slow
def test_the_sdk_stores_volumes_of_a_node(sdk):
    node = sdk.create_node(driver="fake-hardware", name="of-volumes")
    sdk.set_node_provision_state(node, "manage", wait=True, timeout=60)
    connector = sdk.create_volume_connector(node_id=node.id, type="iqn", connector_id="iqn.2026-11.example:1")
    target = sdk.create_volume_target(node_id=node.id, volume_type="iscsi", boot_index=0, volume_id="v-1")
    changed = sdk.update_volume_target(target, volume_id="v-2")
    moved = sdk.patch_volume_connector(connector, [{"op": "add", "path": "/extra/a", "value": 1}])
    listed = [item.id for item in sdk.volume_targets(details=True, node=node.id)]
    found = sdk.find_volume_connector(connector.id)
    with pytest.raises(exceptions.ConflictException):
        sdk.create_volume_target(node_id=node.id, volume_type="iscsi", boot_index=0, volume_id="v-3")
    sdk.delete_volume_target(target)
    sdk.delete_volume_connector(connector)
    sdk.delete_node(node)

    assert (changed.volume_id, moved.extra, found.connector_id) == ("v-2", {"a": 1}, "iqn.2026-11.example:1")
    assert listed == [target.id]


def test_the_command_stores_volumes_of_a_node(cli):
    node = cli.json("node create --driver fake-hardware --name volumes")["uuid"]
    connector = cli.json(f"volume connector create --node {node} --type wwpn --connector-id 50:06:01:60")["uuid"]
    target = cli.json(f"volume target create --node {node} --type iscsi --boot-index 0 --volume-id v-1 "
                      "--property target_iqn=iqn.x")["uuid"]
    shown = cli.json(f"volume target show {target}")
    listed = cli.json(f"volume connector list --node {node} --long")
    cli.run(f"volume target delete {target}")
    cli.run(f"volume connector delete {connector}")
    cli.run("node delete volumes")

    assert (shown["volume_id"], shown["properties"], shown["boot_index"]) == ("v-1", {"target_iqn": "iqn.x"}, 0)
    assert [(line["uuid"], line["type"]) for line in listed] == [(connector, "wwpn")]


def test_the_sdk_allocates_a_node(sdk):
    node = sdk.create_node(driver="fake-hardware", name="allocated", resource_class="sdk")
    for target in ("manage", "provide"):
        sdk.set_node_provision_state(node, target, wait=True, timeout=60)
    sdk.set_node_traits(node, ["CUSTOM_A"])
    allocation = sdk.create_allocation(resource_class="sdk", name="web", traits=["CUSTOM_A"], candidate_nodes=[node.id])
    active = sdk.wait_for_allocation(allocation, timeout=60)
    of_node = sdk.get_node(node.id)
    updated = sdk.update_allocation(allocation, extra={"a": 1})
    patched = sdk.patch_allocation(allocation, [{"op": "replace", "path": "/name", "value": "db"}])
    listed = [item.id for item in sdk.allocations(node=node.id)]
    failing = sdk.create_allocation(resource_class="sdk")
    with pytest.raises(exceptions.ResourceFailure, match="no available nodes match"):
        sdk.wait_for_allocation(failing, timeout=60)
    sdk.delete_allocation(failing)
    sdk.delete_allocation("db")
    left = sdk.get_node(node.id)
    sdk.delete_node(node)

    assert (active.state, active.node_id, active.traits) == ("active", node.id, ["CUSTOM_A"])
    assert (of_node.allocation_id, of_node.instance_id) == (allocation.id, allocation.id)
    assert (updated.extra, patched.name, listed) == ({"a": 1}, "db", [allocation.id])
    assert (left.allocation_id, left.instance_id) == (None, None)


@pytest.mark.slow
def test_the_command_allocates_a_node(cli):
    cli.run("node create --driver fake-hardware --name for-cli --resource-class cli")
    for verb in ("manage", "provide"):
        cli.run(f"node {verb} for-cli --wait 60")
    made = cli.json("allocation create --resource-class cli --name web --wait 60")
    of_node = cli.json("allocation show web")
    cli.run("allocation set web --extra a=1")
    listed = cli.json("allocation list --resource-class cli")
    cli.run("allocation delete web")
    cli.run("node delete for-cli")

    assert (made["state"], made["last_error"]) == ("active", None)
    assert of_node["node_uuid"] == made["node_uuid"]
    assert [line["name"] for line in listed] == ["web"]


STEPS = ('[{"interface": "deploy", "step": "erase_devices_metadata", "args": {}, "order": 2},'
         ' {"interface": "raid", "step": "delete_configuration", "args": {}, "order": 1}]')


@pytest.mark.slow
def test_the_command_cleans_a_node_by_a_runbook(cli):
    runbook = cli.json("runbook create --name CUSTOM_WIPE --extra a=1 --steps", STEPS)
    cli.run("runbook set CUSTOM_WIPE --extra b=2")
    shown = cli.json("runbook show CUSTOM_WIPE")
    listed = cli.json("runbook list")
    cli.run("node create --driver fake-hardware --raid-interface fake --name wiped")
    cli.run("node manage wiped --wait 60")
    refused = cli.refused("node clean wiped --runbook CUSTOM_WIPE")
    cli.run("node add trait wiped CUSTOM_WIPE")
    cli.run("node clean wiped --runbook CUSTOM_WIPE --wait 60")
    state = cli.json("node show wiped")["provision_state"]
    events = cli.run("node history list wiped --long -c Event -f value")
    cli.run("node delete wiped")
    cli.run("runbook delete CUSTOM_WIPE")

    assert (shown["uuid"], shown["extra"]) == (runbook["uuid"], {"a": 1, "b": 2})
    assert [line["name"] for line in listed] == ["CUSTOM_WIPE"]
    assert "may not be used on node" in refused
    assert state == "manageable"
    assert 0 <= events.index("raid.delete_configuration") < events.index("deploy.erase_devices_metadata")


def test_the_sdk_keeps_runbooks_and_reads_shards_and_states(sdk):
    steps = [{"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}]
    runbook = sdk.create_runbook(name="CUSTOM_SDK", steps=steps)
    patched = sdk.patch_runbook(runbook, [{"op": "add", "path": "/extra/a", "value": 1}])
    found = [item.name for item in sdk.runbooks(details=True)]
    sdk.delete_runbook(runbook)
    node = sdk.create_node(driver="fake-hardware", shard="east")
    shards = sdk.get("/shards", microversion="1.82").json()["shards"]
    states = sdk.get("/node_states", microversion="1.96").json()["node_states"]
    in_shard = [item.id for item in sdk.nodes(shard="east")]
    sdk.delete_node(node)

    assert (patched.extra, patched.steps, found) == ({"a": 1}, steps, ["CUSTOM_SDK"])
    assert {"name": "east", "count": 1} in shards
    assert [entry["count"] >= 1 for entry in states if entry["provision_state"] == "enroll"] == [True]
    assert in_shard == [node.id]
