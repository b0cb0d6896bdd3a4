"""Cleaning and servicing, automated and by request, over HTTP, in one process."""

from __future__ import annotations

import datetime
import functools
import re

import pytest

from ironic_rules.conductor import recovery
from ironic_rules.hardware.base import DeployInterface, HardwareType
from ironic_rules.hardware.fake import FakeFirmware, FakeManagement
from ironic_rules.models import states
from tests.functional.whole import fault, running
from tests.walking import walking

CALLBACK = {"callback_url": "http://192.0.2.7:9999"}
#: In the order of their priorities.
AUTOMATED = ["deploy.erase_devices_metadata", "deploy.erase_devices"]
VOLUMES = [{"size_gb": 10, "raid_level": "1"}]


class WithoutCleanSteps(HardwareType):
    """A machine of which no interface has a clean step that runs by default, and that boots no ramdisk."""

    supported_boot_interfaces = ("fake",)
    supported_deploy_interfaces = ("dull",)
    supported_inspect_interfaces = ("no-inspect",)
    supported_management_interfaces = ("noop",)
    supported_power_interfaces = ("fake",)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with running(tmp_path_factory.mktemp("cleaning")) as service:
        yield service


#: By verb: the state before it, the field with its steps, and the names of its procedure in states and in texts.
MANUAL = {
    "clean": ("manageable", "clean_steps", "clean", "cleaning", "manageable"),
    "service": ("active", "service_steps", "service", "servicing", "active"),
}


def step(name, /, **args):
    interface, _, short = name.partition(".")
    return {"interface": interface, "step": short, "args": args}


def finished(whole, node):
    """Return the steps that have finished according to the history, in their order."""
    pattern = re.compile(r"(?:Clean|Service) step (\S+) \(.*\) finished after \d+\.\d s\.")
    return [found[1] for _, event in whole.events(node) if (found := pattern.fullmatch(event))]


def texts(whole, node):
    return [event for _, event in whole.events(node)]


def token_of(whole, node):
    return whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]


def beat(whole, node, token, callback=CALLBACK):
    """Send a heartbeat as the node's ramdisk, and return the node when it is in a stable state."""
    reply = whole.app.post_json(f"/v1/heartbeat/{node}", {**callback, "agent_token": token})
    assert reply.status_int == 202, reply.text
    return whole.at_rest(node)


def assert_forgotten(row):
    assert (row.clean_step, row.service_step) == ({}, {})
    assert not [key for key in row.driver_internal_info if key.startswith(("clean", "service", "user_", "servicing"))]


@pytest.mark.parametrize(("verb", "state"), [("provide", "manageable"), ("deleted", "active")])
def test_a_node_is_cleaned_before_it_is_available(whole, verb, state):
    node = whole.enroll(state)

    shown = whole.provision(node, verb)

    assert (shown["provision_state"], shown["target_provision_state"], shown["last_error"]) == ("available", None, None)
    assert finished(whole, node) == AUTOMATED
    assert texts(whole, node)[-4:] == [
        f"The cleaning begins; steps: {', '.join(AUTOMATED)}.", *texts(whole, node)[-3:-1], "The cleaning is finished."]
    assert_forgotten(whole.row(node))


@pytest.mark.parametrize(("option", "own", "is_cleaned"), [
    (True, None, True), (True, False, False), (False, None, False), (False, True, True)])
def test_the_node_decides_over_the_option_whether_it_is_cleaned(whole, option, own, is_cleaned):
    node = whole.enroll("manageable", automated_clean=own)

    with whole.option("conductor", "automated_clean", option):
        shown = whole.provision(node, "provide")

    assert shown["provision_state"] == "available"
    assert finished(whole, node) == (AUTOMATED if is_cleaned else [])
    who = "automated_clean of the node" if own is False else "[conductor]automated_clean"
    assert (texts(whole, node) == [f"The node was not cleaned: {who} is false."]) is not is_cleaned


def test_priorities_of_automated_cleaning_are_the_operators(whole):
    node, other = whole.enroll("manageable", raid_interface="fake"), whole.enroll("manageable")

    with (whole.option("deploy", "erase_devices_priority", 0),
          whole.option("deploy", "erase_devices_metadata_priority", 5),
          whole.option("conductor", "clean_step_priority_override", {"raid.delete_configuration": 7})):
        whole.provision(node, "provide")
    with whole.option("conductor", "clean_step_priority_override", dict.fromkeys(AUTOMATED, 0)):
        shown = whole.provision(other, "provide")

    assert finished(whole, node) == ["raid.delete_configuration", "deploy.erase_devices_metadata"]
    assert texts(whole, node)[1].startswith("Clean step raid.delete_configuration (1 of 2, configuration) ")
    assert (shown["provision_state"], finished(whole, other)) == ("available", [])


def test_hardware_that_can_not_be_cleaned_says_so(tmp_path):
    class Dull(DeployInterface):
        def deploy(self, task):
            pass

        def tear_down(self, task):
            pass

    with running(tmp_path, types={"dull-hardware": WithoutCleanSteps}, deploy_interfaces={"dull": Dull}) as whole:
        node = whole.enroll("manageable", driver="dull-hardware")

        shown = whole.provision(node, "provide")
        assert (shown["provision_state"], shown["target_provision_state"]) == ("clean failed", "available")
        assert "no interface of the node has a clean step that runs by default" in shown["last_error"]
        assert not shown["maintenance"]

        assert whole.provision(node, "manage")["provision_state"] == "manageable"
        whole.put(node, automated_clean=False)
        assert whole.provision(node, "provide")["provision_state"] == "available"


@pytest.mark.parametrize("verb", MANUAL)
def test_requested_steps_run_in_their_order_with_their_arguments(whole, verb):
    state, field, _, noun, target = MANUAL[verb]
    node = whole.enroll(state, raid_interface="fake", bios_interface="fake")

    shown = whole.provision(node, verb, **{field: [
        step("power.power_off"), step("raid.create_configuration", logical_disks=VOLUMES),
        {"interface": "bios", "step": "factory_reset"}, step("power.power_on")]})

    assert (shown["provision_state"], shown["target_provision_state"], shown["last_error"]) == (target, None, None)
    assert finished(whole, node) == [
        "power.power_off", "raid.create_configuration", "bios.factory_reset", "power.power_on"]
    assert (shown["power_state"], whole.row(node).raid_config) == ("power on", {"logical_disks": VOLUMES})
    history = whole.app.get(f"/v1/nodes/{node}/history?detail=true").json["history"]
    assert {entry["event_type"] for entry in history} == {noun}
    assert_forgotten(whole.row(node))


def test_what_a_step_tells_about_its_outcome_is_in_the_history(whole, monkeypatch):
    @functools.wraps(FakeFirmware.update)
    def update(firmware, task, settings):
        task.notices.append("It is unknown.")

    monkeypatch.setattr(FakeFirmware, "update", update)
    node = whole.enroll("manageable", firmware_interface="fake")

    shown = whole.provision(node, "clean", clean_steps=[
        step("firmware.update", settings=[{"component": "bios", "url": "http://images/x"}])])

    assert shown["provision_state"] == "manageable"
    assert re.fullmatch(r"Clean step firmware\.update \(1 of 1, request\) finished after \d\.\d s\. Warning: It is "
                        r"unknown\.", texts(whole, node)[1])


@pytest.mark.parametrize("verb", MANUAL)
def test_wrong_steps_are_refused_with_their_places_and_nothing_is_begun(whole, verb):
    state, field, _, _, _ = MANUAL[verb]
    node = whole.enroll(state, raid_interface="fake")
    before = whole.row(node)

    reply = whole.ask(node, verb, **{field: [
        step("power.reboot"), step("raid.make_tea"), step("power.reboot", how="hard"),
        step("raid.create_configuration", logical_disks=[{"size_gb": "x", "raid_level": "1"}]),
        step("deploy.prepare_cleaning"), step("raid.wait", seconds=86401)]})

    assert reply.status_int == 400
    told = fault(reply)
    for place in ("1 (raid.make_tea): the raid interface of the node does not offer this step",
                  "2/args/how: the step has no such argument", "3/args/logical_disks/0/size_gb: must be a number",
                  "4 (deploy.prepare_cleaning): the deploy interface of the node does not offer this step",
                  "5/args/seconds: must be a number from 0 to 86400"):
        assert f"/{field}/{place}" in told
    assert f"/{field}/0" not in told
    assert whole.row(node) == before


@walking("body, place", [
    ({"clean_steps": [{"interface": "boot", "step": "x"}]}, "/clean_steps/0/interface"),
    ({"clean_steps": [{"interface": "raid"}]}, "/clean_steps/0/step"),
    ({"clean_steps": [step("vendor.send_raw", raw_bytes="0x00")]}, "/clean_steps/0/step"),
    ({"clean_steps": [{**step("raid.x"), "priority": 1}]}, "/clean_steps/0/priority"),
    ({"clean_steps": []}, "/clean_steps"), ({"clean_steps": [step("power.reboot")] * 1001}, "/clean_steps"),
    ({"clean_steps": [step("power.reboot")], "disable_ramdisk": "perhaps"}, "/disable_ramdisk"),
])
def test_malformed_requests_are_refused_with_their_places(whole, body, place):
    node = whole.enroll("manageable")

    reply = whole.ask(node, "clean", **body)

    assert (reply.status_int, whole.row(node).provision_state) == (400, "manageable")
    assert place in fault(reply)


@pytest.mark.parametrize("verb", MANUAL)
def test_a_failed_step_is_named_and_puts_the_node_in_maintenance(whole, verb):
    state, field, short, _, target = MANUAL[verb]
    node = whole.enroll(state, raid_interface="fake")

    shown = whole.provision(node, verb, **{field: [
        step("power.reboot"), step("raid.pretend", error="the disk smokes"), step("power.power_off")]})

    error = (f"{short.capitalize()} step raid.pretend (2 of 3, request) failed: raid.pretend fails as requested: the "
             "disk smokes (IR-2087)")
    assert (shown["provision_state"], shown["target_provision_state"]) == (f"{short} failed", target)
    assert (shown["last_error"], shown["maintenance"], shown["fault"]) == (error, True, f"{short} failure")
    assert whole.events(node)[-1] == ("ERROR", error)
    assert finished(whole, node) == ["power.reboot"]
    assert_forgotten(whole.row(node))
    assert whole.app.delete(f"/v1/nodes/{node}/maintenance").status_int == 202
    again = whole.provision(node, verb, **{field: [step("power.reboot")]})
    assert (again["provision_state"], again["fault"], again["last_error"]) == (target, None, None)


@pytest.mark.parametrize("verb", MANUAL)
def test_a_step_waits_for_the_machine_and_goes_on_with_its_heartbeat(whole, verb):
    state, field, short, _, target = MANUAL[verb]
    node = whole.enroll(state, raid_interface="fake")

    shown = whole.provision(node, verb, **{field: [
        step("raid.pretend", asynchronous=True), step("management.wait"), step("power.reboot")]})
    assert (shown["provision_state"], shown["target_provision_state"]) == (f"{short} wait", target)
    assert (shown[f"{short}_step"]["step"], whole.row(node).reservation) == ("pretend", None)

    token = token_of(whole, node)
    row = beat(whole, node, token)
    assert (row.provision_state, getattr(row, f"{short}_step")["step"]) == (f"{short} wait", "wait")
    row = beat(whole, node, token)
    assert (row.provision_state, row.last_error) == (target, None)
    assert finished(whole, node) == ["raid.pretend", "management.wait", "power.reboot"]


@pytest.mark.parametrize("verb", MANUAL)
@pytest.mark.parametrize("ends", ["unhold", "abort"])
def test_a_hold_step_stops_until_a_person_decides(whole, verb, ends):
    state, field, short, noun, target = MANUAL[verb]
    node = whole.enroll(state)
    shown = whole.provision(node, verb, **{field: [
        step("power.power_off"), step("power.hold"), step("power.power_on")]})
    assert (shown["provision_state"], shown["power_state"]) == (f"{short} hold", "power off")
    assert whole.app.post_json(f"/v1/heartbeat/{node}", CALLBACK).status_int in (202, 400)
    assert whole.at_rest(node).provision_state == f"{short} hold"

    shown = whole.provision(node, ends)

    if ends == "unhold":
        assert (shown["provision_state"], shown["power_state"], shown["last_error"]) == (target, "power on", None)
        assert finished(whole, node) == ["power.power_off", "power.power_on"]
    else:
        assert (shown["provision_state"], shown["power_state"]) == (f"{short} failed", "power off")
        assert shown["last_error"] == f"The {noun} was aborted by request. (IR-2084)"
        assert not shown["maintenance"]
    assert_forgotten(whole.row(node))


def test_an_abort_ends_a_step_at_once_only_if_it_can_be_aborted(whole, monkeypatch):
    node, other = (whole.enroll("manageable", raid_interface="fake") for _ in range(2))
    whole.provision(other, "clean", clean_steps=[step("raid.pretend", asynchronous=True)])
    # Unlike pretend, this step cannot be aborted.
    monkeypatch.setattr(FakeManagement, "set_boot_device", lambda management, task, device: states.CLEANWAIT)
    whole.provision(node, "clean", clean_steps=[
        step("management.set_boot_device", device="disk"), step("power.power_on")])

    shown = whole.provision(other, "abort")
    assert (shown["provision_state"], shown["last_error"]) == (
        "clean failed", "The cleaning was aborted by request in clean step raid.pretend. (IR-2084)")
    shown = whole.provision(node, "abort")
    assert (shown["provision_state"], shown["clean_step"]["abort_after"]) == ("clean wait", True)
    row = beat(whole, node, token_of(whole, node))

    assert (row.provision_state, row.power_state, row.maintenance) == ("clean failed", "power off", False)
    assert "aborted by request, after the end of a step that cannot be aborted" in row.last_error
    assert finished(whole, node) == ["management.set_boot_device"]
    assert_forgotten(row)


@pytest.mark.parametrize("verb", MANUAL)
def test_a_machine_that_never_calls_back_fails_with_the_step(whole, verb):
    state, field, short, _, _ = MANUAL[verb]
    node = whole.enroll(state, raid_interface="fake")
    whole.provision(node, verb, **{field: [step("raid.pretend", asynchronous=True)]})
    whole.put(node, provision_updated_at=datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1))

    recovery.fail_overdue(whole.conductor)

    row = whole.at_rest(node)
    assert row.provision_state == f"{short} failed"
    assert f"call-back in {short} step raid.pretend (1800 seconds, [conductor]{short}_callback_timeout)" in (
        row.last_error)


def test_a_retired_node_is_not_made_available(whole):
    node = whole.enroll("active")
    whole.put(node, retired=True)

    shown = whole.provision(node, "deleted")
    assert (shown["provision_state"], shown["target_provision_state"]) == ("manageable", None)
    assert finished(whole, node) == AUTOMATED
    reply = whole.ask(node, "provide")
    assert (reply.status_int, whole.row(node).provision_state) == (400, "manageable")
    assert "retired" in fault(reply)
    whole.put(node, retired=False)
    assert whole.provision(node, "provide")["provision_state"] == "available"


def test_many_entries_of_one_kind_do_not_displace_those_of_another(whole):
    node = whole.enroll("manageable")
    assert whole.provision(node, "inspect")["provision_state"] == "inspect wait"
    whole.provision(node, "abort")
    whole.provision(node, "manage")

    with whole.option("conductor", "node_history_max_entries", 3):
        whole.provision(node, "clean", clean_steps=[step("power.reboot")] * 10)

    kept = texts(whole, node)
    assert (len(kept), kept[0]) == (4, "Inspection was aborted by request. (IR-2083)")
    assert kept[-1] == "The cleaning is finished."


@pytest.mark.parametrize(("minor", "status"), [(14, 406), (15, 202)])
def test_cleaning_by_request_has_ironics_versions(whole, minor, status):
    node = whole.enroll("manageable")
    reply = whole.app.put_json(
        f"/v1/nodes/{node}/states/provision", {"target": "clean", "clean_steps": [step("power.reboot")]},
        headers={"X-OpenStack-Ironic-API-Version": f"1.{minor}"})

    assert reply.status_int == status
    whole.at_rest(node)
