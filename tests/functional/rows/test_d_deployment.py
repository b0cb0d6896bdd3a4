"""D-05, D-07, D-26, D-30, D-31: the effect of deploy templates when a node is provisioned."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.whole import Whole

TEMPLATES = "/v1/deploy_templates"
BIOS, RAID = "CUSTOM_BIOS", "CUSTOM_RAID"


def settings(value: str, priority: int = 50) -> dict[str, Any]:
    return {"interface": "bios", "step": "apply_configuration", "priority": priority,
            "args": {"settings": [{"name": "VMX", "value": value}]}}


VOLUMES = {"interface": "raid", "step": "create_configuration", "priority": 51,
           "args": {"logical_disks": [{"size_gb": 10, "raid_level": "1"}]}}


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    """The whole service with two templates."""
    for name, step in ((BIOS, settings("on")), (RAID, VOLUMES)):
        assert service.app.post_json(TEMPLATES, {"name": name, "steps": [step]}).status_int == 201
    yield service
    for name in (BIOS, RAID):
        assert service.app.delete(f"{TEMPLATES}/{name}").status_int == 204


def available(whole: Whole, *traits: str) -> str:
    """Return a node that is available and has these traits."""
    node = whole.enroll("available", raid_interface="fake", bios_interface="fake")
    assert whole.app.put_json(f"/v1/nodes/{node}/traits", {"traits": list(traits)}).status_int == 204
    return node


def ask_for(whole: Whole, node: str, *traits: str) -> None:
    """Set the traits of the node's instance as Nova does."""
    reply = whole.app.patch_json(f"/v1/nodes/{node}", [
        {"op": "add", "path": "/instance_info/traits", "value": list(traits)}])
    assert reply.status_int == 200, reply.text


def templates_of(whole: Whole, node: str) -> list[str]:
    """Return ``step: source`` of each finished step of a template or a request, in their order."""
    found = []
    for _, event in whole.events(node):
        if " finished after " in event and ", code)" not in event:
            words = event.split(" (")
            found.append(f"{words[0].removeprefix('Deploy step ')}: {words[1].split(', ')[1].split(')')[0]}")
    return found


def test_d_05_the_traits_of_the_instance_ask_for_templates_not_those_of_the_node(whole):
    node = available(whole, BIOS, RAID, "CUSTOM_WITHOUT_TEMPLATE")
    ask_for(whole, node, RAID, "CUSTOM_WITHOUT_TEMPLATE")

    assert whole.provision(node, "active")["provision_state"] == "active"

    assert templates_of(whole, node) == [f"raid.create_configuration: template {RAID}"]


@pytest.mark.parametrize("asked", [None, []])
def test_d_05_an_instance_without_traits_asks_for_no_template(whole, asked):
    node = available(whole, BIOS, RAID)
    if asked is not None:
        ask_for(whole, node, *asked)

    assert whole.provision(node, "active")["provision_state"] == "active"

    assert templates_of(whole, node) == []


@pytest.mark.parametrize("verb", ["active", "rebuild"])
def test_d_07_matching_templates_add_their_steps_to_those_that_always_run(whole, verb):
    node = available(whole, BIOS, RAID)
    ask_for(whole, node, BIOS, RAID)
    if verb == "rebuild":
        whole.put(node, provision_state="active")

    shown = whole.provision(node, verb)

    assert templates_of(whole, node) == [
        f"raid.create_configuration: template {RAID}", f"bios.apply_configuration: template {BIOS}"]
    always = [event for _, event in whole.events(node) if ", code) finished after " in event]
    assert [event.split()[2] for event in always] == [
        "deploy.deploy", "deploy.write_image", "deploy.prepare_instance_boot", "deploy.tear_down_agent",
        "deploy.switch_to_tenant_network", "deploy.boot_instance"]
    assert shown["raid_config"] == {"logical_disks": VOLUMES["args"]["logical_disks"]}
    assert shown["driver_internal_info"]["fake_bios_settings"] == {"VMX": "on"}


def test_d_07_the_template_counts_as_it_is_when_the_node_is_provisioned(whole):
    node = available(whole, BIOS)
    ask_for(whole, node, BIOS)
    reply = whole.app.patch_json(f"{TEMPLATES}/{BIOS}", [
        {"op": "replace", "path": "/steps", "value": [settings("off")]}])
    assert reply.status_int == 200, reply.text

    shown = whole.provision(node, "active")

    assert shown["driver_internal_info"]["fake_bios_settings"] == {"VMX": "off"}


def test_d_26_what_nova_sends_already_is_enough(whole):
    """Nova's calls at spawn and at destroy; tests/functional/clients/test_nova.py uses its own driver."""
    instance = "5bd4a8a1-7d80-4b22-a5ca-3a6db1e1b6c5"
    node = available(whole, "CUSTOM_CLASS_A", BIOS, RAID)
    reserved = whole.app.patch_json(f"/v1/nodes/{node}", [
        {"op": "replace", "path": "/instance_uuid", "value": instance}])
    assert reserved.status_int == 200, reserved.text
    patch = [{"op": "add", "path": f"/instance_info/{key}", "value": value} for key, value in {
        "image_source": "7b5e2bd6-5a4b-4a2a-9a5c-30cf1e9ad3ff", "root_gb": "10", "swap_mb": "0", "display_name": "vm",
        "vcpus": "2", "nova_host_id": "compute-1", "memory_mb": "1024", "local_gb": "10",
        "capabilities": '{"boot_option": "local"}', "traits": ["CUSTOM_CLASS_A", BIOS]}.items()]
    assert whole.app.patch_json(f"/v1/nodes/{node}", patch).status_int == 200
    validation = whole.app.get(f"/v1/nodes/{node}/validate").json
    assert [validation[kind]["result"] for kind in ("deploy", "power", "storage")] == [True, True, True]

    shown = whole.provision(node, "active", configdrive="H4sIAAAA")

    assert (shown["provision_state"], shown["instance_uuid"]) == ("active", instance)
    assert templates_of(whole, node) == [f"bios.apply_configuration: template {BIOS}"]
    shown = whole.provision(node, "deleted")
    assert (shown["provision_state"], shown["instance_uuid"], shown["instance_info"]) == ("available", None, {})


@pytest.mark.parametrize("version", ["1.1", "1.46", "1.54"])
def test_d_30_templates_count_also_for_clients_that_are_older_than_they(whole, version):
    node = available(whole, BIOS)
    ask_for(whole, node, BIOS)
    headers = {"X-OpenStack-Ironic-API-Version": version}
    hidden = whole.app.get(TEMPLATES, headers=headers)
    assert hidden.status_int == 404

    reply = whole.app.put_json(f"/v1/nodes/{node}/states/provision", {"target": "active"}, headers=headers)

    assert reply.status_int == 202, reply.text
    assert whole.at_rest(node).provision_state == "active"
    assert templates_of(whole, node) == [f"bios.apply_configuration: template {BIOS}"]


def test_d_31_while_conductors_are_pinned_no_template_is_applied_and_a_warning_says_so(whole, caplog):
    node = available(whole, BIOS, RAID)
    ask_for(whole, node, BIOS, RAID)

    with whole.option("conductor", "pin_release_version", "0.1"), caplog.at_level(logging.WARNING):
        shown = whole.provision(node, "active", deploy_steps=[settings("requested")])

    assert shown["provision_state"] == "active"
    # The steps of the request itself are not those of a template.
    assert templates_of(whole, node) == ["bios.apply_configuration: request"]
    notice = (f"Deploy templates are not applied while [conductor]pin_release_version is set: {BIOS}, {RAID}.")
    assert [record.levelname for record in caplog.records if notice in record.getMessage()] == ["WARNING"]
    assert any(event.endswith(notice) for _, event in whole.events(node))

    whole.provision(node, "rebuild")

    assert len(templates_of(whole, node)) == 3


def test_d_31_a_pin_is_no_matter_to_nodes_that_ask_for_no_template(whole, caplog):
    node = available(whole, BIOS)

    with whole.option("conductor", "pin_release_version", "0.1"):
        whole.provision(node, "active")

    assert "pin_release_version" not in caplog.text + str(whole.events(node))
