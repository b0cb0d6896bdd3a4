"""The steps that a node offers, and the problems of requested steps."""

from __future__ import annotations

from types import SimpleNamespace

from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.models.nodes import INTERFACES
from ironic_rules.models.steps import Step
from ironic_rules.steps import checks, merge, offers
from ironic_rules.steps.declaration import StepInfo
from ironic_rules.steps.offers import Offer
from tests.walking import walking

ARGS = {"settings": {"description": "Them.", "required": True}, "slow": {"description": "So.", "required": False}}
OFFERED = (StepInfo("deploy", "deploy", 100, core=True), StepInfo("bios", "apply", 0, ARGS),
           StepInfo("raid", "create", 0, {"disks": {"description": "Them.", "required": False}}))
OFFER = Offer(OFFERED)


def template(name, *own):
    return SimpleNamespace(name=name, steps=[Step(*step) for step in own])


def node(**fields):
    values = {**{f"{kind}_interface": None for kind in INTERFACES}, "driver": "fake-hardware", **fields}
    return SimpleNamespace(**values)


def test_a_problem_names_template_step_and_argument():
    wrong = template("CUSTOM_A", ("bios", "apply", {"settings": 1}, 5), ("bios", "apply", {"speed": 1}, 5),
                     ("raid", "destroy", {}, 5), ("deploy", "deploy", {}, 99))

    assert checks.node_problems(OFFER, [template("CUSTOM_B", ("raid", "create", {}, 1)), wrong]) == [
        "deploy template CUSTOM_A, /steps/1 (bios.apply): /args/speed: the step has no such argument",
        "deploy template CUSTOM_A, /steps/1 (bios.apply): /args/settings: the step requires this argument",
        "deploy template CUSTOM_A, /steps/2 (raid.destroy): the raid interface of the node does not offer this step",
        "deploy template CUSTOM_A, /steps/3 (deploy.deploy): /priority: must be 0: a core step can only be left out"]


def test_a_step_that_is_left_out_needs_no_arguments():
    asked = [template("CUSTOM_A", ("bios", "apply", {}, 0), ("deploy", "deploy", {}, 0))]

    assert checks.node_problems(OFFER, asked) == []


def test_the_request_is_checked_like_a_template():
    asked = merge.requested_steps([{"interface": "raid", "step": "create", "args": {"x": 1}, "priority": 1}])

    assert checks.node_problems(OFFER, [], asked) == [
        "the request, /steps/0 (raid.create): /args/x: the step has no such argument"]


def test_steps_that_are_left_in_a_deployment_name_who_asked_for_them():
    runs = [merge.ScheduledStep("raid", "create", {}, 9, "template CUSTOM_A"),
            merge.ScheduledStep("raid", "no", {}, 8, "request"),
            merge.ScheduledStep("raid", "create", {"x": 1}, 7, "template CUSTOM_A")]

    assert checks.run_problems(OFFER, runs) == [
        "the request (raid.no): the raid interface of the node does not offer this step",
        "the template CUSTOM_A (raid.create): /args/x: the step has no such argument"]


def test_a_step_that_is_not_allowed_any_more():
    asked = [template("CUSTOM_A", ("bios", "reset", {}, 5), ("raid", "create", {"x": 1}, 1), ("raid", "create", {}, 0))]

    assert checks.node_problems(Offer((*OFFERED, StepInfo("bios", "reset", 0))), asked, disallowed=["raid.create"]) == [
        "deploy template CUSTOM_A, /steps/1 (raid.create): the step is not allowed ([api]disallow_deploy_steps)"]


def test_names_that_are_not_printable_are_escaped_and_cut():
    asked = merge.requested_steps([
        {"interface": "raid", "step": "a\x1b\n", "args": {}, "priority": 1},
        {"interface": "raid", "step": "create", "args": {"b\r" * 100: 1}, "priority": 1}])

    first, second = checks.node_problems(OFFER, [], asked)

    assert "raid.a\\x1b\\n" in first
    assert second.isprintable() and len(second) < 300


def test_a_thousand_problems_are_not_all_told():
    wrong = template("CUSTOM_A", *[("raid", "no", {}, 1)] * 1000)

    assert len(checks.node_problems(OFFER, [wrong])) == offers.MAX_TRAIT_PROBLEMS


@walking("traits, problems", [
    (None, []), (["CUSTOM_A"], []), ([], []),
    (["CUSTOM_A", "CUSTOM_X\n"], ["/instance_info/traits/1: the node does not have the trait CUSTOM_X\\n"]),
    ("CUSTOM_A", ["/instance_info/traits: must be a list of traits"]),
    ([1], ["/instance_info/traits: must be a list of traits"]),
])
def test_traits_of_the_instance_must_be_the_nodes(traits, problems):
    assert offers.trait_problems({"traits": traits}, ["CUSTOM_A", "CUSTOM_B"]) == problems


def test_the_traits_of_an_instance_count_once():
    assert offers.requested_traits({"traits": ["B", "A", "B", 1]}) == ["B", "A"]
    assert offers.requested_traits({"traits": "B"}) == offers.requested_traits({}) == []


def test_the_steps_of_fake_hardware_are_the_core_steps(hardware):
    found = merge.order(hardware.offer(node()), [])

    assert [(step.name, step.priority, step.source) for step in found] == [
        ("deploy.deploy", 100, "code"), ("deploy.write_image", 80, "code"),
        ("deploy.prepare_instance_boot", 60, "code"), ("deploy.tear_down_agent", 40, "code"),
        ("deploy.switch_to_tenant_network", 30, "code"), ("deploy.boot_instance", 20, "code")]


def test_the_configuration_changes_priorities_and_a_template_goes_before_it(conf):
    conf.set_override("step_priorities", {"bios.factory_reset": 90, "deploy.write_image": 0}, group="deploy")

    offer = EnabledHardware(conf).offer(node())

    configured = merge.order(offer, [])
    templated = merge.order(offer, [template("CUSTOM_A", ("bios", "factory_reset", {}, 70))])

    assert [(step.name, step.source) for step in configured][:3] == [
        ("deploy.deploy", "code"), ("bios.factory_reset", "configuration"), ("deploy.prepare_instance_boot", "code")]
    assert [(step.name, step.source) for step in templated][:2] == [
        ("deploy.deploy", "code"), ("bios.factory_reset", "template CUSTOM_A")]


def test_what_a_node_offers_depends_on_its_interfaces(hardware):
    asked = [template("CUSTOM_A", ("raid", "delete_configuration", {}, 5))]

    assert checks.node_problems(hardware.offer(node()), asked) == []
    assert checks.node_problems(hardware.offer(node(raid_interface="no-raid")), asked) == [
        "deploy template CUSTOM_A, /steps/0 (raid.delete_configuration): the raid interface of the node does not "
        "offer this step"]
