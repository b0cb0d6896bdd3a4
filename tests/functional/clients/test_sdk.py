"""openstacksdk, which other services and playbooks use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from openstack import exceptions
from openstack.baremetal.v1._proxy import Proxy

from tests.functional.clients import machines

# The library calls methods that it has itself deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:openstack")

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def sdk(endpoint: str) -> Iterator[Proxy]:
    """The bare metal part of a connection without authentication and without a user's settings."""
    with openstack.connect(
            load_yaml_config=False, load_envvars=False, auth_type="none", endpoint=endpoint) as connection:
        yield connection.baremetal


@pytest.fixture
def node(sdk: Proxy, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A new node, named after the test."""
    created = sdk.create_node(driver="fake-hardware", name=request.node.name.replace("_", "-"))
    yield created
    sdk.delete_node(created)


def test_a_node_is_created_found_changed_and_deleted(sdk):
    created = sdk.create_node(driver="fake-hardware", name="sdk-1", inspect_interface="agent", resource_class="gold",
                              properties={"cpu_arch": "x86_64"}, extra={"a": 1, "b": 2})
    updated = sdk.update_node(created, name="sdk-2", extra={"a": 1, "c": [3]})
    patched = sdk.patch_node(updated, [{"op": "add", "path": "/properties/memory_mb", "value": 4096},
                                       {"op": "remove", "path": "/resource_class"}])
    found = sdk.find_node("sdk-2", ignore_missing=False)
    fetched = sdk.get_node(created.id, fields=["uuid", "name"])
    sdk.delete_node(created)

    assert (created.provision_state, created.inspect_interface, created.is_maintenance) == ("enroll", "agent", False)
    assert (updated.name, updated.extra) == ("sdk-2", {"a": 1, "c": [3]})
    assert (patched.properties, patched.resource_class) == ({"cpu_arch": "x86_64", "memory_mb": 4096}, None)
    assert (found.id, found.properties) == (created.id, patched.properties)
    assert (fetched.id, fetched.name, fetched.driver) == (created.id, "sdk-2", None)
    assert sdk.find_node("sdk-2") is None


def test_nodes_are_listed_over_several_pages(sdk):
    created = [sdk.create_node(driver="fake-hardware", name=f"page-{number}", resource_class="pages").id
               for number in range(5)]

    listed = list(sdk.nodes(resource_class="pages"))
    detailed = list(sdk.nodes(details=True, resource_class="pages"))
    chosen = list(sdk.nodes(resource_class="pages", fields=["uuid", "traits"], limit=1))

    assert [node.id for node in listed] == created
    assert [node.driver for node in listed] == [None] * 5
    assert [(node.id, node.driver) for node in detailed] == [(uuid, "fake-hardware") for uuid in created]
    assert [(node.id, node.traits) for node in chosen] == [(uuid, []) for uuid in created]


def test_traits_are_set_added_and_removed(sdk, node):
    sdk.set_node_traits(node, ["CUSTOM_A", "CUSTOM_B"])
    sdk.add_node_trait(node, "HW_CPU_X86_AVX2")
    sdk.remove_node_trait(node, "CUSTOM_A", ignore_missing=False)

    assert sdk.get_node(node.id).traits == ["CUSTOM_B", "HW_CPU_X86_AVX2"]
    with pytest.raises(exceptions.NotFoundException, match="CUSTOM_A"):
        sdk.remove_node_trait(node, "CUSTOM_A", ignore_missing=False)


def test_a_node_is_managed_inspected_and_provided(sdk, endpoint):
    machine = machines.machine(2)
    rule = sdk.create_inspection_rule(
        conditions=[{"op": "eq", "args": {"values": ["{node.name}", "sdk-inspected"]}}],
        actions=[{"op": "add-trait", "args": {"name": "CUSTOM_SEEN"}}])
    node = sdk.create_node(driver="fake-hardware", name="sdk-inspected", id=machine.uuid, inspect_interface="agent",
                           driver_info={"ipmi_address": machine.bmc_address})
    sdk.create_port(node_id=node.id, address=machine.pxe_mac)
    managed = sdk.set_node_provision_state(node, "manage", wait=True, timeout=TIMEOUT_S)
    managed = (managed.provision_state, managed.power_state)
    with pytest.raises(exceptions.NotFoundException, match="inventory"):
        sdk.get_node_inventory(node)
    ramdisk = threading.Thread(target=machines.boot, args=(endpoint, machine.uuid, machine))
    ramdisk.start()
    inspected = sdk.set_node_provision_state(node, "inspect", wait=True, timeout=TIMEOUT_S).to_dict()
    ramdisk.join()
    inventory = sdk.get_node_inventory(node)
    sdk.set_node_provision_state(node, "provide")
    provided = sdk.wait_for_nodes_provision_state([node], "available", timeout=TIMEOUT_S)
    ports = {port.address for port in sdk.ports(node=node.id)}
    sdk.delete_inspection_rule(rule)

    assert managed == ("manageable", "power off")
    assert (inspected["provision_state"], inspected["last_error"]) == ("manageable", None)
    assert inspected["properties"] == {"cpu_arch": machine.inventory["cpu"]["architecture"]}
    assert inspected["traits"] == ["CUSTOM_SEEN"]
    assert inventory["inventory"] == machine.inventory
    assert machine.pxe_mac in ports
    assert [(node.id, node.provision_state) for node in provided] == [(machine.uuid, "available")]


def test_a_wrong_transition_says_why(sdk, node):
    with pytest.raises(exceptions.BadRequestException, match=r'"provide".*"enroll"'):
        sdk.set_node_provision_state(node, "provide")


def test_what_the_asked_version_does_not_know_is_named(sdk):
    with pytest.raises(exceptions.HttpException, match=r"owner needs at least API version 1\.50"):
        exceptions.raise_from_response(sdk.get("/nodes?owner=me", microversion="1.49"))


def test_maintenance_power_and_validation(sdk, node):
    sdk.set_node_maintenance(node, reason="new fans")
    in_maintenance = sdk.get_node(node.id)
    sdk.unset_node_maintenance(node)
    validated = sdk.validate_node(node, required=("boot", "deploy", "power", "storage"))
    sdk.set_node_power_state(node, "power on", wait=True, timeout=TIMEOUT_S)

    assert (in_maintenance.is_maintenance, in_maintenance.maintenance_reason) == (True, "new fans")
    assert all(validated[name].result for name in ("inspect", "management", "network"))
    assert (sdk.get_node(node.id).is_maintenance, sdk.get_node(node.id).power_state) == (False, "power on")


def test_vifs_are_attached_and_detached(sdk, node):
    vif = "4475ad5a-6f33-4d0b-a2fe-b4b0a4d3a5e8"
    sdk.create_port(node_id=node.id, address="52:54:00:00:03:01")
    sdk.attach_vif_to_node(node, vif)
    attached = sdk.list_node_vifs(node)
    detached = sdk.detach_vif_from_node(node, vif)

    assert attached == [vif]
    assert detached is True
    assert sdk.list_node_vifs(node) == []
    assert sdk.detach_vif_from_node(node, vif) is False


def test_ports_and_port_groups_are_created_changed_and_deleted(sdk, node):
    group = sdk.create_port_group(node_id=node.id, name="sdk-bond", address="52:54:00:00:04:00")
    ports = [sdk.create_port(node_id=node.id, address=f"52:54:00:00:04:0{number}", is_pxe_enabled=False)
             for number in (1, 2, 3)]
    sdk.update_port(ports[0], address="52:54:00:00:04:0a", port_group_id=group.id)
    sdk.patch_port(ports[1], [{"op": "add", "path": "/extra/cable", "value": "blue"}])
    sdk.delete_port(ports[2])
    sdk.update_port_group(group, mode="802.3ad")
    listed = [(port.address, port.port_group_id, port.extra, port.is_pxe_enabled)
              for port in sdk.ports(details=True, node=node.id)]

    assert listed == [("52:54:00:00:04:0a", group.id, {}, False), ("52:54:00:00:04:02", None, {"cable": "blue"}, False)]
    assert sdk.find_port(ports[2].id) is None
    assert [(found.id, found.mode) for found in sdk.port_groups(details=True, node=node.id)] == [(group.id, "802.3ad")]
    sdk.delete_port(ports[0])
    sdk.delete_port_group(group, ignore_missing=False)
    assert list(sdk.port_groups(node=node.id)) == []


def test_rules_are_created_changed_listed_and_deleted(sdk):
    actions = [{"op": "set-attribute", "args": {"path": "/extra/a", "value": 1}}]
    created = [sdk.create_inspection_rule(actions=actions, description=f"rule {number}", priority=number)
               for number in range(3)]
    ids = [rule.id for rule in created]
    updated = sdk.update_inspection_rule(created[0], description="changed", priority=7)
    patched = sdk.patch_inspection_rule(created[1], [{"op": "remove", "path": "/description"}])
    listed = [rule.id for rule in sdk.inspection_rules()]
    fetched = sdk.get_inspection_rule(ids[0])
    for rule in created:
        sdk.delete_inspection_rule(rule, ignore_missing=False)

    assert created[2].actions == actions
    assert (created[2].conditions, created[2].phase, created[2].sensitive) == ([], "main", False)
    assert (updated.description, updated.priority) == ("changed", 7)
    assert patched.description is None
    assert set(ids) <= set(listed)
    assert (fetched.description, fetched.priority, fetched.actions) == ("changed", 7, actions)
    with pytest.raises(exceptions.NotFoundException):
        sdk.get_inspection_rule(ids[0])


def test_drivers_and_conductors_are_shown(sdk):
    conductor, = sdk.conductors(detail=True)
    driver, = sdk.drivers(details=True)

    assert (conductor.alive, conductor.drivers) == (True, ["fake-hardware"])
    assert sdk.get_conductor(conductor.hostname).hostname == conductor.hostname
    assert (driver.name, driver.hosts, driver.default_inspect_interface) == (
        "fake-hardware", [conductor.hostname], "agent")
    assert sdk.get_driver("fake-hardware").enabled_inspect_interfaces == ["agent", "fake", "no-inspect"]


def test_d_32_deploy_templates_are_created_changed_listed_and_deleted(sdk):
    bios = {"interface": "bios", "step": "apply_configuration", "priority": 150,
            "args": {"settings": [{"name": "LogicalProc", "value": "Enabled"}]}}
    raid = {"interface": "raid", "step": "set_password", "args": {"password": "secret"}, "priority": 10}
    hidden = {**raid, "args": {"password": "******"}}
    created = [sdk.create_deploy_template(name=f"CUSTOM_SDK_{number}", steps=[bios], extra={"a": number})
               for number in range(3)]
    ids = [template.id for template in created]
    updated = sdk.update_deploy_template(created[0], name="CUSTOM_SDK_NEW", steps=[raid, bios, bios])
    patched = sdk.patch_deploy_template(created[1], [{"op": "replace", "path": "/steps/0/priority", "value": 5}])
    listed = list(sdk.deploy_templates())
    detailed = list(sdk.deploy_templates(details=True))
    found = sdk.find_deploy_template("CUSTOM_SDK_2", ignore_missing=False)
    fetched = sdk.get_deploy_template("CUSTOM_SDK_2")
    fields = sdk.get_deploy_template(ids[2], fields=["name"])
    for template in created:
        sdk.delete_deploy_template(template, ignore_missing=False)

    assert [(template.steps, template.extra) for template in created[2:]] == [([bios], {"a": 2})]
    assert (updated.name, updated.steps) == ("CUSTOM_SDK_NEW", [hidden, bios, bios])
    assert patched.steps == [{**bios, "priority": 5}]
    assert [(template.id, template.steps) for template in listed] == [(uuid, None) for uuid in ids]
    assert [(template.id, template.name, len(template.steps)) for template in detailed] == list(zip(
        ids, ["CUSTOM_SDK_NEW", "CUSTOM_SDK_1", "CUSTOM_SDK_2"], [3, 1, 1], strict=True))
    assert (found.id, fetched.id, fetched.steps, fetched.updated_at) == (ids[2], ids[2], [bios], None)
    assert (fields.name, fields.steps) == ("CUSTOM_SDK_2", None)
    with pytest.raises(exceptions.NotFoundException, match="CUSTOM_SDK_2"):
        sdk.get_deploy_template("CUSTOM_SDK_2")
