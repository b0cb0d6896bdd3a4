"""``custom-agent`` deployments over HTTP, in one process: tokens of ramdisks, and the state after a failure."""

from __future__ import annotations

import pytest

from ironic_rules.api.v1 import ramdisk
from ironic_rules.exceptions import AgentChanged, BMCError
from ironic_rules.hardware.agent.deploy import CustomAgentDeploy
from ironic_rules.hardware.fake import FakeBoot, FakeManagement, FakePower
from ironic_rules.models import states
from ironic_rules.steps.declaration import StepInfo
from tests.functional.whole import fault, running

CALLBACK = {"callback_url": "http://192.0.2.7:9999"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    config = "[DEFAULT]\nenabled_deploy_interfaces = fake,custom-agent\n"
    with running(tmp_path_factory.mktemp("ramdisks"), config) as service:
        yield service


@pytest.fixture
def boots(monkeypatch):
    """The calls of the boot interface, in their order."""
    told = []
    monkeypatch.setattr(FakeBoot, "clean_up_ramdisk", lambda boot, task: told.append("clean up"))
    return told


def waiting(whole, *steps):
    """Return a node that waits for its ramdisk."""
    node = whole.enroll("available", deploy_interface="custom-agent")
    assert whole.provision(node, "active", deploy_steps=list(steps))["provision_state"] == "wait call-back"
    return node


def token_of(whole, node):
    return whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]


def beat(whole, node):
    """Send a heartbeat as the node's new ramdisk, and return the node when it is in a stable state."""
    body = {**CALLBACK, "agent_token": token_of(whole, node)}
    assert whole.app.post_json(f"/v1/heartbeat/{node}", body).status_int == 202
    return whole.at_rest(node)


def step(name, priority, interface="deploy"):
    return {"interface": interface, "step": name, "args": {}, "priority": priority}


@pytest.mark.parametrize(("cls", "method", "is_void"), [
    # A ramdisk that was running, and the one that is started, while the power state still changes.
    (FakeManagement, "set_boot_device", True), (FakePower, "set_power_state", False)])
def test_a_token_is_void_if_it_was_given_before_the_ramdisk_is_started(whole, monkeypatch, cls, method, is_void):
    tokens, call = [], getattr(cls, method)

    def look_up(interface, task, *args, **named):
        tokens.append(whole.db.write(lambda conn: ramdisk.claim_token(conn, task.node.id, None)))
        return call(interface, task, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(cls, method, look_up)
        node = waiting(whole)

    [token] = tokens
    status = whole.app.post_json(f"/v1/heartbeat/{node}", {**CALLBACK, "agent_token": token}).status_int
    assert (status, whole.at_rest(node).agent_token_hash is None) == ((404, True) if is_void else (202, False))
    assert (token_of(whole, node) == ramdisk.HIDDEN_TOKEN) is not is_void


def test_a_step_that_the_ramdisk_does_not_have_is_told_with_who_asked_for_it(whole, monkeypatch):
    monkeypatch.setattr(CustomAgentDeploy, "continue_step", lambda *arguments: None)
    monkeypatch.setattr(CustomAgentDeploy, "in_band_steps", lambda *arguments: [StepInfo("raid", "make_tea", 0)])
    body = {"name": "CUSTOM_IN_RAMDISK", "steps": [step("make_coffee", 90), step("make_tea", 80, "raid")]}
    assert whole.app.post_json("/v1/deploy_templates", body).status_int == 201
    node = whole.enroll("available", deploy_interface="custom-agent")
    assert whole.app.put_json(f"/v1/nodes/{node}/traits", {"traits": ["CUSTOM_IN_RAMDISK"]}).status_int == 204
    whole.put(node, instance_info={"traits": ["CUSTOM_IN_RAMDISK"]})
    whole.provision(node, "active", deploy_steps=[step("grind", 70)])

    row = beat(whole, node)

    assert row.provision_state == "deploy failed"
    assert "the template CUSTOM_IN_RAMDISK (deploy.make_coffee): " in row.last_error
    assert "the request (deploy.grind): " in row.last_error
    assert "make_tea" not in row.last_error


def test_after_a_failure_the_machine_does_not_boot_the_ramdisk_again(whole, boots, monkeypatch):
    def fail(deploy, task, step, args):
        raise BMCError(node=task.node.uuid, reason="it smokes")

    monkeypatch.setattr(CustomAgentDeploy, "continue_step", fail)
    node = waiting(whole)
    assert boots == []

    row = beat(whole, node)

    assert (row.provision_state, row.power_state, boots) == ("deploy failed", "power off", ["clean up"])


def test_a_machine_that_must_stay_on_is_left_in_the_ramdisk_after_a_failure(whole, boots, monkeypatch):
    set_power_state = FakePower.set_power_state

    def noted(power, task, target, timeout_s=None):
        boots.append(target)
        set_power_state(power, task, target, timeout_s)

    node = waiting(whole)
    whole.put(node, disable_power_off=True)
    monkeypatch.setattr(FakePower, "set_power_state", noted)

    shown = whole.provision(node, "abort")

    assert (shown["provision_state"], shown["power_state"], boots) == (
        "deploy failed", "power on", ["clean up"])
    assert "aborted by request" in shown["last_error"]


@pytest.mark.parametrize("broken", [FakePower, FakeBoot])
def test_a_failure_that_can_not_be_cleaned_up_is_one_all_the_same(whole, boots, monkeypatch, broken):
    def fail(interface, task, *arguments):
        boots.append(f"{interface.kind} fails")
        raise BMCError(node=task.node.uuid, reason="it smokes")

    node = waiting(whole)
    monkeypatch.setattr(CustomAgentDeploy, "continue_step", fail)
    monkeypatch.setattr(broken, "set_power_state" if broken is FakePower else "clean_up_ramdisk", fail)

    row = beat(whole, node)

    assert (row.provision_state, row.reservation) == ("deploy failed", None)
    assert "deploy.deploy" in row.last_error
    part = "Switching the machine off" if broken is FakePower else "Undoing its boot (media, boot scripts)"
    assert f" Cleaning up failed: {part} failed: " in row.last_error
    assert boots == {FakePower: ["deploy fails", "power fails", "clean up"],
                     FakeBoot: ["deploy fails", "boot fails"]}[broken]
    assert row.power_state == (states.POWER_ON if broken is FakePower else states.POWER_OFF)


def test_a_servicing_without_the_ramdisk_that_fails_leaves_what_the_instance_boots_from(whole, boots):
    node = whole.enroll("active", deploy_interface="custom-agent", raid_interface="fake")
    whole.put(node, power_state="power on")

    shown = whole.provision(node, "service", disable_ramdisk=True, service_steps=[
        {"interface": "raid", "step": "pretend", "args": {"error": "no"}}])

    assert (shown["provision_state"], shown["power_state"], boots) == ("service failed", "power on", [])


@pytest.mark.parametrize("is_repaired", [True, False])
def test_media_that_are_left_are_told_and_ejected_when_the_node_is_managed(whole, boots, monkeypatch, is_repaired):
    def fail(boot, task):
        raise BMCError(node=task.node.uuid, reason="EjectMedia answers 500")

    node = whole.enroll("manageable", deploy_interface="custom-agent")
    whole.provision(node, "clean", clean_steps=[{"interface": "deploy", "step": "scrub"}])
    with monkeypatch.context() as patch:
        patch.setattr(FakeBoot, "clean_up_ramdisk", fail)
        shown = whole.provision(node, "abort")
        told = "Undoing its boot (media, boot scripts) failed: "
        assert shown["provision_state"] == "clean failed"
        assert f" Cleaning up failed: {told}" in shown["last_error"]
        assert "EjectMedia answers 500" in whole.events(node)[-1][1]
        if not is_repaired:
            shown = whole.provision(node, "manage")
            assert shown["provision_state"] == "manageable"
            assert shown["last_error"].startswith("Media or boot scripts of the ramdisk remain: ")
            assert whole.events(node)[-1] == ("ERROR", shown["last_error"])
            return

    shown = whole.provision(node, "manage")

    assert (shown["provision_state"], shown["last_error"], boots) == ("manageable", None, ["clean up"])
    assert "ramdisk_boot_left" not in shown["driver_internal_info"]


@pytest.mark.parametrize("often", [1, 2])
def test_automated_cleaning_begins_again_when_the_agent_has_changed_but_only_once(whole, monkeypatch, often):
    calls = []

    def run(deploy, task, step, procedure):
        calls.append(step["step"])
        if step["step"] == "scrub" and calls.count("scrub") <= often:
            raise AgentChanged(reason="M is 2 now")

    monkeypatch.setattr(CustomAgentDeploy, "continue_step", lambda *arguments: None)
    monkeypatch.setattr(CustomAgentDeploy, "in_band_steps", lambda *arguments: [
        StepInfo("deploy", "scrub", 5), StepInfo("deploy", "note", 7)])
    monkeypatch.setattr(CustomAgentDeploy, "run_in_band", run)
    node = whole.enroll("manageable", deploy_interface="custom-agent")
    assert whole.provision(node, "provide")["provision_state"] == "clean wait"

    row = beat(whole, node)
    assert (row.provision_state, row.clean_step["step"], calls) == ("clean wait", "prepare_cleaning", ["note", "scrub"])
    row = beat(whole, node)

    assert calls == ["note", "scrub", "note", "scrub"]
    assert (row.provision_state, "M is 2 now" in (row.last_error or "")) == (
        ("available", False) if often == 1 else ("clean failed", True))
    assert "clean_steps_restarted" not in row.driver_internal_info


def test_requested_cleaning_does_not_begin_again(whole, monkeypatch):
    def run(deploy, task, step, procedure):
        raise AgentChanged(reason="M is 2 now")

    monkeypatch.setattr(CustomAgentDeploy, "continue_step", lambda *arguments: None)
    monkeypatch.setattr(CustomAgentDeploy, "in_band_steps", lambda *arguments: [StepInfo("deploy", "scrub", 5)])
    monkeypatch.setattr(CustomAgentDeploy, "run_in_band", run)
    node = whole.enroll("manageable", deploy_interface="custom-agent")
    whole.provision(node, "clean", clean_steps=[{"interface": "deploy", "step": "scrub"}])

    row = beat(whole, node)

    assert row.provision_state == "clean failed"
    assert "Clean step deploy.scrub (2 of 3, request) failed: The agent's hardware managers" in row.last_error


@pytest.mark.parametrize(("verb", "state", "field"), [
    ("clean", "manageable", "clean_steps"), ("service", "active", "service_steps")])
def test_without_the_ramdisk_only_steps_that_need_none_run(whole, verb, state, field):
    node = whole.enroll(state, deploy_interface="custom-agent")
    reboot = {"interface": "power", "step": "reboot"}

    reply = whole.ask(node, verb, disable_ramdisk=True, **{
        field: [reboot, {"interface": "deploy", "step": "scrub"}]})
    assert (reply.status_int, whole.row(node).provision_state) == (400, state)
    assert f"/{field}/1 (deploy.scrub): the deploy interface of the node does not offer this step" in fault(reply)
    shown = whole.provision(node, verb, disable_ramdisk=True, **{field: [reboot]})

    assert (shown["provision_state"], shown["power_state"], shown["last_error"]) == (state, "power on", None)
    assert "cleaning_disable_ramdisk" not in shown["driver_internal_info"]
    assert whole.provision(node, verb, **{field: [reboot]})["provision_state"] == f"{verb} wait"
