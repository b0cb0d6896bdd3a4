"""The step ``firmware.update`` of ``redfish`` with a BMC of a few documents: its requests, polls and failures."""

from __future__ import annotations

import datetime

import pytest

from ironic_rules.db import clock
from ironic_rules.exceptions import BMCError, HardwareFailed, InvalidParameterValue
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.firmware import RedfishFirmware
from ironic_rules.models import states
from ironic_rules.steps import procedures
from tests.unit.hardware.redfish_bmc import ROOT, SYSTEM, documents, serving
from tests.unit.hardware.test_redfish_steps import MANAGER, OK, TASK, Power, begin, poll, proceed
from tests.unit.inspection.tasks import make_task

SERVICE = "/redfish/v1/UpdateService"
ACTION = f"{SERVICE}/Actions/UpdateService.SimpleUpdate"
BIOS = {"component": "bios", "url": "http://images/bios.bin"}
BMC = {"component": "bmc", "url": "https://images/bmc.bin"}


@pytest.fixture
def bmc():
    found = documents({"BiosVersion": "1", "Links": {"ManagedBy": [{"@odata.id": MANAGER}]}}, {
        MANAGER: {"Id": "1", "Name": "M", "FirmwareVersion": "1", "DateTime": "2020-01-01T00:00:00Z", "Status": OK},
        SERVICE: {"Id": "UpdateService", "Actions": {"#UpdateService.SimpleUpdate": {"target": ACTION}}},
        TASK: {"Id": "1", "TaskState": "Running"}})
    found[ROOT]["UpdateService"] = {"@odata.id": SERVICE}
    with serving(found) as served:
        served.task = TASK
        yield served


@pytest.fixture(autouse=True)
def quick(conf, monkeypatch):
    conf.set_override("connection_attempts", 1, group="redfish")
    conf.set_override("auth_type", "basic", group="redfish")
    conf.set_override("image_check_timeout", 0, group="deploy")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())


@pytest.fixture
def task(bmc):
    return make_task({"driver_info": {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"},
                      "provision_state": "deploying"})


def update(conf, task, *settings, power=None):
    return begin(RedfishFirmware, conf, task, "update", power, settings=list(settings))


def sent(bmc):
    return [(path, body) for _, path, body in bmc.told]


def test_a_bios_image_is_loaded_applied_by_a_reboot_and_waited_for(conf, bmc, task):
    power, settings = Power(has_ramdisk=True), [{**BIOS, "wait": 60}]
    interface, waits = update(conf, task, *settings, power=power)

    assert (waits, sent(bmc)) == (states.DEPLOYWAIT, [(ACTION, {"ImageURI": BIOS["url"]})])
    assert poll(interface, task) == "the update of bios: its task has not ended (Running)."
    assert interface.continue_step(task, "update", {"settings": settings}) == states.DEPLOYWAIT
    bmc.content[TASK]["TaskState"] = "Pending"  # it waits for a reboot
    assert poll(interface, task) is None
    assert power.told == []

    assert proceed(interface, task, "update", settings=settings) == states.DEPLOYWAIT
    assert power.told == ["ramdisk", "rebooting"]
    assert "power state Off" in poll(interface, task)
    bmc.content[SYSTEM]["PowerState"] = "On"
    assert poll(interface, task) == "the update of bios: its task has not ended (Pending)."
    bmc.content[TASK]["TaskState"] = "Completed"
    assert poll(interface, task) is None
    assert proceed(interface, task, "update", settings=settings) == states.DEPLOYWAIT
    assert procedures.pending_poll(task.node.driver_internal_info).ended
    task.context.agent_token = "of the new ramdisk"

    assert proceed(interface, task, "update", settings=settings) == states.DEPLOYWAIT
    assert "seconds are left to wait" in poll(interface, task)
    what = procedures.pending_poll(task.node.driver_internal_info).what
    assert interface.poll(task, {**what, "until": clock.now().isoformat()}) is None
    assert proceed(interface, task, "update", settings=settings) is None
    assert task.node.driver_internal_info == {}
    assert len(bmc.told) == 1


def test_components_are_updated_one_after_the_other_and_a_bmc_forgets_its_task(conf, bmc, task):
    power, settings = Power(), [BMC, BIOS]
    interface, _ = update(conf, task, *settings, power=power)
    assert [body["ImageURI"] for _, body in sent(bmc)] == [BMC["url"]]

    del bmc.content[TASK]
    assert poll(interface, task) == (
        "the update of bmc: the BMC no longer knows its task, and reports the version 1, as before.")
    bmc.content[MANAGER]["FirmwareVersion"] = "2"
    assert poll(interface, task) is None
    bmc.task = None  # the next image is installed at once
    assert proceed(interface, task, "update", settings=settings) == states.DEPLOYWAIT
    assert [body["ImageURI"] for _, body in sent(bmc)] == [BMC["url"], BIOS["url"]]
    assert poll(interface, task) is None
    assert proceed(interface, task, "update", settings=settings) == states.DEPLOYWAIT
    assert power.told == ["rebooting"]
    bmc.content[SYSTEM]["PowerState"] = "On"
    assert poll(interface, task) == "the update of bios: the BMC reports the version 1, as before."
    bmc.content[SYSTEM]["BiosVersion"] = "2"
    assert poll(interface, task) is None
    assert proceed(interface, task, "update", settings=settings) is None
    assert task.notices == []


@pytest.mark.parametrize(("setting", "told"), [
    (BIOS, "reports the version 1, as before."), (BMC, "reports the version 1, as before."),
    ({**BMC, "wait": 0}, "reports the version 1, as before."), (BMC, "cannot be reached")])
def test_an_update_without_a_task_and_with_the_version_as_before_is_told(conf, bmc, task, setting, told):
    bmc.task = None
    interface, _ = update(conf, task, setting, power=Power(lambda: bmc.content[SYSTEM].update(PowerState="On")))
    assert poll(interface, task) is None
    if setting is BIOS:
        assert proceed(interface, task, "update", settings=[setting]) == states.DEPLOYWAIT
        what = dict(procedures.pending_poll(task.node.driver_internal_info).what)
        assert interface.poll(task, what) is not None
        what["rebooted_at"] = (clock.now() - datetime.timedelta(seconds=301)).isoformat()
        assert interface.poll(task, what) is None
    if "reached" in told:
        bmc.broken[ROOT.rstrip("/")] = bmc.broken[SYSTEM] = None

    assert proceed(interface, task, "update", settings=[setting]) is None

    [notice] = task.notices
    assert notice.startswith(f"Whether the update of {setting['component']} has succeeded is unknown: ")
    assert told in notice


def test_a_task_that_fails_ends_the_step_with_what_the_bmc_says(conf, bmc, task):
    interface, _ = update(conf, task, BMC)
    bmc.content[TASK] = {"TaskState": "Exception", "Messages": [{"Message": "The image has no signature."}]}

    with pytest.raises(HardwareFailed, match=r"the update of bmc failed: .* Exception: The image has no signature\."):
        poll(interface, task)


def test_a_bmc_that_restarts_is_asked_again_until_the_time_out_of_one_component(conf, bmc, task):
    conf.set_override("firmware_update_timeout", 100, group="redfish")
    before = clock.now()
    interface, _ = update(conf, task, BMC)
    bmc.broken[TASK] = None

    with pytest.raises(BMCError, match="cannot be reached") as caught:
        poll(interface, task)

    assert not isinstance(caught.value, HardwareFailed)
    waits = procedures.pending_poll(task.node.driver_internal_info)
    assert waits.until - before >= datetime.timedelta(seconds=100)
    assert waits.limit == "100 seconds, [redfish]firmware_update_timeout"


@pytest.mark.parametrize(("settings", "problem"), [
    ([BMC, {"component": "nic:7", "url": "http://images/x"}],
     "/args/settings/1/component: the machine has no such component; it has bios, bmc"),
    ([{**BIOS, "url": "ftp://images/x"}], "/args/settings/0/url: must be an HTTP or HTTPS URL"),
    ([{**BIOS, "checksum": "5"}], "checksum"), ([{**BIOS, "wait": 1801}], "/args/settings/0/wait"),
    ([], "/args/settings: must be a list of one or more objects")])
def test_wrong_settings_are_refused_before_anything_is_sent(conf, bmc, task, settings, problem):
    with pytest.raises(InvalidParameterValue, match=problem.replace("(", r"\(")):
        update(conf, task, *settings)

    assert bmc.told == []


def test_urls_are_checked_like_those_of_images(conf, bmc, task):
    conf.set_override("image_check_timeout", 5, group="deploy")

    with pytest.raises(InvalidParameterValue, match=r"/args/settings/0/url: .*image_url_denied_networks"):
        update(conf, task, {**BIOS, "url": "http://169.254.169.254/bios.bin"})

    assert bmc.told == []


@pytest.mark.parametrize("target", ["https://elsewhere/update", "//elsewhere/update", None])
def test_a_bmc_without_the_action_or_with_one_elsewhere_gets_nothing(conf, bmc, task, target):
    bmc.content[SERVICE]["Actions"]["#UpdateService.SimpleUpdate"] = {} if target is None else {"target": target}

    with pytest.raises(BMCError, match=r"does not load images|invalid response"):
        update(conf, task, BMC)

    assert bmc.told == []
