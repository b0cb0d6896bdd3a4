"""Fast track: a ramdisk that runs on between inspection, cleaning and deployment, over HTTP, in one process."""

from __future__ import annotations

import hashlib

import pytest

from ironic_rules.api.v1 import ramdisk as lookups
from ironic_rules.conductor import heartbeat
from ironic_rules.context import RequestContext
from ironic_rules.exceptions import LookupFailed
from ironic_rules.hardware.fake import FakePower
from ironic_rules.models import states
from tests.functional import agents
from tests.functional.agents import agent
from tests.functional.hardware.bmcs import web_server
from tests.functional.whole import fault, running

CONTENT = b"an image"
#: Names of the commands of a cleaning and of a deployment.
CLEANED = ["clean.get_clean_steps"]
DEPLOYED = ["deploy.get_deploy_steps", "standby.prepare_image", "standby.get_partition_uuids",
            "image.install_bootloader", "standby.sync"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fast-track")
    (folder / "images").mkdir()
    (folder / "images" / "system.raw").write_bytes(CONTENT)
    config = ("[deploy]\nfast_track = true\nimage_url_denied_networks = 127.0.0.2/32\nagent_power_off_timeout = 0\n"
              f"http_url = http://192.0.2.1\nhttp_root = {folder}/published\n")
    with web_server(folder / "images") as url, running(folder, config) as service:
        service.images = url
        yield service


@pytest.fixture
def ramdisk():
    with agent() as found:
        yield found


@pytest.fixture
def switched(monkeypatch):
    """The power states that were requested of machines, in order."""
    found = []
    set_power_state = FakePower.set_power_state

    def noted(power, task, target, timeout_s=None):
        found.append(target)
        set_power_state(power, task, target, timeout_s)

    monkeypatch.setattr(FakePower, "set_power_state", noted)
    return found


def enrolled(whole, **fields):
    image = {"image_source": f"{whole.images}/system.raw", "image_checksum": hashlib.sha256(CONTENT).hexdigest(),
             "image_disk_format": "raw"}
    return whole.enroll(states.MANAGEABLE, deploy_interface="direct", inspect_interface="agent",
                        instance_info=image, **fields)


def inspected(whole, node):
    """Inspect the node; return the token that its ramdisk got for the report."""
    assert whole.provision(node, "inspect")["provision_state"] == states.INSPECTWAIT
    _, body = whole.machine()
    token = whole.callback(node, body).json["config"]["agent_token"]
    assert whole.at_rest(node).provision_state == states.MANAGEABLE
    return token


def beat(whole, node, token, ramdisk):
    """Send a heartbeat; return the status of the reply when the node is at rest again."""
    reply = whole.app.post_json(f"/v1/heartbeat/{node}", {"callback_url": ramdisk.url, "agent_token": token})
    whole.at_rest(node)
    return reply.status_int


def test_the_ramdisk_of_an_inspection_cleans_and_deploys_without_a_reboot(whole, ramdisk, switched, monkeypatch):
    erase = {"step": "erase_devices", "interface": "deploy", "priority": 10, "reboot_requested": False}
    monkeypatch.setitem(agents._SYNCHRONOUS, "clean.get_clean_steps", {
        "clean_steps": {"generic": [erase]}, "hardware_manager_version": {"generic": "1"}})
    node = enrolled(whole)
    token = inspected(whole, node)
    assert beat(whole, node, token, ramdisk) == 202
    begun, before = list(switched), len(whole.events(node))

    # Automated cleaning has the steps that the agent runs by default.
    assert whole.provision(node, "provide")["provision_state"] == states.CLEANWAIT
    ramdisk.end()
    assert beat(whole, node, token, ramdisk) == 202
    available = whole.show(node)
    assert (available["provision_state"], available["power_state"], ramdisk.names()) == (
        states.AVAILABLE, states.POWER_ON, [*CLEANED, "clean.execute_clean_step"])
    waiting = whole.provision(node, "active")
    assert (waiting["provision_state"], switched) == (states.DEPLOYWAIT, begun)
    for _ in range(5):
        ramdisk.end()
        beat(whole, node, token, ramdisk)

    assert begun == [states.REBOOT]
    assert (whole.show(node)["provision_state"], ramdisk.names()[2:]) == (states.ACTIVE, DEPLOYED)
    assert switched[len(begun):] == [states.POWER_OFF, states.POWER_ON]
    assert (whole.row(node).agent_token_hash, beat(whole, node, token, ramdisk)) == (None, 404)
    assert not [text for _, text in whole.events(node)[before:] if "failed" in text]
    assert "agent_stays" not in whole.row(node).driver_internal_info


def test_another_conductor_continues_with_the_next_heartbeat(whole, ramdisk, switched):
    node = enrolled(whole)
    token = inspected(whole, node)
    beat(whole, node, token, ramdisk)
    del switched[:]
    whole.conductor.agent_tokens._tokens.clear()

    assert whole.provision(node, "clean", clean_steps=[
        {"interface": "deploy", "step": "burnin_cpu"}])["provision_state"] == states.CLEANWAIT
    for _ in range(3):
        ramdisk.end()
        beat(whole, node, token, ramdisk)

    shown = whole.show(node)
    assert (shown["provision_state"], shown["last_error"], switched) == (states.MANAGEABLE, None, [])
    assert ramdisk.names() == [*CLEANED, "clean.execute_clean_step"]
    assert beat(whole, node, token, ramdisk) == 202


def test_what_does_not_run_is_booted(whole, ramdisk, switched):
    """An agent that is silent for too long, one without heartbeats, one of a machine that is off, and an option."""
    cases = {"silent": ("deploy", "fast_track_timeout", 0), "off": ("deploy", "fast_track", False)}
    found = {}
    for name in ("silent", "no heartbeat", "off", "power off"):
        node = enrolled(whole)
        token = inspected(whole, node)
        if name != "no heartbeat":
            assert beat(whole, node, token, ramdisk) == 202
        if name == "power off":
            whole.put(node, power_state=states.POWER_OFF)
        del switched[:]
        group, option, value = cases.get(name, ("deploy", "fast_track", True))
        with whole.option(group, option, value):
            state = whole.provision(node, "provide")["provision_state"]
        found[name] = state, list(switched), beat(whole, node, token, ramdisk)

    assert found == dict.fromkeys(found, (states.CLEANWAIT, [states.REBOOT], 404))
    assert ramdisk.names() == []


def test_another_boot_mode_needs_a_reboot(whole, ramdisk, switched):
    node = enrolled(whole, automated_clean=False)
    token = inspected(whole, node)
    whole.provision(node, "provide")
    assert beat(whole, node, token, ramdisk) == 202
    del switched[:]

    whole.put(node, properties={"capabilities": "boot_mode:bios"})
    assert whole.provision(node, "active")["provision_state"] == states.DEPLOYWAIT
    assert (switched, beat(whole, node, token, ramdisk)) == ([states.REBOOT], 404)


def test_a_token_is_of_one_node_and_ends_with_the_ramdisk(whole, ramdisk):
    node, other = enrolled(whole), enrolled(whole)
    token, others = inspected(whole, node), inspected(whole, other)
    assert beat(whole, node, token, ramdisk) == 202

    assert (beat(whole, node, others, ramdisk), beat(whole, other, token, ramdisk)) == (404, 404)
    reply = whole.app.post_json(f"/v1/heartbeat/{node}", {
        "callback_url": "http://192.0.2.99:9999", "agent_token": token})
    assert (reply.status_int, "must have the host of the heartbeats before" in fault(reply)) == (400, True)
    reply = whole.app.post_json(f"/v1/heartbeat/{other}", {
        "callback_url": "http://127.0.0.2:9999", "agent_token": others})
    assert reply.status_int == 400
    assert whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"] == "******"
    for target in ("rebooting", "power off"):
        assert whole.app.put_json(f"/v1/nodes/{other}/states/power", {"target": target}).status_int == 202
        whole.at_rest(other)
        assert beat(whole, other, others, ramdisk) == 404
        others = whole.app.get(f"/v1/lookup?node_uuid={other}").json["config"]["agent_token"]
    # A new inspection, and a failed one, end it, too.
    whole.provision(node, "inspect")
    assert beat(whole, node, token, ramdisk) == 404
    again = whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]
    assert beat(whole, node, again, ramdisk) == 202
    assert whole.provision(node, "abort")["provision_state"] == states.INSPECTFAIL
    assert (beat(whole, node, again, ramdisk), whole.show(node)["power_state"]) == (404, states.POWER_OFF)


def test_a_machine_that_stays_on_without_fast_track_is_heard_and_booted_again(whole, ramdisk, switched):
    node = enrolled(whole, driver_info={"fast_track": "false"})
    with whole.option("inspector", "power_off", False):
        token = inspected(whole, node)
    del switched[:]

    assert beat(whole, node, token, ramdisk) == 202
    assert whole.row(node).driver_internal_info["agent_last_heartbeat"]
    assert whole.app.get(f"/v1/lookup?node_uuid={node}").status_int == 404
    assert whole.provision(node, "provide")["provision_state"] == states.CLEANWAIT
    assert (switched, beat(whole, node, token, ramdisk)) == ([states.REBOOT], 404)


def test_an_agent_that_was_started_by_others_is_found_from_enroll_on(whole, ramdisk, switched):
    node = whole.enroll(deploy_interface="direct")
    token = whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]
    whole.app.put_json(f"/v1/nodes/{node}/states/power", {"target": "power on"})
    whole.at_rest(node)
    assert beat(whole, node, token, ramdisk) == 202
    del switched[:]

    assert whole.provision(node, "manage")["provision_state"] == states.MANAGEABLE
    assert whole.provision(node, "provide")["provision_state"] == states.AVAILABLE
    assert (ramdisk.names(), switched) == (CLEANED, [])


def test_a_node_that_nobody_has_managed_gets_no_token(whole, ramdisk):
    node = whole.enroll(deploy_interface="direct")
    whole.put(node, auto_discovered=True)
    token = whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]

    assert (beat(whole, node, token, ramdisk), whole.row(node).agent_token_hash) == (404, None)


def test_a_value_that_is_no_boolean_is_reported(whole):
    node = enrolled(whole, driver_info={"fast_track": "perhaps"})

    result = whole.app.get(f"/v1/nodes/{node}/validate").json
    assert [result[kind]["reason"] for kind in ("deploy", "inspect")] == [
        "/driver_info/fast_track: must be true or false"] * 2


def test_the_token_has_ended_before_the_machine_is_switched(whole, ramdisk, monkeypatch):
    """A conductor that is killed meanwhile leaves none to an agent that has ended."""
    node = enrolled(whole)
    assert beat(whole, node, inspected(whole, node), ramdisk) == 202
    found = []
    monkeypatch.setattr(FakePower, "set_power_state", lambda *_args, **_named: found.append(whole.row(node)))
    whole.app.put_json(f"/v1/nodes/{node}/states/power", {"target": "rebooting"})
    whole.at_rest(node)
    assert [(row.agent_token_hash, "agent_url" in row.driver_internal_info) for row in found] == [(None, False)]


def test_a_denied_address_is_refused_while_the_node_waits_for_its_report(whole):
    """The next operation calls the agent at the address that it has sent during the inspection."""
    node = enrolled(whole)
    whole.provision(node, "inspect")
    token = whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]
    reply = whole.app.post_json(f"/v1/heartbeat/{node}", {
        "callback_url": "http://127.0.0.2:9999", "agent_token": token})
    assert (reply.status_int, "agent_url" in whole.row(node).driver_internal_info) == (400, False)


def test_a_heartbeat_whose_token_has_ended_on_its_way_is_refused(whole, ramdisk):
    node = enrolled(whole)
    token = inspected(whole, node)
    whole.put(node, agent_token_hash=None)
    with pytest.raises(LookupFailed):
        heartbeat.heartbeat(whole.conductor, RequestContext(), node, ramdisk.url, None, {"agent_token": token})
    assert "agent_url" not in whole.row(node).driver_internal_info


def test_an_instance_gets_no_token(whole, ramdisk, switched, monkeypatch):
    """Whether it is deployed or adopted, and looks up at the moment at which the deployment ends."""
    for verb in ("active", "adopt"):
        node = enrolled(whole, automated_clean=False)
        token = inspected(whole, node)
        assert beat(whole, node, token, ramdisk) == 202
        if verb == "active":
            whole.provision(node, "provide")
            whole.app.patch_json(f"/v1/nodes/{node}", [
                {"op": "replace", "path": "/deploy_interface", "value": "fake"}])
        assert whole.provision(node, verb)["provision_state"] == states.ACTIVE
        assert (whole.row(node).agent_token_hash, beat(whole, node, token, ramdisk)) == (None, 404)
        assert whole.app.get(f"/v1/lookup?node_uuid={node}").status_int == 404

        def ends(found, node=node):
            whole.put(node, provision_state=states.ACTIVE)
            return False

        whole.put(node, provision_state=states.DEPLOYING)
        with monkeypatch.context() as patched:
            patched.setattr(lookups, "is_unapproved", ends)
            assert whole.app.get(f"/v1/lookup?node_uuid={node}").status_int == 404
        assert whole.row(node).agent_token_hash is None
