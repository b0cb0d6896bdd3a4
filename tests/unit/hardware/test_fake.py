"""The fake interfaces, and the no-op interfaces."""

import pytest

from ironic_rules.exceptions import InvalidParameterValue, UnsupportedDriverExtension
from ironic_rules.hardware.base import KINDS
from ironic_rules.steps import declaration, execution
from ironic_rules.steps.procedures import DEPLOYMENT
from tests.unit.inspection.tasks import make_task

ALL_FAKE = {f"{kind}_interface": "fake" for kind in KINDS} | {"network_interface": "noop", "inspect_interface": "agent"}
ABSENT = ("bios", "console", "firmware", "inspect", "raid", "rescue", "vendor")


@pytest.fixture
def task():
    return make_task({**ALL_FAKE, "power_state": None})


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"inspect"}))
def test_fake_interfaces_are_always_valid(hardware, task, kind):
    assert hardware.interface(task.node, kind).validate(task) is None


@pytest.mark.parametrize("kind", ABSENT)
def test_absent_interfaces_are_not_valid(hardware, kind):
    task = make_task({f"{kind}_interface": f"no-{kind}"})

    with pytest.raises(UnsupportedDriverExtension, match=f"Driver fake-hardware does not support {kind} "):
        hardware.interface(task.node, kind).validate(task)


def test_a_node_that_was_never_switched_is_off(hardware, task):
    assert hardware.interface(task.node, "power").get_power_state(task) == "power off"


@pytest.mark.parametrize(("target", "state"), [
    ("power on", "power on"), ("power off", "power off"), ("rebooting", "power on"), ("soft rebooting", "power on"),
    ("soft power off", "power off"),
])
def test_a_power_target_leads_to_a_state(hardware, task, target, state):
    power = hardware.interface(task.node, "power")

    power.set_power_state(task, target)

    assert power.get_power_state(task) == task.node.power_state == state


def test_an_unknown_power_target_is_refused(hardware, task):
    with pytest.raises(InvalidParameterValue, match="Unknown power state 'hibernate'"):
        hardware.interface(task.node, "power").set_power_state(task, "hibernate")


def test_the_boot_device_is_remembered(hardware, task):
    management = hardware.interface(task.node, "management")

    management.set_boot_device(task, "disk", persistent=True)

    assert management.get_boot_device(task) == {"boot_device": "disk", "persistent": True}


def test_the_default_boot_device_leaves_no_trace(hardware, task):
    management = hardware.interface(task.node, "management")

    management.set_boot_device(task, "disk")
    management.set_boot_device(task, "pxe")

    assert management.get_boot_device(task) == {"boot_device": "pxe", "persistent": False}
    assert task.node.changes() == {}


def test_an_unknown_boot_device_is_refused(hardware, task):
    with pytest.raises(InvalidParameterValue, match="floppy"):
        hardware.interface(task.node, "management").set_boot_device(task, "floppy")


def test_noop_management_takes_everything_and_knows_nothing(hardware):
    task = make_task({"management_interface": "noop"})
    management = hardware.interface(task.node, "management")

    management.set_boot_device(task, "anything")

    assert management.get_boot_device(task) == {"boot_device": None, "persistent": None}
    assert management.get_supported_boot_devices(task) == []


def test_a_deployed_node_is_on_and_a_torn_down_one_off(hardware, task):
    deploy = hardware.interface(task.node, "deploy")

    for step in declaration.steps_of(deploy, DEPLOYMENT):
        if step.core:
            execution.call(deploy, task, step.step, {}, DEPLOYMENT)
    on = task.node.power_state
    deploy.tear_down(task)

    assert (on, task.node.power_state) == ("power on", "power off")


def test_fake_rescue_succeeds(hardware, task):
    rescue = hardware.interface(task.node, "rescue")

    assert (rescue.rescue(task), rescue.unrescue(task)) == (None, None)


@pytest.mark.parametrize("verb", ["rescue", "unrescue"])
def test_no_rescue_refuses(hardware, verb):
    task = make_task({"rescue_interface": "no-rescue"})

    with pytest.raises(UnsupportedDriverExtension, match="rescue"):
        getattr(hardware.interface(task.node, "rescue"), verb)(task)
