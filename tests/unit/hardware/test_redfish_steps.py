"""Deploy steps of the Redfish interfaces with a BMC of a few documents: the requests to it."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware import polling
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.bios import RedfishBIOS
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.management import RedfishManagement
from ironic_rules.hardware.redfish.raid import RedfishRAID
from ironic_rules.steps import execution
from ironic_rules.steps.procedures import DEPLOYMENT
from tests.unit.hardware.redfish_bmc import SYSTEM, documents, members, serving
from tests.unit.inspection.tasks import make_task

OK = {"State": "Enabled", "Health": "OK"}
STORAGE, MANAGER = f"{SYSTEM}/Storage/1", "/redfish/v1/Managers/1"
GIB = 1024**3


def drive(number):
    return {"Id": str(number), "Name": f"Disk {number}", "CapacityBytes": 10 * GIB, "Status": OK}


def content():
    system = {"Bios": {"@odata.id": f"{SYSTEM}/Bios"}, "Storage": {"@odata.id": f"{SYSTEM}/Storage"},
              "Links": {"ManagedBy": [{"@odata.id": MANAGER}]}}
    return documents(system, {
        "Bios": {"Id": "Bios", "Name": "Bios", "Attributes": {"VMX": "off", "Turbo": "on"},
                 "@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{SYSTEM}/Bios/Settings"}},
                 "Actions": {"#Bios.ResetBios": {"target": f"{SYSTEM}/Bios/Reset"}}},
        "Bios/Settings": {"Id": "Settings", "Name": "Settings", "Attributes": {}},
        "Storage": members(STORAGE),
        "Storage/1": {"Id": "1", "Name": "C", "Status": OK, "Volumes": {"@odata.id": f"{STORAGE}/Volumes"},
                      "Drives": [{"@odata.id": f"{STORAGE}/Drives/{number}"} for number in (1, 2, 3)]},
        "Storage/1/Volumes": members(f"{STORAGE}/Volumes/old"),
        "Storage/1/Volumes/old": {"Id": "old", "Name": "Old", "VolumeType": "NonRedundant", "CapacityBytes": GIB,
                                  "Links": {"Drives": [{"@odata.id": f"{STORAGE}/Drives/1"}]}},
        **{f"Storage/1/Drives/{number}": drive(number) for number in (1, 2, 3)},
        MANAGER: {"Id": "1", "Name": "M", "DateTime": "2020-01-01T00:00:00Z"},
    })


@pytest.fixture
def bmc():
    with serving(content()) as found:
        yield found


@pytest.fixture(autouse=True)
def quick(conf, monkeypatch):
    conf.set_override("connection_attempts", 1, group="redfish")
    conf.set_override("configuration_timeout", 1, group="redfish")
    conf.set_override("auth_type", "basic", group="redfish")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())


class Power:
    """A power interface; ``then`` is called when the machine boots."""

    def __init__(self, then=lambda: None):
        self.told = []
        self._then = then

    def set_power_state(self, task, target):
        self.told.append(target)
        self._then()


@pytest.fixture
def task(bmc):
    return make_task({"driver_info": {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"},
                      "raid_config": {}, "target_raid_config": {}})


def run(cls, conf, task, step, power=None, **args):
    return execution.call(cls(conf, lambda node, kind: power), task, step, args, DEPLOYMENT)


def settings(**values):
    return [{"name": name, "value": value} for name, value in values.items()]


def test_settings_that_differ_are_written_and_the_machine_is_rebooted(conf, bmc, task):
    power = Power(lambda: bmc.content[f"{SYSTEM}/Bios"]["Attributes"].update(VMX="on"))

    assert run(RedfishBIOS, conf, task, "apply_configuration", power, settings=settings(VMX="on", Turbo="on")) is None

    assert bmc.told == [("PATCH", f"{SYSTEM}/Bios/Settings", {"Attributes": {"VMX": "on"}})]
    assert power.told == ["rebooting"]


def test_settings_that_are_so_already_cost_no_reboot(conf, bmc, task):
    power = Power()

    run(RedfishBIOS, conf, task, "apply_configuration", power, settings=settings(Turbo="on"))

    assert (bmc.told, power.told) == ([], [])


def test_settings_that_do_not_come_fail(conf, task):
    with pytest.raises(BMCError, match=r"the change was not completed within 1 seconds \(\[redfish\]conf"):
        run(RedfishBIOS, conf, task, "apply_configuration", Power(), settings=settings(VMX="on"))


def test_a_setting_that_the_machine_does_not_have_is_refused_before_anything_is_written(conf, bmc, task):
    with pytest.raises(InvalidParameterValue, match="has no setting NX"):
        run(RedfishBIOS, conf, task, "apply_configuration", Power(), settings=settings(VMX="on", NX="on"))
    assert bmc.told == []


def test_a_bmc_that_takes_settings_at_the_next_reset_is_told_so(conf, bmc, task):
    support = {"@odata.type": "#Settings.v1_1_0.PreferredApplyTime", "SupportedValues": ["OnReset"]}
    bmc.content[f"{SYSTEM}/Bios"]["@Redfish.Settings"]["SupportedApplyTimes"] = support["SupportedValues"]

    run(RedfishBIOS, conf, task, "apply_configuration",
        Power(lambda: bmc.content[f"{SYSTEM}/Bios"]["Attributes"].update(VMX="on")), settings=settings(VMX="on"))

    assert bmc.told[0][2] == {"Attributes": {"VMX": "on"}, "@Redfish.SettingsApplyTime": {
        "@odata.type": "#Settings.v1_0_0.PreferredApplyTime", "ApplyTime": "OnReset"}}


def test_all_settings_are_reset(conf, bmc, task):
    power = Power()

    run(RedfishBIOS, conf, task, "factory_reset", power)

    assert ([entry[:2] for entry in bmc.told], power.told) == ([("POST", f"{SYSTEM}/Bios/Reset")], ["rebooting"])


def test_a_volume_gets_drives_that_nothing_uses(conf, bmc, task):
    run(RedfishRAID, conf, task, "create_configuration",
        logical_disks=[{"size_gb": "MAX", "raid_level": "1", "volume_name": "root"}])

    assert bmc.told == [("POST", f"{STORAGE}/Volumes", {
        "RAIDType": "RAID1", "CapacityBytes": 10 * GIB, "Name": "root",
        "Links": {"Drives": [{"@odata.id": f"{STORAGE}/Drives/{number}"} for number in (2, 3)]}})]
    assert task.node.raid_config["logical_disks"][0]["volume_name"] == "root"


def test_the_documents_example_deletes_first(conf, bmc, task):
    bmc.content[f"{STORAGE}/Volumes"]["@Redfish.OperationApplyTimeSupport"] = {"SupportedValues": ["Immediate"]}

    run(RedfishRAID, conf, task, "create_configuration", delete_configuration=True,
        logical_disks=[{"size_gb": "MAX", "raid_level": "1", "is_root_volume": True}])

    assert [(method, path, body["@Redfish.OperationApplyTime"]) for method, path, body in bmc.told] == [
        ("DELETE", f"{STORAGE}/Volumes/old", "Immediate"), ("POST", f"{STORAGE}/Volumes", "Immediate")]


TASK = "/redfish/v1/TaskService/Tasks/1"


@pytest.mark.parametrize("state", ["Exception", "Killed", "Cancelled"])
def test_a_task_of_the_bmc_that_fails_fails_the_step(conf, bmc, task, state):
    bmc.task, bmc.content[TASK] = TASK, {"Id": "1", "Name": "Task", "TaskState": state}

    with pytest.raises(BMCError, match=f"its task on the volume ended as {state}"):
        run(RedfishRAID, conf, task, "delete_configuration")


def test_a_task_of_the_bmc_is_waited_for(conf, bmc, task):
    bmc.task, bmc.content[TASK] = TASK, {"Id": "1", "Name": "Task", "TaskState": "Completed"}

    run(RedfishRAID, conf, task, "delete_configuration")

    assert [entry[:2] for entry in bmc.told] == [("DELETE", f"{STORAGE}/Volumes/old")]


def test_drives_without_raid_are_no_volumes(conf, bmc, task):
    bmc.content[f"{STORAGE}/Volumes/old"]["VolumeType"] = "RawDevice"

    run(RedfishRAID, conf, task, "delete_configuration")

    assert bmc.told == []


def test_a_controller_that_needs_a_reboot_gets_one(conf, bmc, task):
    bmc.content[f"{STORAGE}/Volumes"]["@Redfish.OperationApplyTimeSupport"] = {"SupportedValues": ["OnReset"]}
    power = Power(lambda: bmc.content[f"{STORAGE}/Volumes"].update(members()))

    run(RedfishRAID, conf, task, "delete_configuration", power)

    assert (bmc.told[0][2], power.told) == ({"@Redfish.OperationApplyTime": "OnReset"}, ["rebooting"])


def test_a_controller_that_makes_no_volumes_is_left_alone(conf, bmc, task):
    bmc.content[f"{SYSTEM}/Storage"].update(members(f"{SYSTEM}/Storage/nvme", STORAGE))
    bmc.content[f"{SYSTEM}/Storage/nvme"] = {"Id": "nvme", "Name": "N", "Status": OK, "Drives": []}

    run(RedfishRAID, conf, task, "create_configuration", delete_configuration=True,
        logical_disks=[{"size_gb": "MAX", "raid_level": "1"}])

    assert [entry[:2] for entry in bmc.told] == [("DELETE", f"{STORAGE}/Volumes/old"), ("POST", f"{STORAGE}/Volumes")]


def test_a_volume_gets_drives_of_the_kind_that_is_asked_for(conf, bmc, task):
    bmc.content[f"{STORAGE}/Drives/3"].update(MediaType="SSD", Protocol="SAS")

    run(RedfishRAID, conf, task, "create_configuration", logical_disks=[
        {"size_gb": "MAX", "raid_level": "0", "disk_type": "ssd", "interface_type": "sas"}])

    assert bmc.told[0][2]["Links"] == {"Drives": [{"@odata.id": f"{STORAGE}/Drives/3"}]}


def test_too_few_drives_are_told_before_anything_is_made(conf, bmc, task):
    with pytest.raises(InvalidParameterValue, match="logical disk 0: there are not enough drives"):
        run(RedfishRAID, conf, task, "create_configuration", logical_disks=[{"size_gb": "MAX", "raid_level": "5"}])
    assert bmc.told == []


def test_the_clock_of_the_bmc_is_set(conf, bmc, task):
    run(RedfishManagement, conf, task, "set_bmc_clock", target_datetime="2026-11-21T12:00:00+01:00",
        datetime_local_offset="+01:00")

    assert bmc.told == [("PATCH", MANAGER, {"DateTime": "2026-11-21T12:00:00+01:00", "DateTimeLocalOffset": "+01:00"})]


def test_the_clock_of_the_bmc_is_set_to_now(conf, bmc, task):
    run(RedfishManagement, conf, task, "set_bmc_clock")

    told = datetime.datetime.fromisoformat(bmc.told[0][2]["DateTime"])
    assert abs((datetime.datetime.now(datetime.UTC) - told).total_seconds()) < 60


@pytest.mark.parametrize("args", [
    {"target_datetime": "noon"}, {"target_datetime": 5}, {"target_datetime": "2026-11-21T12:00:00"},
    {"datetime_local_offset": "1"}, {"datetime_local_offset": "+25:00"}, {"datetime_local_offset": 1}])
def test_what_is_no_time_is_refused(conf, bmc, task, args):
    with pytest.raises(InvalidParameterValue, match=r"^/args/"):
        run(RedfishManagement, conf, task, "set_bmc_clock", **args)
    assert bmc.told == []


def test_a_bmc_that_is_away_for_a_while_is_waited_for(task):
    answers = iter([BMCError(node="n", reason="it boots."), False, True])

    def is_done():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    pauses = []
    polling.wait_until(task, is_done, "it", 60, pauses.append)

    assert pauses == [0.25, 0.375]


def test_a_bmc_that_stays_away_fails_with_its_own_error(task):
    def is_done():
        raise BMCError(node="n", reason="it cannot be reached.")

    with pytest.raises(BMCError, match="cannot be reached"):
        polling.wait_until(task, is_done, "it", 0)
