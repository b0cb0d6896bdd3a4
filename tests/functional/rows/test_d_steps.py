"""D-02, D-03, D-06, D-08 to D-14, D-33, D-34: which steps a node's deployment runs, and which nodes can run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from ironic_rules.db.tables import deploy_template_steps
from tests.functional.whole import Whole, fault

TEMPLATES = "/v1/deploy-templates"
CORE = ["deploy.deploy", "deploy.write_image", "deploy.prepare_instance_boot", "deploy.tear_down_agent",
        "deploy.switch_to_tenant_network", "deploy.boot_instance"]
MIRROR, VMX = "CUSTOM_BM_CONFIG_RAID_DISK_MIRROR", "CUSTOM_BM_CONFIG_BIOS_VMX_ON"


def step(name: str, priority: int, **args: Any) -> dict[str, Any]:
    interface, _, own = name.partition(".")
    return {"interface": interface, "step": own, "priority": priority, "args": args}


def disks(level: str = "1", priority: int = 10) -> dict[str, Any]:
    """Return the document's step, with another RAID level or priority."""
    return step("raid.create_configuration", priority, delete_configuration=True, logical_disks=[
        {"size_gb": "MAX", "raid_level": level, "is_root_volume": True}])


def setting(value: str, priority: int = 10) -> dict[str, Any]:
    return step("bios.apply_configuration", priority, settings=[{"name": "VMX", "value": value}])


@pytest.fixture
def whole(service: Whole) -> Iterator[Whole]:
    """The whole service without any templates."""
    yield service
    for item in service.app.get(TEMPLATES).json["deploy-templates"]:
        assert service.app.delete(f"{TEMPLATES}/{item['uuid']}").status_int == 204


def create(whole: Whole, name: str, *steps: dict[str, Any]) -> Any:
    """Create a template, and return it."""
    reply = whole.app.post_json(TEMPLATES, {"name": name, "steps": list(steps)})
    assert reply.status_int == 201, reply.text
    return reply.json


def node_with(whole: Whole, *traits: str, asks: Any = None, state: str = "available", **fields: Any) -> str:
    """Return the UUID of a node with ``traits``, whose instance requests ``asks``; without it all of them."""
    uuid = whole.enroll(state, instance_info={"traits": list(traits) if asks is None else asks}, **fields)
    assert whole.app.put_json(f"/v1/nodes/{uuid}/traits", {"traits": list(traits)}).status_int == 204
    return uuid


def deploy_of(whole: Whole, uuid: str) -> dict[str, Any]:
    """Return the result of validation of the deploy interface."""
    found: dict[str, Any] = whole.app.get(f"/v1/nodes/{uuid}/validate").json["deploy"]
    return found


def preview(whole: Whole, uuid: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = whole.app.get(f"/v1/nodes/{uuid}/deploy_steps{query}").json["deploy_steps"]
    return found


def names(steps: list[dict[str, Any]]) -> list[str]:
    return [f"{item['interface']}.{item['step']}" for item in steps]


def ran(whole: Whole, uuid: str, **arguments: Any) -> list[str]:
    """Deploy a node and return the steps in its history, in their order."""
    assert whole.provision(uuid, "active", **arguments)["provision_state"] == "active"
    told = [text for _, text in whole.events(uuid) if text.startswith("Deploy step ") and " finished after " in text]
    return [text.split(" ")[2] for text in told]


def test_d_02_a_template_is_enabled_on_the_nodes_that_have_its_trait(whole):
    create(whole, "CUSTOM_D_02", setting("on"))
    one, other = node_with(whole, "CUSTOM_D_02"), node_with(whole, "CUSTOM_OTHER_TRAIT_I_AM_USUALLY_IGNORED")

    listed = whole.app.get(f"{TEMPLATES}/CUSTOM_D_02/nodes").json["nodes"]

    assert [item["uuid"] for item in listed] == [one]
    assert names(preview(whole, one)) == [*CORE, "bios.apply_configuration"]
    assert names(preview(whole, other)) == CORE


@pytest.mark.parametrize(("steps", "problem"), [
    ([step("raid.no_such", 5)], "/steps/0 (raid.no_such): the raid interface of the node does not offer this step"),
    ([setting("on"), step("bios.factory_reset", 0), disks()],
     "/steps/2 (raid.create_configuration): the raid interface of the node does not offer this step"),
])
def test_d_03_validation_fails_with_any_enabled_template_that_is_not_supported(whole, steps, problem):
    # Enabled, and requested by no instance.
    create(whole, MIRROR, *steps)
    uuid = node_with(whole, MIRROR, asks=[], raid_interface="no-raid")

    found = deploy_of(whole, uuid)

    assert found == {"result": False, "reason": f"deploy template {MIRROR}, {problem}"}
    reply = whole.ask(uuid, "active")
    assert (reply.status_int, problem in fault(reply)) == (400, True)


def test_d_03_validation_names_the_argument(whole):
    # Created while no driver had the step with other arguments: the table is written without the API.
    create(whole, MIRROR, step("raid.later", 5, speed=1))
    uuid = node_with(whole, MIRROR)
    whole.db.write(lambda conn: conn.execute(
        sa.update(deploy_template_steps).values(step="apply_configuration")).rowcount)

    reason = deploy_of(whole, uuid)["reason"]

    where = f"deploy template {MIRROR}, /steps/0 (raid.apply_configuration): "
    assert f"{where}/args/speed: the step has no such argument" in reason
    assert f"{where}/args/raid_config: the step requires this argument" in reason


def test_d_03_validation_is_content_with_supported_templates(whole):
    create(whole, MIRROR, disks())
    create(whole, VMX, setting("on"))
    uuid = node_with(whole, MIRROR, VMX)

    found = deploy_of(whole, uuid)

    # The document's own example has a priority with which it runs when the instance has been started.
    assert (found["result"], [warning["kind"] for warning in found["warnings"]]) == (True, ["after-instance"] * 2)
    assert found["warnings"] == whole.app.get(f"/v1/nodes/{uuid}/deploy_steps").json["warnings"]
    listed = whole.app.get(f"{TEMPLATES}/{MIRROR}/nodes").json["nodes"]
    assert [node["warnings"][0]["text"] for node in listed if node["uuid"] == uuid] == [found["warnings"][1]["text"]]


def test_d_03_a_deployment_notes_its_warnings_in_the_history(whole):
    create(whole, MIRROR, {**disks(), "priority": 90})
    create(whole, VMX, setting("on"))
    uuid = node_with(whole, MIRROR, VMX, asks=[VMX])

    assert whole.provision(uuid, "active")["provision_state"] == "active"

    begun = next(text for _, text in whole.events(uuid) if "begins; steps: " in text)
    assert begun.endswith(f" Warning: {deploy_of(whole, uuid)['warnings'][0]['text']}.")


@pytest.mark.parametrize(("asks", "problem"), [
    ([VMX, MIRROR], f"/instance_info/traits/1: the node does not have the trait {MIRROR}"),
    (["CUSTOM_SOME"], "/instance_info/traits/0: the node does not have the trait CUSTOM_SOME"),
    (VMX, "/instance_info/traits: must be a list of traits"),
])
def test_d_06_traits_of_the_instance_are_among_the_nodes(whole, asks, problem):
    uuid = node_with(whole, VMX, asks=asks)

    assert deploy_of(whole, uuid) == {"result": False, "reason": problem}
    reply = whole.ask(uuid, "active")
    assert (reply.status_int, problem in fault(reply)) == (400, True)


def test_d_06_traits_of_the_instance_that_the_node_has_are_fine(whole):
    for asks in ([], [VMX], [MIRROR, VMX]):
        assert deploy_of(whole, node_with(whole, VMX, MIRROR, asks=asks)) == {"result": True}


def test_d_08_templates_are_combined_with_the_default_steps(whole):
    create(whole, VMX, setting("on", 90))
    uuid = node_with(whole, VMX)

    assert [(item["step"], item["source"]) for item in preview(whole, uuid)[:3]] == [
        ("deploy", "code"), ("apply_configuration", f"template {VMX}"), ("write_image", "code")]
    assert ran(whole, uuid) == [CORE[0], "bios.apply_configuration", *CORE[1:]]


def test_d_08_steps_of_the_request_go_before_those_of_templates(whole):
    create(whole, VMX, setting("on", 90), step("bios.factory_reset", 95))
    uuid = node_with(whole, VMX)

    steps = ran(whole, uuid, deploy_steps=[setting("off", 50)])

    assert steps == [CORE[0], "bios.factory_reset", *CORE[1:3], "bios.apply_configuration", *CORE[3:]]
    assert whole.show(uuid)["driver_internal_info"]["fake_bios_settings"] == {"VMX": "off"}


def test_d_09_steps_run_by_priority_then_by_interface(whole):
    pretending = [step(f"{interface}.pretend", 50) for interface in (
        "raid", "bios", "deploy", "firmware", "management", "power", "vendor")]
    create(whole, VMX, *pretending, step("raid.delete_configuration", 51), step("vendor.pretend", 49))
    uuid = node_with(whole, VMX)

    expected = [*CORE[:3], "raid.delete_configuration", "vendor.pretend", "power.pretend", "management.pretend",
                "firmware.pretend", "deploy.pretend", "bios.pretend", "raid.pretend", "vendor.pretend", *CORE[3:]]
    assert names(preview(whole, uuid)) == expected
    assert ran(whole, uuid) == expected


def test_d_09_the_documents_example_runs_in_this_order(whole):
    create(whole, MIRROR, disks("1"))
    create(whole, "CUSTOM_BM_CONFIG_RAID_DISK_STRIPE", disks("0"))
    create(whole, VMX, setting("on"))
    create(whole, "CUSTOM_BM_CONFIG_BIOS_VMX_OFF", setting("off"))
    enabled = [VMX, "CUSTOM_BM_CONFIG_BIOS_VMX_OFF", "CUSTOM_OTHER_TRAIT_I_AM_USUALLY_IGNORED", MIRROR,
               "CUSTOM_BM_CONFIG_RAID_DISK_STRIPE"]
    uuid = node_with(whole, *enabled, asks=[MIRROR, VMX])

    # Both have priority 10: the BIOS settings come before the disks.
    expected = [*CORE, "bios.apply_configuration", "raid.create_configuration"]
    assert names(preview(whole, uuid)) == expected
    assert ran(whole, uuid) == expected
    node = whole.show(uuid)
    assert node["raid_config"]["logical_disks"][0]["raid_level"] == "1"
    assert node["driver_internal_info"]["fake_bios_settings"] == {"VMX": "on"}


def test_d_10_a_step_with_priority_0_in_the_code_does_not_run_by_default(whole):
    uuid = node_with(whole)

    assert names(preview(whole, uuid)) == CORE
    assert ran(whole, uuid) == CORE


def test_d_10_the_configuration_makes_such_a_step_run(whole):
    uuid = node_with(whole)
    with whole.option("deploy", "step_priorities", {"bios.factory_reset": 95}):
        assert ran(whole, uuid) == [CORE[0], "bios.factory_reset", *CORE[1:]]


def test_d_11_a_templates_priority_goes_before_code_and_configuration(whole):
    create(whole, VMX, step("bios.factory_reset", 70))
    uuid = node_with(whole, VMX)
    with whole.option("deploy", "step_priorities", {"bios.factory_reset": 95}):
        assert ran(whole, uuid) == [*CORE[:2], "bios.factory_reset", *CORE[2:]]


def test_d_11_a_template_always_gives_a_priority(whole):
    reply = whole.app.post_json(TEMPLATES, {"name": VMX, "steps": [
        {"interface": "bios", "step": "factory_reset", "args": {}}]})

    assert (reply.status_int, fault(reply)) == (400, "/steps/0/priority: is required")


def test_d_12_the_same_step_runs_several_times_with_different_arguments(whole):
    create(whole, VMX, setting("first", 70), setting("second", 70))
    create(whole, "CUSTOM_A", step("bios.apply_configuration", 70, settings=[{"name": "A", "value": 1}]))
    uuid = node_with(whole, VMX, "CUSTOM_A")

    assert [item["args"]["settings"][0]["value"] for item in preview(whole, uuid) if item["args"]] == [
        1, "first", "second"]
    assert deploy_of(whole, uuid) == {"result": True}
    assert ran(whole, uuid).count("bios.apply_configuration") == 3
    assert whole.show(uuid)["driver_internal_info"]["fake_bios_settings"] == {"A": 1, "VMX": "second"}


def test_d_13_a_requested_step_overrides_arguments_and_priority_of_the_default(whole):
    create(whole, VMX, step("raid.pretend", 99, seconds=0))
    uuid = node_with(whole, VMX)
    with whole.option("deploy", "step_priorities", {"raid.pretend": 10}):
        steps = ran(whole, uuid)

    assert steps == [CORE[0], "raid.pretend", *CORE[1:]]


@pytest.mark.parametrize("core", CORE)
def test_d_14_a_core_step_can_only_be_left_out(whole, core):
    [warning] = create(whole, VMX, step(core, 5))["warnings"]
    assert warning["pointer"] == "/steps/0/priority"
    uuid = node_with(whole, VMX)
    reason = deploy_of(whole, uuid)["reason"]
    assert "/priority: must be 0: a core step can only be left out" in reason

    assert whole.app.patch_json(f"{TEMPLATES}/{VMX}", [
        {"op": "replace", "path": "/steps/0/priority", "value": 0}]).status_int == 200

    assert deploy_of(whole, uuid) == {"result": True}
    assert ran(whole, uuid) == [name for name in CORE if name != core]


def test_d_14_a_request_can_not_move_a_core_step(whole):
    reply = whole.ask(node_with(whole), "active", deploy_steps=[step("deploy.write_image", 5)])

    assert reply.status_int == 400
    assert "(deploy.write_image): /priority: must be 0: a core step can only be left out" in fault(reply)


def test_d_33_a_template_goes_by_its_name_alone(whole):
    # The document leaves aliases to a later extension: a trait never selects two templates.
    create(whole, VMX, setting("on"))

    for other in (VMX.lower(), f"{VMX}_2", VMX[:-1]):
        assert whole.app.get(f"/v1/nodes/{node_with(whole)}/deploy_steps?traits={other}").json["deploy_templates"] == []
    reply = whole.app.post_json(TEMPLATES, {"name": "CUSTOM_A", "steps": [setting("on")], "traits": [VMX]})
    assert reply.status_int == 400


def test_d_34_which_nodes_support_a_template_is_told(whole):
    create(whole, "CUSTOM_D_34", disks())
    able, unable = (node_with(whole, "CUSTOM_D_34", raid_interface=name) for name in ("fake", "no-raid"))

    listed = whole.app.get(f"{TEMPLATES}/CUSTOM_D_34/nodes").json["nodes"]

    assert [(item["uuid"], item["supported"]) for item in listed] == [(able, True), (unable, False)]
    assert listed[1]["problems"] == [
        "deploy template CUSTOM_D_34, /steps/0 (raid.create_configuration): the raid interface of the node does not "
        "offer this step"]


def test_d_34_whether_a_node_would_support_a_template_is_told_before_it_is_enabled(whole):
    create(whole, "CUSTOM_D_34", disks())
    able, unable = (node_with(whole, raid_interface=name) for name in ("fake", "no-raid"))

    told = [whole.app.get(f"/v1/nodes/{uuid}/deploy_steps?traits=CUSTOM_D_34").json["problems"]
            for uuid in (able, unable)]

    assert told[0] == ["/instance_info/traits/0: the node does not have the trait CUSTOM_D_34"]
    assert len(told[1]) == 2 and "does not offer this step" in told[1][1]
