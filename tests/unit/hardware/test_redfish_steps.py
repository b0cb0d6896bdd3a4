"""Deploy steps of the Redfish interfaces with a BMC of a few documents: the requests to it."""

from __future__ import annotations

import datetime
import json

import pytest

from ironic_rules.exceptions import HardwareFailed, InvalidParameterValue
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.bios import RedfishBIOS
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.management import RedfishManagement
from ironic_rules.hardware.redfish.raid import RedfishRAID
from ironic_rules.models import states
from ironic_rules.steps import execution, procedures
from ironic_rules.steps.procedures import DEPLOYMENT
from tests.unit.hardware.redfish_bmc import SYSTEM, documents, members, serving
from tests.unit.inspection.tasks import make_task

OK = {"State": "Enabled", "Health": "OK"}
STORAGE, MANAGER = f"{SYSTEM}/Storage/1", "/redfish/v1/Managers/1"
TASK = "/redfish/v1/TaskService/Tasks/1"
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
    """A power interface, and a deploy interface; ``then`` is called when the machine boots."""

    def __init__(self, then=lambda: None, has_ramdisk=False):
        self.told = []
        self._then = then
        self._has_ramdisk = has_ramdisk

    def prepare_reboot(self, task):
        if self._has_ramdisk:
            self.told.append("ramdisk")
        return self._has_ramdisk

    def request_reboot(self, task):
        self.told.append("rebooting")
        self._then()


@pytest.fixture
def task(bmc):
    return make_task({"driver_info": {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"},
                      "raid_config": {}, "target_raid_config": {}, "provision_state": "deploying"})


def begin(cls, conf, task, step, power=None, **args):
    """Run a step; return the interface and None or the wait state."""
    interface = cls(conf, lambda node, kind: power)
    return interface, execution.call(interface, task, step, args, DEPLOYMENT)


def poll(interface, task):
    """Poll as a conductor does from what the node has, which is stored in between; return what is missing."""
    task.node.driver_internal_info = json.loads(json.dumps(task.node.driver_internal_info))
    return interface.poll(task, procedures.pending_poll(task.node.driver_internal_info).what)


def proceed(interface, task, step, **args):
    """Continue a step whose poll has ended."""
    task.node.driver_internal_info = procedures.end_poll(task.node.driver_internal_info, None)
    return interface.continue_step(task, step, args)


def run(cls, conf, task, step, power=None, **args):
    """Run a step until it is done; whatever it waits for is there at the first poll."""
    interface, waits = begin(cls, conf, task, step, power, **args)
    while waits is not None:
        assert waits == states.DEPLOYWAIT
        assert poll(interface, task) is None
        waits = proceed(interface, task, step, **args)
    assert not task.node.driver_internal_info


def settings(**values):
    return [{"name": name, "value": value} for name, value in values.items()]


def ends(conf, bmc):
    """Return, by interface: a step that reboots the machine, its arguments, and what makes it end."""
    bmc.content[f"{STORAGE}/Volumes"]["@Redfish.OperationApplyTimeSupport"] = {"SupportedValues": ["OnReset"]}
    return {
        RedfishBIOS: ("apply_configuration", {"settings": settings(VMX="on")},
                      lambda: bmc.content[f"{SYSTEM}/Bios"]["Attributes"].update(VMX="on")),
        RedfishRAID: ("delete_configuration", {}, lambda: bmc.content[f"{STORAGE}/Volumes"].update(members())),
    }


@pytest.mark.parametrize("comes", ["before the end", "after the end"])
@pytest.mark.parametrize("cls", [RedfishBIOS, RedfishRAID])
def test_a_ramdisk_that_runs_is_booted_again_and_its_heartbeat_awaited(conf, bmc, task, cls, comes):
    step, args, end = ends(conf, bmc)[cls]
    power = Power(has_ramdisk=True)
    interface, waits = begin(cls, conf, task, step, power, **args)
    assert (waits, power.told) == (states.DEPLOYWAIT, ["ramdisk", "rebooting"])
    if comes == "before the end":
        task.context.agent_token = "of the new ramdisk"
        assert interface.continue_step(task, step, args) == states.DEPLOYWAIT
        task.context.agent_token = None
        assert poll(interface, task) is not None

    end()
    assert poll(interface, task) is None
    if comes == "after the end":
        assert proceed(interface, task, step, **args) == states.DEPLOYWAIT
        assert interface.continue_step(task, step, args) == states.DEPLOYWAIT
        task.context.agent_token = "of the new ramdisk"

    assert proceed(interface, task, step, **args) is None
    assert task.node.driver_internal_info == {}


def test_settings_that_differ_are_written_and_the_machine_is_rebooted(conf, bmc, task):
    power = Power(lambda: bmc.content[f"{SYSTEM}/Bios"]["Attributes"].update(VMX="on"))

    run(RedfishBIOS, conf, task, "apply_configuration", power, settings=settings(VMX="on", Turbo="on"))

    assert bmc.told == [("PATCH", f"{SYSTEM}/Bios/Settings", {"Attributes": {"VMX": "on"}})]
    assert power.told == ["rebooting"]


def test_settings_that_are_so_already_cost_no_reboot(conf, bmc, task):
    power = Power()

    run(RedfishBIOS, conf, task, "apply_configuration", power, settings=settings(Turbo="on"))

    assert (bmc.told, power.told) == ([], [])


def test_settings_that_do_not_come_are_named(conf, task):
    interface, waits = begin(RedfishBIOS, conf, task, "apply_configuration", Power(), settings=settings(VMX="on"))

    assert waits == states.DEPLOYWAIT
    assert poll(interface, task) == "the BMC does not report the requested value of VMX."
    assert interface.continue_step(task, "apply_configuration", {}) == states.DEPLOYWAIT


@pytest.mark.parametrize(("state", "waits"), [
    ("deploying", "wait call-back"), ("cleaning", "clean wait"), ("servicing", "service wait")])
def test_a_step_waits_in_the_state_of_its_procedure(conf, task, state, waits):
    task.node.provision_state = state

    assert RedfishBIOS(conf, lambda node, kind: Power()).write_settings(task, {"VMX": "on"}) == waits


def test_what_the_bmc_says_about_settings_that_it_refused_ends_the_step(conf, bmc, task):
    told = {"Time": "2026-11-23T07:00:00Z", "Messages": [
        {"Severity": "OK", "Message": "One setting was applied."},
        {"Severity": "Warning", "Message": "A reset is required."},
        {"MessageSeverity": "Warning", "Message": "VMX cannot be on.", "MessageId": "Base.1.0.PropertyValueNotInList"}]}
    interface, _ = begin(RedfishBIOS, conf, task, "apply_configuration", Power(), settings=settings(VMX="on"))
    bmc.content[f"{SYSTEM}/Bios"]["@Redfish.Settings"].update(told)

    with pytest.raises(HardwareFailed, match=r"did not apply the settings: VMX cannot be on\. Base\.1\.0\.Prop"):
        poll(interface, task)

    # What it has said about an earlier attempt does not count.
    interface, _ = begin(RedfishBIOS, conf, task, "apply_configuration", Power(), settings=settings(VMX="on"))
    assert poll(interface, task) == "the BMC does not report the requested value of VMX."


@pytest.mark.parametrize(("wanted", "reported", "sent"), [
    ("1", 1, None), (1, "1", None), ("true", True, None), (1, True, None), (2.0, 2, None), ("3", 1, 3), (3, "1", "3"),
    ("False", True, False), (1.5, "1", "1.5"), (None, None, None), ("x", None, "x")])
def test_a_setting_is_compared_and_sent_as_the_type_that_the_bmc_reports(conf, bmc, task, wanted, reported, sent):
    bmc.content[f"{SYSTEM}/Bios"]["Attributes"]["VMX"] = reported

    def boot():
        bmc.content[f"{SYSTEM}/Bios"]["Attributes"]["VMX"] = sent

    run(RedfishBIOS, conf, task, "apply_configuration", Power(boot), settings=settings(VMX=wanted))

    assert bmc.told == ([] if sent is None else [("PATCH", f"{SYSTEM}/Bios/Settings", {"Attributes": {"VMX": sent}})])


@pytest.mark.parametrize(("wanted", "reported", "text"), [
    ("many", 1, "a number"), (True, 1, "a number"), ("maybe", True, "true or false"), (True, "on", "a text")])
def test_a_setting_of_another_type_is_refused_before_anything_is_written(conf, bmc, task, wanted, reported, text):
    bmc.content[f"{SYSTEM}/Bios"]["Attributes"]["VMX"] = reported

    with pytest.raises(InvalidParameterValue, match=f"The BIOS setting VMX must be {text}"):
        begin(RedfishBIOS, conf, task, "apply_configuration", Power(), settings=settings(VMX=wanted))
    assert bmc.told == []


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
    power = Power(lambda: bmc.content[SYSTEM].update(PowerState="On"))
    interface, _ = begin(RedfishBIOS, conf, task, "factory_reset", power)
    # The BMC reports the new values only when the machine has started.
    assert "settings from before the reset" in poll(interface, task)

    known = bmc.content[f"{SYSTEM}/Bios"].pop("Attributes")
    assert "settings from before the reset" in poll(interface, task)
    # As an earlier version of the service began it.
    assert interface.poll(task, {"system": SYSTEM}) is None

    bmc.content[f"{SYSTEM}/Bios"]["Attributes"] = {**known, "VMX": "default"}

    assert poll(interface, task) is None
    assert ([entry[:2] for entry in bmc.told], power.told) == ([("POST", f"{SYSTEM}/Bios/Reset")], ["rebooting"])


@pytest.mark.parametrize(("progress", "passed_s", "missing"), [
    ("OSRunning", 1, "not when the machine has started"), ("OSRunning", 31, None), ("SetupEntered", 31, None),
    ("MemoryInitializationStarted", 1000, "that the machine starts (MemoryInitializationStarted)"),
    ("SystemHardwareInitializationComplete", 301, None),
    ("OEM", 299, "not when the machine has started"), (None, 299, "not when the machine has started"),
    (None, 301, None), ("None", 301, None)])
def test_a_reset_that_changes_no_setting_ends_when_the_machine_has_started(conf, bmc, task, progress, passed_s,
                                                                          missing):
    conf.set_override("configuration_timeout", 2000, group="redfish")
    interface, _ = begin(RedfishBIOS, conf, task, "factory_reset", Power())
    bmc.content[SYSTEM].update(PowerState="On", **({} if progress is None else {"BootProgress": {
        "LastState": progress}}))
    what = dict(procedures.pending_poll(task.node.driver_internal_info).what)
    what["begun_at"] = (datetime.datetime.fromisoformat(what["begun_at"])
                        - datetime.timedelta(seconds=passed_s)).isoformat()

    told = interface.poll(task, what)

    assert told is None if missing is None else missing in told


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
    assert [disk["raid_level"] for disk in task.node.raid_config["logical_disks"]] == ["1"]


def test_creation_begins_when_the_deletion_has_ended(conf, bmc, task):
    bmc.task, bmc.content[TASK] = TASK, {"Id": "1", "Name": "Task", "TaskState": "Running"}
    args = {"delete_existing": True, "raid_config": {"logical_disks": [{"size_gb": "MAX", "raid_level": "1"}]}}
    interface, waits = begin(RedfishRAID, conf, task, "apply_configuration", **args)

    assert waits == states.DEPLOYWAIT
    assert poll(interface, task) == ("the deletion of the volumes: these tasks of the BMC have not ended: "
                                     f"{TASK} (Running).")
    bmc.content[TASK]["TaskState"] = "Completed"
    assert poll(interface, task) is None
    assert [method for method, _, _ in bmc.told] == ["DELETE"]
    assert proceed(interface, task, "apply_configuration", **args) == states.DEPLOYWAIT
    assert ([method for method, _, _ in bmc.told], task.node.raid_config) == (["DELETE", "POST"], {})
    assert poll(interface, task) is None
    assert proceed(interface, task, "apply_configuration", **args) is None
    assert [disk["raid_level"] for disk in task.node.raid_config["logical_disks"]] == ["1"]


@pytest.mark.parametrize("state", ["Exception", "Killed", "Cancelled"])
def test_a_task_of_the_bmc_that_fails_fails_the_step(conf, bmc, task, state):
    bmc.task, bmc.content[TASK] = TASK, {"Id": "1", "Name": "Task", "TaskState": state,
                                         "Messages": [{"Message": "The drive is busy."}]}
    interface, _ = begin(RedfishRAID, conf, task, "delete_configuration")

    with pytest.raises(HardwareFailed, match=f"volumes failed: its task ended as {state}: The drive is busy\\.$"):
        poll(interface, task)


def test_a_task_that_the_bmc_no_longer_knows_fails_the_step_unless_its_work_is_done(conf, bmc, task):
    bmc.task = TASK
    interface, _ = begin(RedfishRAID, conf, task, "delete_configuration")

    with pytest.raises(HardwareFailed, match=f"no longer knows its task {TASK}, and has 1 volumes instead of 0"):
        poll(interface, task)
    bmc.content[f"{STORAGE}/Volumes"].update(members())
    assert poll(interface, task) is None


@pytest.mark.parametrize("location", ["http://192.0.2.9/steal", "//192.0.2.9/steal"])
def test_a_task_is_only_looked_for_at_the_bmc_itself(conf, bmc, task, location):
    bmc.task = location
    begin(RedfishRAID, conf, task, "delete_configuration")

    assert procedures.pending_poll(task.node.driver_internal_info).what["tasks"] == ["/steal"]


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
