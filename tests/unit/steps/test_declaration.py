"""Declarations of deploy steps: found, and run."""

from __future__ import annotations

import inspect

import pytest

from ironic_rules.exceptions import ConfigurationError, InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.absent import NoRAID
from ironic_rules.hardware.base import DeployInterface, NetworkInterface, RAIDInterface
from ironic_rules.hardware.enabled import EnabledHardware
from ironic_rules.hardware.fake import FakePower
from ironic_rules.models import states
from ironic_rules.models.steps import STEP_INTERFACES, Step
from ironic_rules.steps import declaration, execution
from ironic_rules.steps.declaration import StepInfo, deploy_step
from ironic_rules.steps.offers import Offer, RegisteredSteps
from ironic_rules.steps.procedures import DEPLOYMENT
from tests.unit.hardware.test_enabled import node
from tests.unit.inspection.tasks import make_task
from tests.walking import walking

SIZE = {"size": {"description": "How big.", "required": True}, "name": {"description": "Of it."}}


class Raid(RAIDInterface):
    @deploy_step(priority=5, argsinfo=SIZE, rerunnable=True)
    def make(self, task, size, name="x"):
        task.node.extra["made"] = [size, name]

    @deploy_step(priority=7)
    def wait(self, task):
        return states.DEPLOYWAIT

    @deploy_step(priority=0)
    def confuse(self, task):
        return "active"

    def plain(self, task):
        raise AssertionError("this is no step")


class Changed(Raid):
    wait = None

    def make(self, task, size, name="y"):
        super().make(task, size, name)

    @deploy_step(priority=9)
    def confuse(self, task):
        return None


@pytest.fixture
def task():
    return make_task({"driver_info": {}})


def interface(cls, conf):
    return cls(conf, lambda node, kind: None)


def test_steps_are_found_by_priority_then_name():
    assert declaration.steps_of(Raid, DEPLOYMENT) == [
        StepInfo("raid", "wait", 7), StepInfo("raid", "make", 5, {
            "size": {"description": "How big.", "required": True},
            "name": {"description": "Of it.", "required": False}}, rerunnable=True),
        StepInfo("raid", "confuse", 0)]


def test_an_override_is_the_same_step_unless_declared_anew_or_taken_away():
    assert [(info.step, info.priority, len(info.argsinfo)) for info in declaration.steps_of(Changed, DEPLOYMENT)] == [
        ("confuse", 9, 0), ("make", 5, 2)]


def test_a_deploy_interface_has_a_core_step_whatever_it_declares():
    class Own(DeployInterface):
        def deploy(self, task):
            pass

        def tear_down(self, task):
            pass

    assert declaration.steps_of(Own, DEPLOYMENT) == [StepInfo("deploy", "deploy", 100, core=True)]


def test_absent_interfaces_and_kinds_without_steps_have_none():
    assert declaration.steps_of(NoRAID, DEPLOYMENT) == declaration.steps_of(NetworkInterface, DEPLOYMENT) == []


def test_every_power_interface_can_switch():
    assert {"power_on", "power_off", "reboot"} <= {info.step for info in declaration.steps_of(FakePower, DEPLOYMENT)}


def test_a_step_is_run_with_its_arguments(conf, task):
    assert execution.call(interface(Raid, conf), task, "make", {"size": 3}, DEPLOYMENT) is None
    assert task.node.extra == {"made": [3, "x"]}
    assert execution.call(interface(Changed, conf), task, "make", {"size": 3}, DEPLOYMENT) is None
    assert task.node.extra == {"made": [3, "y"]}


def test_a_step_may_go_on_by_itself(conf, task):
    assert execution.call(interface(Raid, conf), task, "wait", {}, DEPLOYMENT) == states.DEPLOYWAIT


@pytest.mark.parametrize("step", ["plain", "validate", "__init__", "no_such", "kind", "conf"])
def test_what_is_no_step_is_never_called(conf, task, step):
    with pytest.raises(InvalidParameterValue, match="does not offer this step"):
        execution.call(interface(Raid, conf), task, step, {}, DEPLOYMENT)


@pytest.mark.parametrize(("args", "text"), [
    ({}, "size: the step requires this argument"), ({"size": 1, "self": 2}, "self: the step has no such argument"),
    ({"size": 1, "task": 2}, "task: the step has no such argument"),
])
def test_wrong_arguments_never_reach_the_method(conf, task, args, text):
    with pytest.raises(InvalidParameterValue, match=text):
        execution.call(interface(Raid, conf), task, "make", args, DEPLOYMENT)
    assert task.node.extra == {}


def test_an_end_that_no_step_has_is_an_error(conf, task):
    with pytest.raises(IronicRulesError, match="returned a state"):
        execution.call(interface(Raid, conf), task, "confuse", {}, DEPLOYMENT)


@walking("argsinfo, text", [
    ({}, "differ in name, size"), ({**SIZE, "more": {"description": "It."}}, "differ in more"),
    ({"size": {"description": "It."}, "name": {"description": "It."}}, "size needs a default"),
])
def test_a_declaration_that_does_not_fit_is_refused_at_import(argsinfo, text):
    with pytest.raises(TypeError, match=text):
        deploy_step(priority=1, argsinfo=argsinfo)(Raid.make)


def test_a_negative_priority_is_refused_at_import():
    with pytest.raises(TypeError, match="priority must be 0"):
        deploy_step(priority=-1)(Raid.wait)


def test_what_conductors_register_tells_the_steps_of_a_node(conf, hardware):
    registered = RegisteredSteps([hardware.register()])

    for asked in (node(), node(raid="no-raid", bios="no-bios"), node(management="noop")):
        assert registered.of_node(asked) == hardware.offer(asked)
    assert {info.interface for info in registered.of_node(node()).steps} == set(STEP_INTERFACES)


def test_a_conductor_of_an_older_release_offers_nothing(hardware):
    older = {driver: {kind: offer for kind, offer in described.items() if kind != "deploy_steps"}
             for driver, described in hardware.register().items()}

    assert RegisteredSteps([older]).of_node(node()) == Offer(())
    assert RegisteredSteps([older, hardware.register()]).of_node(node()) == hardware.offer(node())


def test_a_registration_has_the_configured_priorities(conf):
    conf.set_override("step_priorities", {"bios.factory_reset": 50}, group="deploy")

    found = RegisteredSteps([EnabledHardware(conf).register()]).declared(Step("bios", "factory_reset", {}, 1))

    assert {(info.priority, info.configured) for _, info in found} == {(50, True)}


OPTIONS = [("deploy", "step_priorities"), ("conductor", "clean_step_priority_override")]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
@pytest.mark.parametrize(("name", "priority", "text"), [
    ("factory_reset", 1, "'factory_reset' is not a step"), ("network.x", 1, "'network.x' is not a step"),
    ("bios.", 1, "is not a step"), ("erase_devices", 0, "'erase_devices' is not a step"),
])
def test_priorities_that_can_not_be_are_refused_at_start(conf, group, option, name, priority, text):
    conf.set_override(option, {name: priority}, group=group)

    with pytest.raises(ConfigurationError, match=rf"\[{group}\]{option}: .*{text}"):
        EnabledHardware(conf)


@pytest.mark.parametrize(("group", "option", "name"), [
    (*OPTIONS[0], "deploy.write_image"), (*OPTIONS[1], "deploy.tear_down_cleaning")])
def test_core_steps_keep_their_order(conf, group, option, name):
    conf.set_override("enabled_deploy_interfaces", ["direct", "fake"])
    conf.set_override(option, {name: 85}, group=group)

    with pytest.raises(ConfigurationError, match=f"{name} is a core step"):
        EnabledHardware(conf)


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_a_priority_of_a_step_that_nobody_has_is_warned_of(conf, caplog, group, option):
    conf.set_override(option, {"bios.no_such": 5, "deploy.deploy": 0, "deploy.erase_devices": 0}, group=group)

    EnabledHardware(conf)

    told = f"[{group}]{option}: no interface that is enabled here has the step "
    assert f"{told}bios.no_such" in caplog.text
    assert (f"{told}deploy.erase_devices" in caplog.text) is (group == "deploy")


def test_every_step_of_this_package_is_described(hardware):
    described = [(info, interface) for kind in STEP_INTERFACES for interface in hardware._interfaces[kind].values()
                 for info in declaration.steps_of(interface, DEPLOYMENT)]

    assert len(described) > 20
    assert [info.name for info, interface in described if not inspect.getdoc(getattr(interface, info.step))] == []
    assert [f"{info.name}: {name}" for info, _ in described for name, argument in info.argsinfo.items()
            if not argument["description"].endswith((".", "…"))] == []
