import pytest

from ironic_rules.exceptions import InvalidParameterValue, UnsupportedDriverExtension
from ironic_rules.models.inventories import InspectionData
from tests.unit.inspection.tasks import make_task


@pytest.fixture
def unmanaged(conf):
    conf.set_override("require_managed_boot", False, group="inspector")


def agent(hardware, task):
    return hardware.interface(task.node, "inspect")


def test_a_boot_interface_that_boots_no_ramdisk_is_refused_with_the_options_name(hardware):
    task = make_task()

    with pytest.raises(InvalidParameterValue, match=r"\[inspector\]require_managed_boot"):
        agent(hardware, task).inspect_hardware(task)

    assert task.node.changes() == {}


def test_validation_says_the_same(hardware):
    task = make_task({"network_data": {}, "driver_info": {}})

    with pytest.raises(InvalidParameterValue, match="boot interface 'fake'"):
        agent(hardware, task).validate(task)


def test_inspection_starts_the_node_and_waits(hardware, unmanaged):
    task = make_task({"agent_token_hash": "old", "driver_info": {"ipmi_address": "192.0.2.1"}})

    assert agent(hardware, task).inspect_hardware(task) is None

    assert task.node.changes() == {
        "agent_token_hash": None, "power_state": "power on",
        "driver_internal_info": {"lookup_bmc_addresses": ["192.0.2.1"]},
    }


def test_data_are_taken_as_they_are_and_the_node_is_switched_off_when_they_are_processed(hardware):
    task = make_task({"power_state": "power on", "agent_token_hash": "x"})
    interface = agent(hardware, task)

    assert interface.continue_inspection(task, {"cpu": {}}, None) == InspectionData({"cpu": {}}, {})
    assert task.node.changes() == {}

    interface.finish(task)
    assert task.node.changes() == {"power_state": "power off", "agent_token_hash": None}


def test_a_node_that_must_stay_on_stays_on(hardware):
    task = make_task({"power_state": "power on", "disable_power_off": True})

    agent(hardware, task).finish(task)

    assert task.node.power_state == "power on"


def test_an_aborted_inspection_leaves_the_node_off_and_without_a_token(hardware):
    task = make_task({"power_state": "power on", "agent_token_hash": "x"})

    agent(hardware, task).abort(task)

    assert task.node.changes() == {"power_state": "power off", "agent_token_hash": None}


@pytest.mark.parametrize("call", [
    lambda interface, task: interface.inspect_hardware(task),
    lambda interface, task: interface.continue_inspection(task, {}, {}),
    lambda interface, task: interface.abort(task),
], ids=["inspect", "continue", "abort"])
def test_no_inspect_refuses_everything(hardware, call):
    task = make_task({"inspect_interface": "no-inspect"})

    with pytest.raises(UnsupportedDriverExtension) as caught:
        call(agent(hardware, task), task)

    assert caught.value.code == 400
