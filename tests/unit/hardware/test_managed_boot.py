"""The agent inspection and the boot interface: the preparation is undone, whatever fails."""

from __future__ import annotations

import types

import pytest

from ironic_rules.exceptions import BMCError, InvalidParameterValue, UnsupportedDriverExtension
from ironic_rules.hardware.agent.deploy import CustomAgentDeploy, DirectDeploy, RamdiskDeploy
from ironic_rules.hardware.agent.inspect import AgentInspect
from ironic_rules.hardware.agent.instance import AgentRescue
from ironic_rules.hardware.boot import kernel_parameters
from ironic_rules.hardware.boot.ipxe import IPXEBoot
from ironic_rules.hardware.fake import FakePower
from ironic_rules.hardware.redfish.virtual_media import RedfishVirtualMediaBoot as VirtualMedia
from tests.unit.inspection.tasks import make_task

FAILURE = BMCError(node="n", reason="it is broken")


class Machine:
    """The power, management and boot interface of one machine; ``fails`` names the calls that do."""

    is_external = False
    #: of the deploy interface of the machine's instance
    boots_from_disk = True

    def __init__(self, *fails, managed=True, failure=FAILURE):
        self.fails = set(fails)
        self.failure = failure
        self.managed = managed
        self.calls = []

    def _do(self, name):
        self.calls.append(name)
        if name in self.fails:
            raise self.failure

    def validate_inspection(self, task):
        if not self.managed:
            raise UnsupportedDriverExtension(driver="d", extension="managed inspection")

    def validate(self, task):
        pass

    def prepare_ramdisk(self, task, parameters):
        assert parameters["ipa-inspection-callback-url"] == "http://api/v1/continue_inspection"
        self._do("prepare")

    def clean_up_ramdisk(self, task):
        self._do("clean up")

    def prepare_instance(self, task):
        self._do("instance")

    def clean_up_instance(self, task):
        self._do("forget the instance")

    def set_power_state(self, task, target, timeout_s=None):
        self._do(target)

    def set_boot_device(self, task, device, persistent=False):
        self._do(device)

    def get_mac_addresses(self, task):
        raise UnsupportedDriverExtension(driver="d", extension="get_mac_addresses")


@pytest.fixture
def agent(conf):
    conf.set_override("public_endpoint", "http://api", group="api")

    def make(machine):
        return AgentInspect(conf, lambda node, kind: machine)

    return make


def test_off_prepare_on(agent):
    machine, task = Machine(), make_task()

    assert agent(machine).inspect_hardware(task) is None

    assert machine.calls == ["power off", "prepare", "power on"]


@pytest.mark.parametrize("stays_on", [False, True])
def test_the_old_token_is_forgotten_immediately_before_the_machine_starts(agent, stays_on):
    machine, task = Machine(), make_task({"disable_power_off": stays_on})
    task.begin_work(lambda task: machine.calls.append("forget"))

    agent(machine).inspect_hardware(task)

    assert machine.calls[-2:] == ["forget", "rebooting" if stays_on else "power on"]
    assert "agent_token_hash" not in task.node.changes()


def test_a_machine_that_must_stay_on_is_restarted(agent):
    machine, task = Machine(), make_task({"disable_power_off": True})

    agent(machine).inspect_hardware(task)

    assert machine.calls == ["prepare", "rebooting"]


class Switched(FakePower):
    """Notes what is done to the machine in ``calls``."""

    def set_power_state(self, task, target, timeout_s=None):
        super().set_power_state(task, target, timeout_s)
        self.calls.append(target)


class RescuedRamdisk(AgentRescue):
    """The rescue interface of a node whose instance is a ramdisk."""


@pytest.mark.parametrize(("interface", "work", "off", "on"), [
    (CustomAgentDeploy, "tear_down", ["power off", "clean up"], ["clean up", "rebooting"]),
    (CustomAgentDeploy, "tear_down_cleaning", ["power off", "clean up"], ["clean up", "rebooting"]),
    (CustomAgentDeploy, "tear_down_agent", ["power off", "clean up"], ["clean up"]),
    (CustomAgentDeploy, "boot_instance", ["disk", "power on"], ["disk", "rebooting"]),
    (CustomAgentDeploy, "tear_down_service", ["power off", "clean up", "disk", "power on"],
     ["clean up", "disk", "rebooting"]),
    (DirectDeploy, "tear_down", ["power off", "clean up"], ["clean up", "rebooting"]),
    (DirectDeploy, "boot_instance", ["disk", "power on"], ["disk", "power on"]),
    (RamdiskDeploy, "tear_down", ["power off", "clean up", "forget the instance"],
     ["clean up", "forget the instance", "rebooting"]),
    (RamdiskDeploy, "tear_down_service", ["power off", "clean up", "instance", "power on"],
     ["clean up", "instance", "rebooting"]),
    (AgentRescue, "clean_up", ["power off", "clean up"], ["clean up", "rebooting"]),
    (AgentRescue, "unrescue", ["power off", "clean up", "disk", "power on"], ["clean up", "disk", "rebooting"]),
    (RescuedRamdisk, "unrescue", ["power off", "clean up", "instance", "power on"],
     ["clean up", "instance", "rebooting"]),
])
@pytest.mark.parametrize("stays_on", [False, True])
def test_a_machine_that_must_stay_on_is_rebooted_once_when_nothing_boots_the_ramdisk(
        conf, interface, work, off, on, stays_on):
    power, machine, task = Switched(conf, None), Machine(), make_task({"disable_power_off": stays_on})
    power.calls = machine.calls
    machine.boots_from_disk = interface not in (RamdiskDeploy, RescuedRamdisk)
    found = interface(conf, lambda node, kind: power if kind == "power" else machine)

    getattr(found, work)(task)

    assert machine.calls == (on if stays_on else off)
    assert task.node.power_state == ("power on" if machine.calls[-1] in ("rebooting", "power on") else "power off")


@pytest.mark.parametrize(("fails", "calls"), [
    (["prepare"], ["power off", "prepare", "clean up"]),
    (["power on"], ["power off", "prepare", "power on", "clean up"]),
    (["power on", "clean up"], ["power off", "prepare", "power on", "clean up"]),
    (["power off"], ["power off"]),
])
def test_a_boot_that_does_not_begin_leaves_nothing(agent, fails, calls):
    machine = Machine(*fails)

    with pytest.raises(BMCError) as caught:
        agent(machine).inspect_hardware(make_task())

    assert caught.value is FAILURE
    assert machine.calls == calls


@pytest.mark.parametrize("fails", ["prepare", "power on"])
def test_what_no_interface_should_raise_leaves_nothing_either(agent, fails):
    machine = Machine(fails, failure=IndexError("a surprise"))

    with pytest.raises(IndexError):
        agent(machine).inspect_hardware(make_task())

    assert machine.calls[-1] == "clean up"


def test_the_interface_that_booted_the_ramdisk_cleans_up_though_the_node_has_another_one_now(conf):
    conf.set_override("public_endpoint", "http://api", group="api")
    machines = {"old": Machine(), "new": Machine()}
    interface = AgentInspect(conf, lambda node, kind: machines[node.boot_interface if kind == "boot" else "old"])
    task = make_task({"boot_interface": "old"})
    interface.inspect_hardware(task)

    task.node.boot_interface = "new"
    interface.finish(task)

    assert machines["old"].calls[-2:] == ["power off", "clean up"]
    assert machines["new"].calls == []
    assert task.node.driver_internal_info == {"lookup_bmc_addresses": []}


def test_a_node_that_waits_since_before_an_upgrade_is_cleaned_up_by_its_own_interface(agent):
    machine, task = Machine(), make_task()
    interface = agent(machine)
    interface.inspect_hardware(task)
    task.node.driver_internal_info["inspection_managed_boot"] = True

    interface.finish(task)

    assert machine.calls[-2:] == ["power off", "clean up"]
    assert "inspection_managed_boot" not in task.node.driver_internal_info


class Reached(Machine):
    """Notes which BMC a call was for."""

    def _do(self, name):
        super()._do(f"{name} by {self.task.node.driver_info.get('address')}")

    def set_power_state(self, task, target, timeout_s=None):
        self.task = task
        super().set_power_state(task, target, timeout_s)

    def clean_up_ramdisk(self, task):
        self.task = task
        super().clean_up_ramdisk(task)


@pytest.mark.parametrize(("target", "reached"), [("manageable", "stored"), ("enroll", "new")])
def test_the_end_reaches_the_bmc_that_has_booted_the_ramdisk(agent, target, reached):
    machine = Reached()
    task = make_task({"driver_info": {"address": "stored"}, "target_provision_state": target,
                      "driver_internal_info": {"inspection_managed_boot": True}})
    task.checkpoint("rule")("action")
    task.node.write("/driver_info/address", "new")

    agent(machine).finish(task)

    assert machine.calls == [f"power off by {reached}", f"clean up by {reached}"]
    assert task.node.driver_info == {"address": "new"}
    assert task.node.changes()["driver_info"] == {"address": "new"}


def test_the_log_names_the_rule_whose_bmc_of_a_discovered_node_does_not_answer(agent, caplog):
    rule = types.SimpleNamespace(uuid="5f2c", sensitive=False)
    task = make_task({"target_provision_state": "enroll"})
    task.checkpoint(rule)("action")
    task.node.write("/driver_info/address", "new")
    task.checkpoint()

    with caplog.at_level("INFO"):
        agent(Machine("power off")).finish(task)

    assert "is not switched off, with driver_info that the inspection rule 5f2c has set: " in caplog.text


@pytest.mark.parametrize("fails", ["power off", "clean up"])
def test_a_bmc_that_fails_at_the_end_is_not_taken_for_a_failed_rule(agent, fails):
    machine, task = Machine(), make_task()
    interface = agent(machine)
    interface.inspect_hardware(task)
    machine.fails = {fails}

    with pytest.raises(BMCError, match=r"it is broken.* at the end of the inspection.*nothing .* is saved"):
        interface.finish(task)


def test_the_end_cleans_up_after_a_power_off_that_fails(agent):
    machine, task = Machine(), make_task()
    interface = agent(machine)
    interface.inspect_hardware(task)
    machine.calls.clear()
    machine.fails = {"power off"}

    with pytest.raises(BMCError):
        interface.abort(task)

    assert machine.calls == ["power off", "clean up"]


@pytest.mark.parametrize(("fails", "told"), [
    (["power off"], ["Switching the machine off"]), (["clean up"], ["Undoing its boot"]),
    (["power off", "clean up"], ["Switching the machine off", "Undoing its boot"]),
])
def test_the_end_says_what_failed(agent, fails, told):
    machine, task = Machine(), make_task()
    interface = agent(machine)
    interface.inspect_hardware(task)
    machine.fails = set(fails)

    with pytest.raises(BMCError) as caught:
        interface.abort(task)

    parts = ("Switching the machine off", "Undoing its boot")
    assert [part for part in parts if part in str(caught.value)] == told
    assert str(caught.value).count("it is broken") == len(told)


def test_what_others_boot_is_not_cleaned_up(agent, conf):
    conf.set_override("require_managed_boot", False, group="inspector")
    machine, task = Machine(managed=False), make_task()
    interface = agent(machine)

    interface.inspect_hardware(task)
    interface.abort(task)

    assert machine.calls == ["pxe", "rebooting", "power off"]


CALLBACK = "ipa-inspection-callback-url"
OVERRIDE, EXTERNAL, PUBLIC = "http://override/", "http://external/", "http://public/"


@pytest.mark.parametrize(("options", "over_the_network", "by_media"), [
    ((None, None, PUBLIC), PUBLIC, PUBLIC),
    ((None, EXTERNAL, PUBLIC), PUBLIC, EXTERNAL),
    ((OVERRIDE, EXTERNAL, PUBLIC), OVERRIDE, OVERRIDE),
    ((None, EXTERNAL, None), None, EXTERNAL),
    ((None, None, None), None, None),
])
def test_a_ramdisk_outside_the_network_of_the_machines_may_have_another_address_of_the_api(conf, options,
                                                                                          over_the_network, by_media):
    names = [("callback_endpoint_override", "inspector"), ("external_callback_url", "deploy"),
             ("public_endpoint", "api")]
    for (name, group), value in zip(names, options, strict=True):
        conf.set_override(name, value, group=group)

    for wanted, is_external in ((over_the_network, IPXEBoot.is_external), (by_media, VirtualMedia.is_external)):
        if wanted is None:
            with pytest.raises(InvalidParameterValue, match="public_endpoint") as caught:
                kernel_parameters.inspection_parameters(conf, is_external=is_external)
            assert ("[deploy]external_callback_url" in str(caught.value)) is is_external
        else:
            found = kernel_parameters.inspection_parameters(conf, is_external=is_external)
            assert (found[CALLBACK], found["ipa-api-url"]) == (f"{wanted}v1/continue_inspection", wanted.rstrip("/"))


def test_the_boot_interface_decides_which_address_its_ramdisk_gets(conf):
    conf.set_override("external_callback_url", EXTERNAL, group="deploy")
    machine, told = Machine(), []
    machine.is_external, machine.prepare_ramdisk = True, lambda task, parameters: told.append(parameters[CALLBACK])

    AgentInspect(conf, lambda node, kind: machine).inspect_hardware(make_task())

    assert told == [f"{EXTERNAL}v1/continue_inspection"]


@pytest.mark.parametrize(("enabled", "created"), [(True, ["52:54:00:00:00:02"]), (False, [])])
def test_a_node_gets_the_ports_that_its_bmc_reports_before_it_boots(agent, conf, enabled, created):
    conf.set_override("pre_create_ports", enabled, group="inspector")
    machine = Machine()
    machine.get_mac_addresses = lambda task: [
        "52:54:00:00:00:01", "52-54-00-00-00-02", "52:54:00:00:00:02", "52:54:00:00:00:03", "00:00:00:00:00:00", "x"]
    machine.prepare_ramdisk = lambda task, parameters: machine.calls.append([port.address for port in task.ports])
    task = make_task(ports=[{"address": "52:54:00:00:00:01"}])
    task.addresses_of_others = {"52:54:00:00:00:03"}.intersection

    agent(machine).inspect_hardware(task)

    assert [values["address"] for values in task.port_changes().created] == created
    assert machine.calls[1] == ["52:54:00:00:00:01", *created]
    assert all(values["pxe_enabled"] for values in task.port_changes().created)


def test_a_bmc_without_enabled_interfaces_is_no_failure(agent, caplog):
    machine = Machine()
    machine.get_mac_addresses = lambda task: []

    agent(machine).inspect_hardware(make_task())

    assert "reports no enabled network interface" in caplog.text
    assert machine.calls[-1] == "power on"
