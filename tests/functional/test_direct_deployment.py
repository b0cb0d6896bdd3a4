"""``direct`` deployments over HTTP, in one process, with an agent that records what it is told."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json

import pycdlib
import pytest

from ironic_rules.hardware.agent import config_drive
from ironic_rules.hardware.fake import FakeBoot, FakeManagement, FakePower
from tests.functional.agents import agent
from tests.functional.hardware.bmcs import web_server
from tests.functional.whole import fault, running
from tests.walking import walking

CONTENT = b"an image"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
CORE = ["deploy.deploy", "deploy.write_image", "deploy.prepare_instance_boot", "deploy.tear_down_agent",
        "deploy.switch_to_tenant_network", "deploy.boot_instance"]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """The URL of a web server with an image."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "system.raw").write_bytes(CONTENT)
    with web_server(folder) as url:
        yield url


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("direct")
    (folder / "allowed").mkdir()
    (folder / "allowed" / "system.raw").write_bytes(CONTENT)
    (folder / "secret.raw").write_bytes(CONTENT)
    (folder / "allowed" / "leads-out.raw").symlink_to(folder / "secret.raw")
    config = ("[deploy]\nimage_url_denied_networks = 127.0.0.2/32\nagent_power_off_timeout = 0\n"
              f"http_url = http://192.0.2.1\nhttp_root = {folder}/published\n")
    with running(folder, f"[conductor]\nfile_url_allowed_paths = {folder}/allowed\n{config}") as service:
        service.folder = folder
        yield service


@pytest.fixture
def ramdisk():
    with agent() as found:
        yield found


def enrolled(whole, images, *, state="available", mode="uefi", **instance_info):
    """Return an available node with an image."""
    node = whole.enroll(state, deploy_interface="direct", automated_clean=False,
                        properties={"capabilities": f"boot_mode:{mode}"})
    image = {"image_source": f"{images}/system.raw", "image_checksum": SHA256, "image_disk_format": "raw"}
    whole.put(node, instance_info={key: value for key, value in {**image, **instance_info}.items()
                                   if value is not None})
    return node


def beat(whole, node, ramdisk, token=None):
    """Send a heartbeat of the node's ramdisk; return its token."""
    token = token or whole.app.get(f"/v1/lookup?node_uuid={node}").json["config"]["agent_token"]
    body = {"callback_url": ramdisk.url, "agent_token": token}
    assert whole.app.post_json(f"/v1/heartbeat/{node}", body).status_int == 202
    whole.at_rest(node)
    return token


def deployed(whole, node, ramdisk, **arguments):
    """Deploy the node, with heartbeats until it no longer waits; return it."""
    assert whole.provision(node, "active", **arguments)["provision_state"] == "wait call-back"
    token = None
    for _ in range(10):
        token = beat(whole, node, ramdisk, token)
        ramdisk.end()
        if whole.row(node).provision_state != "wait call-back":
            return whole.show(node)
    raise AssertionError(whole.events(node))


def finished(whole, node):
    return [event.split()[2] for _, event in whole.events(node) if " finished after " in event]


@pytest.fixture
def switched(monkeypatch):
    """The power states that were requested of the machine, in order."""
    found = []
    set_power_state = FakePower.set_power_state

    def noted(power, task, target, timeout_s=None):
        found.append(target)
        set_power_state(power, task, target, timeout_s)

    monkeypatch.setattr(FakePower, "set_power_state", noted)
    return found


def test_an_image_is_written_and_booted(whole, images, ramdisk, switched, monkeypatch):
    node = enrolled(whole, images, root_device={"name": "/dev/sda"})
    monkeypatch.setattr(FakePower, "get_power_state", lambda power, task: (
        "power off" if "standby.power_off" in ramdisk.names() else "power on"))

    with whole.option("deploy", "agent_power_off_timeout", 60):
        shown = deployed(whole, node, ramdisk)

    assert (shown["provision_state"], shown["last_error"], shown["power_state"]) == ("active", None, "power on")
    assert finished(whole, node) == CORE
    assert ramdisk.names() == [
        "deploy.get_deploy_steps", "standby.prepare_image", "standby.get_partition_uuids", "image.install_bootloader",
        "standby.sync", "standby.power_off"]
    assert ramdisk.parameters("standby.prepare_image") == {"image_info": {
        "id": "system.raw", "urls": [f"{images}/system.raw"], "node_uuid": node, "image_type": "whole-disk",
        "checksum": SHA256, "disk_format": "raw", "stream_raw_images": True, "deploy_boot_mode": "uefi",
        "boot_option": "local"}}
    assert ramdisk.parameters("image.install_bootloader") == {
        "root_uuid": None, "efi_system_part_uuid": None, "target_boot_mode": "uefi"}
    assert ramdisk.parameters("deploy.get_deploy_steps")["node"]["instance_info"]["root_device"] == {
        "name": "/dev/sda"}
    assert shown["driver_internal_info"]["fake_boot_device"] == {"boot_device": "disk", "persistent": True}
    assert not [key for key in shown["driver_internal_info"] if key.startswith(("agent_url", "agent_last_command"))]
    assert switched == ["rebooting", "power off", "power on"]


@pytest.mark.parametrize(("settings", "last", "expected"), [
    ({}, ["standby.run_image"], ["rebooting", "power on"]),
    ({"deploy_forces_oob_reboot": True}, [], ["rebooting", "rebooting", "power on"]),
])
def test_a_machine_in_bios_mode_whose_power_must_stay_on(whole, images, ramdisk, switched, settings, last, expected):
    node = enrolled(whole, images, mode="bios")
    whole.put(node, disable_power_off=True, driver_info={"force_persistent_boot_device": "Never", **settings})

    shown = deployed(whole, node, ramdisk)

    assert (shown["provision_state"], shown["last_error"], switched) == ("active", None, expected)
    assert ramdisk.names() == ["deploy.get_deploy_steps", "standby.prepare_image", "standby.sync", *last]
    assert shown["driver_internal_info"]["fake_boot_device"] == {"boot_device": "disk", "persistent": False}


def test_a_ramdisk_that_does_not_switch_the_machine_off_is_no_obstacle(whole, images, ramdisk):
    node = enrolled(whole, images)

    with whole.option("deploy", "agent_power_off_timeout", 1):
        shown = deployed(whole, node, ramdisk)

    assert (shown["provision_state"], ramdisk.names()[-1]) == ("active", "standby.power_off")


def test_a_checksum_that_does_not_match_fails_the_deployment(whole, images, ramdisk, monkeypatch):
    undone = []
    monkeypatch.setattr(FakeBoot, "clean_up_ramdisk", lambda boot, task: undone.append(task.node.uuid))
    node = enrolled(whole, images)
    ramdisk.errors["standby.prepare_image"] = "Image failed to verify against checksum"

    shown = deployed(whole, node, ramdisk)

    assert (shown["provision_state"], shown["power_state"]) == ("deploy failed", "power off")
    assert shown["last_error"] == ("Deploy step deploy.write_image (2 of 6, code) failed: The agent reports: Image "
                                   "failed to verify against checksum (FAILED) (IR-2087)")
    assert undone == [node]


@pytest.mark.parametrize("verb", ["active", "clean"])
def test_an_agent_on_another_host_than_before_gets_neither_the_token_nor_what_is_sent_to_agents(whole, images, ramdisk,
                                                                                               verb):
    node = enrolled(whole, images, state="available" if verb == "active" else "manageable")
    # Of a ramdisk before, which may have had another address.
    whole.put(node, driver_internal_info={"agent_url": "http://192.0.2.1:9999"})
    steps = {"clean_steps": [{"interface": "deploy", "step": "burnin_cpu", "args": {}}]} if verb == "clean" else {}
    waits = whole.provision(node, verb, **steps)["provision_state"]
    token = beat(whole, node, ramdisk)

    with agent() as other:
        url = other.url.replace("127.0.0.1", "localhost")
        reply = whole.app.post_json(f"/v1/heartbeat/{node}", {"callback_url": url, "agent_token": token})
        row = whole.at_rest(node)

    assert (reply.status_int, other.asked) == (400, [])
    assert "/callback_url: must have the host of the heartbeats before" in fault(reply)
    assert (row.provision_state, row.driver_internal_info["agent_url"]) == (waits, ramdisk.url)
    beat(whole, node, ramdisk, token)


def test_a_command_that_was_started_before_a_conductor_died_is_not_started_again(whole, images, ramdisk):
    node = enrolled(whole, images)
    whole.provision(node, "active")
    token = beat(whole, node, ramdisk)
    internal = dict(whole.row(node).driver_internal_info)
    whole.put(node, driver_internal_info={key: value for key, value in internal.items()
                                          if key != "agent_command_started"})

    beat(whole, node, ramdisk, token)
    ramdisk.end()
    beat(whole, node, ramdisk, token)

    assert ramdisk.names().count("standby.prepare_image") == 1
    assert "deploy.write_image" in finished(whole, node)


def test_a_ramdisk_that_was_booted_again_fails_the_deployment(whole, images, ramdisk):
    node = enrolled(whole, images)
    whole.provision(node, "active")
    token = beat(whole, node, ramdisk)
    ramdisk.restart()

    beat(whole, node, ramdisk, token)

    row = whole.at_rest(node)
    assert (row.provision_state, "no longer knows the command" in row.last_error) == ("deploy failed", True)


@pytest.mark.parametrize("verb", ["deleted", "rebuild"])
def test_a_deployed_node_can_be_torn_down_and_rebuilt(whole, images, ramdisk, verb):
    node = enrolled(whole, images, state="active")

    shown = whole.provision(node, verb)

    expected = {"deleted": ("available", "power off"), "rebuild": ("wait call-back", "power on")}
    assert (shown["provision_state"], shown["power_state"]) == expected[verb]


def test_a_boot_mode_that_the_machine_does_not_have_and_cannot_get_is_refused(whole, images, monkeypatch):
    monkeypatch.setattr(FakeManagement, "get_supported_boot_modes", lambda management, task: [])
    node = enrolled(whole, images, capabilities={"boot_mode": "bios"})

    reply = whole.ask(node, "active")

    assert (reply.status_int, whole.row(node).provision_state) == (400, "available"), reply.text
    assert "the boot mode of the machine is not bios" in fault(reply)


def test_a_config_drive_is_made_from_an_object(whole, images, ramdisk):
    node = enrolled(whole, images)
    whole.put(node, name="machine-7")

    deployed(whole, node, ramdisk, configdrive={
        "meta_data": {"hostname": "seven"}, "user_data": "#!/bin/sh\n", "network_data": {"links": []}})

    written = gzip.decompress(base64.b64decode(ramdisk.parameters("standby.prepare_image")["configdrive"]))
    iso = pycdlib.PyCdlib()
    iso.open_fp(io.BytesIO(written))
    assert iso.pvd.volume_identifier.strip() == b"config-2"

    def content(name):
        out = io.BytesIO()
        iso.get_file_from_iso_fp(out, rr_path=f"/openstack/latest/{name}")
        return out.getvalue().decode()

    assert json.loads(content("meta_data.json")) == {"uuid": node, "name": "machine-7", "hostname": "seven"}
    assert content("user_data") == "#!/bin/sh\n"
    assert json.loads(content("network_data.json")) == {"links": []}


def test_a_config_drive_that_is_given_is_passed_on(whole, images, ramdisk):
    drive = base64.b64encode(gzip.compress(b"iso")).decode()
    node = enrolled(whole, images)

    deployed(whole, node, ramdisk, configdrive=drive)

    assert ramdisk.parameters("standby.prepare_image")["configdrive"] == drive
    assert drive not in whole.app.get(f"/v1/nodes/{node}").text


def test_a_file_of_the_conductor_is_served_to_the_agent(whole, images, ramdisk):
    node = enrolled(whole, images, image_source=f"file://{whole.folder}/allowed/system.raw")
    published = whole.folder / "published" / "images" / node

    whole.provision(node, "active")
    token = beat(whole, node, ramdisk)

    assert published.read_bytes() == CONTENT
    assert ramdisk.parameters("standby.prepare_image")["image_info"]["urls"] == [f"http://192.0.2.1/images/{node}"]
    for _ in range(2):
        ramdisk.end()
        beat(whole, node, ramdisk, token)
    assert whole.row(node).provision_state == "active"
    assert not published.is_symlink()


HUGE = base64.b64encode(gzip.compress(bytes(100 * 2**20), 1)).decode()


@walking("changed, arguments, where", [
    ({"image_source": None}, {}, "/instance_info/image_source: is missing"),
    ({"image_source": "cc2ab7b5-4a52-4d5c-9ae5-7e4b4a6f1b7d"}, {}, "/instance_info/image_source: is an image of"),
    ({"image_source": "ftp://192.0.2.1/x"}, {}, "/instance_info/image_source: must be a URL"),
    ({"image_source": "{images}/missing.raw"}, {}, "/instance_info/image_source: the image cannot be loaded: "),
    ({"image_source": "http://127.0.0.1:1/x"}, {}, "image_source: the image cannot be loaded: no answer"),
    ({"image_source": "http://127.0.0.2/x"}, {}, "127.0.0.2/32"),
    ({"image_source": "file:///etc/passwd"}, {}, "[conductor]file_url_allowed_paths"),
    ({"image_source": "FILE:///etc/passwd"}, {}, "[conductor]file_url_allowed_paths"),
    ({"image_source": "file://images/x"}, {}, "/instance_info/image_source: must be file:///PATH"),
    ({"image_source": "file:///" + "x" * 4096}, {}, "/instance_info/image_source: must be file:///PATH"),
    ({"image_http_proxy": 0}, {}, "/instance_info/image_http_proxy: must be a URL"),
    ({"image_source": "file:///etc/no-such-file"}, {}, "[conductor]file_url_allowed_paths"),
    ({"image_source": "file://{folder}/allowed/%00"}, {}, "[conductor]file_url_allowed_paths"),
    ({"image_source": "file://{folder}/allowed/leads-out.raw"}, {}, "[conductor]file_url_allowed_paths"),
    ({"image_checksum": None}, {}, "/instance_info/image_checksum: is missing"),
    ({"image_os_hash_algo": "sha512"}, {}, "/instance_info/image_os_hash_value: is missing"),
    ({"image_os_hash_algo": "sha512", "image_os_hash_value": "d" * 64}, {}, "/instance_info/image_os_hash_value: "),
    ({"image_disk_format": "vmdk"}, {}, "/instance_info/image_disk_format: must be raw or qcow2"),
    ({"image_type": "partition"}, {}, "/instance_info/image_type: "),
    ({"kernel": "http://192.0.2.1/k"}, {}, "/instance_info/kernel: partition images"),
    ({"root_device": {"colour": "red"}}, {}, "/instance_info/root_device/colour"),
    ({"root_device": {"size": "<range-in> [ 1 900 ]"}}, {}, "/instance_info/root_device/size"),
    ({"capabilities": {"secure_boot": "true"}}, {}, "/instance_info/capabilities/secure_boot: "),
    ({"capabilities": {"boot_option": "netboot"}}, {}, "/instance_info/capabilities/boot_option: "),
    ({"capabilities": '{{"boot_option": "netboot"}}'}, {}, "/instance_info/capabilities/boot_option: "),
    ({"capabilities": "{{boot_mode"}, {}, "/instance_info/capabilities: the capabilities are no valid JSON"),
    ({}, {"configdrive": "not base64!"}, "/instance_info/configdrive: is neither"),
    ({}, {"configdrive": HUGE}, "/instance_info/configdrive: is larger than 64 MiB"),
    ({}, {"configdrive": {"meta_data": {}, "disk": {}}}, "/instance_info/configdrive/disk: is not one of"),
    ({}, {"configdrive": {"user_data": 7}}, "/instance_info/configdrive/user_data: must be"),
])
def test_what_can_not_be_written_is_refused_before_anything_starts(whole, images, changed, arguments, where):
    changed = {key: value.format(images=images, folder=whole.folder) if isinstance(value, str) else value
               for key, value in changed.items()}
    node = enrolled(whole, images, **changed)

    reply = whole.ask(node, "active", **arguments)

    assert (reply.status_int, whole.row(node).provision_state) == (400, "available"), reply.text
    assert where in fault(reply)
    if not arguments:
        shown = whole.app.get(f"/v1/nodes/{node}/validate").json["deploy"]
        assert (shown["result"], where in shown["reason"]) == (False, True)
    assert whole.row(node).power_state == "power off"


@pytest.mark.parametrize(("changed", "key"), [
    ({"image_checksum": "d" * 32}, "image_checksum"),
    ({"image_os_hash_algo": "md5", "image_os_hash_value": "d" * 32}, "image_os_hash_algo"),
])
def test_md5_is_accepted_with_a_warning_unless_it_is_forbidden(whole, images, changed, key):
    node = enrolled(whole, images, **changed)

    def validated():
        return whole.app.get(f"/v1/nodes/{node}/validate").json["deploy"]

    shown = validated()
    with whole.option("deploy", "allow_md5_checksum", False):
        refused = validated()

    assert shown["result"] is True
    assert [(warning["kind"], warning["pointer"]) for warning in shown["warnings"]] == [
        ("instance", f"/instance_info/{key}")]
    assert (refused["result"], f"/instance_info/{key}: " in refused["reason"]) == (False, True)


def test_a_config_drive_waits_for_those_of_others_and_not_for_ever(whole, images, monkeypatch):
    monkeypatch.setattr(config_drive, "PATIENCE_S", 0.01)
    node = enrolled(whole, images)

    with config_drive._one:
        reply = whole.ask(node, "active", configdrive=base64.b64encode(gzip.compress(b"iso")).decode())

    assert (reply.status_int, reply.headers.get("Retry-After")) == (503, "10"), reply.text
    assert whole.row(node).provision_state == "available"


def test_of_a_config_drive_of_100_mb_the_limit_of_bodies_answers_before_its_own(whole, images):
    """A drive that does not compress is too large and refused unread; one that does is unpacked to 64 MiB."""
    node = enrolled(whole, images)
    limit = whole.conf.api.max_json_body_size
    path = f"/v1/nodes/{node}/states/provision"

    def ask(characters: int):
        return whole.app.put_json(path, {"target": "active", "configdrive": "A" * characters}, expect_errors=True)

    over = ask(100 * 10**6)
    below = ask(limit - 1000)

    assert (over.status_int, str(limit) in fault(over)) == (413, True), over.text
    # 100 MiB of zeros are a small request.
    bomb = whole.ask(node, "active", configdrive=HUGE)
    assert (below.status_int, bomb.status_int) == (400, 400), (below.text, bomb.text)
    assert fault(below).count("/instance_info/configdrive: is neither") == 1
    assert "/instance_info/configdrive: is larger than 64 MiB" in fault(bomb)
    shown = whole.show(node)
    assert (shown["provision_state"], shown["last_error"], shown["instance_info"].get("configdrive")) == (
        "available", None, None)
    assert whole.row(node).power_state == "power off"


@pytest.mark.parametrize("drop", ["unread", "done"])
def test_requests_that_the_agent_does_not_answer(whole, images, ramdisk, monkeypatch, drop):
    monkeypatch.setattr(FakePower, "get_power_state", lambda power, task: (
        "power off" if "standby.power_off" in ramdisk.names() else "power on"))
    node = enrolled(whole, images)
    whole.provision(node, "active")
    token, silent = None, []

    # In its turn, each request is the one that is dropped.
    with whole.option("deploy", "agent_power_off_timeout", 60):
        for count in range(40):
            ramdisk.drops[:] = [*[None] * (count % 4), drop]
            token = beat(whole, node, ramdisk, token)
            ramdisk.end()
            if whole.row(node).provision_state != "wait call-back":
                break
            silent.append("agent_silent_since" in whole.row(node).driver_internal_info)

    shown = whole.show(node)
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert set(silent) == {True, False}
    assert finished(whole, node) == CORE
    # What is not safe to repeat has taken effect once.
    assert [ramdisk.names().count(name) for name in (
        "standby.prepare_image", "image.install_bootloader", "standby.power_off")] == [1, 1, 1]
    assert "agent_silent_since" not in shown["driver_internal_info"]


@pytest.mark.parametrize("verb", ["clean", "service"])
def test_a_step_of_the_agent_survives_requests_without_answer(whole, images, ramdisk, verb):
    node = enrolled(whole, images, state="manageable" if verb == "clean" else "active")
    step = {"interface": "deploy", "step": "burnin_cpu", "args": {}}
    waits, ends = whole.provision(node, verb, **{f"{verb}_steps": [step]})["provision_state"], {"manageable", "active"}
    assert waits == f"{verb} wait"
    token = None
    for count in range(20):
        ramdisk.drops[:] = [*[None] * (count % 3), ("unread", "done")[count % 2]]
        token = beat(whole, node, ramdisk, token)
        ramdisk.end()
        if whole.row(node).provision_state != waits:
            break

    shown = whole.show(node)
    assert (shown["provision_state"] in ends, shown["last_error"]) == (True, None)
    assert ramdisk.names().count(f"{verb}.execute_{verb}_step") == 1


def test_an_agent_that_no_longer_answers_fails_its_step(whole, images, ramdisk):
    node = enrolled(whole, images)
    whole.provision(node, "active")
    token = beat(whole, node, ramdisk)
    ramdisk.drops[:] = ["unread"] * 9
    beat(whole, node, ramdisk, token)
    first = whole.row(node).driver_internal_info["agent_silent_since"]
    beat(whole, node, ramdisk, token)
    assert (whole.row(node).provision_state, whole.row(node).driver_internal_info["agent_silent_since"]) == (
        "wait call-back", first)

    with whole.option("deploy", "agent_silence_timeout", 0):
        beat(whole, node, ramdisk, token)

    shown = whole.show(node)
    assert shown["provision_state"] == "deploy failed"
    assert shown["last_error"].startswith("Deploy step deploy.write_image (2 of 6, code) failed: The agent does not "
                                          "respond (RemoteProtocolError). It has not answered for ")
    assert "[deploy]agent_silence_timeout" in shown["last_error"]


def test_an_agent_is_told_how_to_erase_disks(whole, images, ramdisk):
    node = enrolled(whole, images, state="manageable")
    with whole.option("deploy", "shred_random_overwrite_iterations", 3), whole.option(
            "deploy", "enable_nvme_secure_erase", False):
        whole.provision(node, "clean", clean_steps=[{"interface": "deploy", "step": "burnin_cpu", "args": {}}])
    told = {"agent_continue_if_secure_erase_failed": False, "agent_enable_ata_secure_erase": True,
            "agent_enable_nvme_secure_erase": False, "agent_erase_devices_iterations": 3,
            "agent_erase_devices_zeroize": True, "agent_erase_skip_read_only": False, "disk_erasure_concurrency": 4}

    # The agent reads them of the answer to its lookup, and of the node that comes with each command.
    looked_up = whole.app.get(f"/v1/lookup?node_uuid={node}").json
    assert looked_up["node"]["driver_internal_info"] == told
    token = beat(whole, node, ramdisk, looked_up["config"]["agent_token"])
    assert ramdisk.parameters("clean.execute_clean_step")["node"]["driver_internal_info"].items() >= told.items()
    ramdisk.end()
    beat(whole, node, ramdisk, token)

    assert whole.show(node)["provision_state"] == "manageable"
    assert not told.keys() & whole.show(node)["driver_internal_info"].keys()


def test_a_hint_that_the_agent_does_not_know_is_refused_when_it_is_set(whole):
    ranged = {"root_device": {"size": "<range-in> ( 100 500 )"}}

    def patched(node, path, value):
        reply = whole.app.patch_json(f"/v1/nodes/{node}", [{"op": "add", "path": path, "value": value}])
        return reply.status_int, "ironic-python-agent has no <range-in>" in reply.text

    created = whole.app.post_json("/v1/nodes", {
        "driver": "fake-hardware", "deploy_interface": "direct", "properties": ranged})
    other = whole.enroll("manageable", deploy_interface="fake", properties=ranged)
    agents = whole.enroll("manageable", deploy_interface="direct", properties={})
    changes = [patched(agents, "/properties/root_device", ranged["root_device"]),
               patched(agents, "/instance_info/root_device", ranged["root_device"]),
               patched(other, "/deploy_interface", "direct")]
    whole.put(agents, properties=ranged)

    assert created.status_int == 400
    assert "/properties/root_device/size: ironic-python-agent has no <range-in>" in fault(created)
    assert changes == [(400, True)] * 3
    # A stored hint prevents no other change.
    assert patched(agents, "/properties/rack", "7") == patched(other, "/properties/rack", "7") == (200, False)
