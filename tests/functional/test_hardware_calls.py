"""Operations on a node's machine by request: their replies, the node's lock, slow BMCs, conductors that die."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import oslo_messaging as messaging
import pytest

from ironic_rules.conductor import hardware_calls, recovery
from ironic_rules.db import nodes
from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import waiting
from ironic_rules.hardware.fake import FakeManagement
from tests.functional.api.conftest import at
from tests.functional.processes import wait_for
from tests.functional.whole import fault, running
from tests.walking import walking


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    options = "[DEFAULT]\nrpc_response_timeout = 3\n[api]\nthreads = 24\n"
    with running(tmp_path_factory.mktemp("calls"), options) as started:
        yield started


def failing(self, task, *args, **named):
    raise BMCError(node=task.node.uuid, reason="it refused a request.")


class Held:
    """A method of an interface that does not return before :meth:`release`."""

    def __init__(self, result=None):
        self.begun, self.end, self.result = threading.Semaphore(0), threading.Event(), result

    def __get__(self, instance, owner):
        return self

    def __call__(self, task, *args, **named):
        self.begun.release()
        assert self.end.wait(60)
        return self.result


def test_the_boot_device_is_set_and_shown(whole):
    node = whole.enroll()
    path = f"/v1/nodes/{node}/management/boot_device"

    assert whole.app.get(path).json == {"boot_device": "pxe", "persistent": False}
    assert "cdrom" in whole.app.get(f"{path}/supported").json["supported_boot_devices"]
    reply = whole.app.put_json(path, {"boot_device": "cdrom", "persistent": True}, headers=at(1))
    assert (reply.status_int, reply.body) == (204, b"")
    assert whole.app.get(path).json == {"boot_device": "cdrom", "persistent": True}
    refused = whole.app.put_json(path, {"boot_device": "tape"})
    assert (refused.status_int, "/boot_device: must be one of" in fault(refused)) == (400, True)
    assert whole.app.put_json(path, {}).status_int == 400
    assert whole.row(node).reservation is None


def test_a_warning_of_an_interface_is_in_the_history(whole, monkeypatch):
    set_device = FakeManagement.set_boot_device

    def warning(self, task, device, persistent=False):
        set_device(self, task, device, persistent)
        task.notices.append("The BMC sets it for one boot only.")

    monkeypatch.setattr(FakeManagement, "set_boot_device", warning)
    node = whole.enroll()
    body = {"boot_device": "cdrom", "persistent": True}

    assert whole.app.put_json(f"/v1/nodes/{node}/management/boot_device", body).status_int == 204

    (entry,) = whole.app.get(f"/v1/nodes/{node}/history?detail=true").json["history"]
    assert entry["event"] == "set_boot_device: Warning: The BMC sets it for one boot only."
    assert (entry["severity"], whole.row(node).last_error) == ("INFO", None)


def test_indicators_are_shown_where_there_are_any_and_none_is_switched(whole):
    node, unable = whole.enroll(), whole.enroll(management_interface="noop")
    indicators = f"/v1/nodes/{node}/management/indicators"
    assert [(one["name"], one["readonly"]) for one in whole.app.get(indicators).json["indicators"]] == [
        ("led-0@chassis", True), ("led@system", True)]
    assert whole.app.get(f"{indicators}/led@system").json == {"state": "ON"}
    for wrong in ("led", "led@nothing"):
        assert whole.app.get(f"{indicators}/{wrong}").status_int == 400
    assert whole.app.put_json(f"{indicators}/led@system", {"state": "OFF"}).status_int == 400
    assert whole.app.get(f"/v1/nodes/{unable}/management/indicators").status_int == 400


def test_an_nmi_is_sent_since_1_29_to_machines_that_take_it(whole):
    node = whole.enroll()
    path = f"/v1/nodes/{node}/management/inject_nmi"

    assert whole.app.put_json(path, {}).status_int == 204
    assert whole.app.put(path).status_int == 204
    assert whole.app.put_json(path, {}, headers=at(28)).status_int == 405
    unable = whole.enroll(management_interface="noop")
    reply = whole.app.put_json(f"/v1/nodes/{unable}/management/inject_nmi", {})
    assert (reply.status_int, "does not support inject_nmi" in fault(reply)) == (400, True)


def test_boot_mode_and_secure_boot_are_changed_since_1_76(whole):
    node = whole.enroll()

    for name, target in (("boot_mode", "bios"), ("secure_boot", True)):
        path = f"/v1/nodes/{node}/states/{name}"
        reply = whole.app.put_json(path, {"target": target})
        assert (reply.status_int, reply.headers["Location"].endswith(f"/v1/nodes/{node}/states")) == (202, True)
        whole.at_rest(node)
        assert whole.app.get(f"/v1/nodes/{node}/states").json[name] == target
        assert whole.app.put_json(path, {"target": "neither"}).status_int == 400
        assert whole.app.put_json(path, {"target": target}, headers=at(75)).status_int == 404
    unable = whole.enroll(management_interface="noop")
    assert whole.app.put_json(f"/v1/nodes/{unable}/states/boot_mode", {"target": "uefi"}).status_int == 400


RAID = {"logical_disks": [{"size_gb": 10, "raid_level": "1", "volume_name": "root", "is_root_volume": True},
                          {"size_gb": "MAX", "raid_level": "5"}]}


def test_a_target_raid_configuration_is_checked_kept_and_created(whole):
    node = whole.enroll()
    path = f"/v1/nodes/{node}/states/raid"

    assert whole.app.put_json(path, RAID, headers=at(12)).status_int == 204
    assert whole.show(node)["target_raid_config"] == RAID
    for wrong, where in (
            ({"logical_disks": []}, "/logical_disks"), ({"logical_disks": None}, "/logical_disks"),
            ({"logical_disks": [{"size_gb": 0, "raid_level": "1"}]}, "/logical_disks/0/size_gb"),
            ({"logical_disks": [{"size_gb": 1, "raid_level": "7"}]}, "/logical_disks/0/raid_level"),
            ({**RAID, "raid": 1}, "/raid: unknown"), ([], "must be an object")):
        reply = whole.app.put_json(path, wrong)
        assert (reply.status_int, where in fault(reply)) == (400, True), fault(reply)
    assert whole.show(node)["target_raid_config"] == RAID
    whole.put(node, provision_state="available")
    shown = whole.provision(node, "active", deploy_steps=[
        {"interface": "raid", "step": "create_configuration", "priority": 150, "args": {}}])
    assert (shown["provision_state"], shown["raid_config"]) == ("active", RAID)
    assert whole.app.put_json(path, {}).status_int == 204
    assert whole.show(node)["target_raid_config"] == {}
    assert whole.app.put_json(path, RAID, headers=at(11)).status_int == 406
    unable = whole.enroll(raid_interface="no-raid")
    reply = whole.app.put_json(f"/v1/nodes/{unable}/states/raid", RAID)
    assert (reply.status_int, "does not support" in fault(reply)) == (404, True)


def test_images_are_inserted_into_virtual_drives_and_ejected(whole):
    node = whole.enroll()
    path, url = f"/v1/nodes/{node}/vmedia", "http://user:pa55@192.0.2.1/a.iso"

    def inserted():
        whole.at_rest(node)
        return {drive["media_types"][0]: drive["image"] for drive in whole.app.get(path).json if drive["inserted"]}

    for kind in ("cdrom", "floppy"):
        assert whole.app.post_json(path, {"device_type": kind, "image_url": url}, headers=at(89)).status_int == 204
        whole.at_rest(node)
    masked = url.replace("pa55", "******")
    assert inserted() == {"cdrom": masked, "floppy": masked}
    assert whole.app.delete(f"{path}?device_types=cdrom").status_int == 204
    assert inserted() == {"floppy": masked}
    assert whole.app.delete_json(path, {"device_types": "cdrom, disk"}).status_int == 204
    assert inserted() == {"floppy": masked}
    assert "/device_types: must be one" in fault(whole.app.delete_json(path, {"device_types": "tape"}))
    assert whole.app.delete(path).status_int == 204
    assert inserted() == {}
    assert "fake_virtual_media" not in whole.show(node)["driver_internal_info"]


@walking("body, where", [
    ({"device_type": "tape", "image_url": "http://a/b"}, "/device_type: must be one of cdrom, disk, floppy"),
    ({"device_type": "cdrom", "image_url": "file:///etc/passwd"}, "/image_url: must be a URL"),
    ({"device_type": "cdrom", "image_url": "http://a/b c"}, "/image_url: must be a URL"),
    ({"device_type": "cdrom", "image_url": "http://a/b", "image_download_source": "swift"},
     "/image_download_source: must be http"),
    ({"device_type": "cdrom"}, "/image_url"),
])
def test_a_wrong_image_is_refused_with_its_place(whole, body, where):
    reply = whole.app.post_json(f"/v1/nodes/{whole.enroll()}/vmedia", body)

    assert (reply.status_int, where in fault(reply)) == (400, True), fault(reply)


def test_virtual_media_are_not_changed_while_a_ramdisk_runs_nor_before_their_version(whole):
    node = whole.enroll("clean wait")
    path, body = f"/v1/nodes/{node}/vmedia", {"device_type": "cdrom", "image_url": "http://192.0.2.1/a.iso"}

    for reply in (whole.app.post_json(path, body), whole.app.delete(path)):
        assert (reply.status_int, "clean wait" in fault(reply)) == (409, True)
    assert whole.app.post_json(path, body, headers=at(88)).status_int == 404
    assert whole.app.get(path, headers=at(92)).status_int == 404
    assert whole.app.delete(f"{path}?device_types=tape").status_int == 400


def test_a_console_is_started_shown_and_stopped(whole):
    node = whole.enroll()
    path = f"/v1/nodes/{node}/states/console"

    assert whole.app.get(path).json == {"console_enabled": False, "console_info": None}
    for enabled, info in ((True, {}), (False, None)):
        reply = whole.app.put_json(path, {"enabled": enabled}, headers=at(1))
        assert (reply.status_int, reply.headers["Location"].endswith(path)) == (202, True)
        assert whole.at_rest(node).console_enabled is enabled
        assert whole.app.get(path).json == {"console_enabled": enabled, "console_info": info}
    unable = whole.enroll(console_interface="no-console")
    reply = whole.app.put_json(f"/v1/nodes/{unable}/states/console", {"enabled": True})
    assert (reply.status_int, "does not support" in fault(reply)) == (400, True)
    assert whole.app.put_json(path, {"enabled": "perhaps"}).status_int == 400


def test_vendor_methods_are_listed_and_called(whole):
    node = whole.enroll()
    path = f"/v1/nodes/{node}/vendor_passthru"

    (name, method), = whole.app.get(f"{path}/methods", headers=at(1)).json.items()
    assert (name, method["http_methods"], method["async"], method["require_exclusive_lock"]) == (
        "send_raw", ["POST"], False, True)
    reply = whole.app.post_json(f"{path}?method=send_raw", {"raw_bytes": "0x00"})
    assert (reply.status_int, reply.json) == (200, None)
    assert whole.app.post_json(f"{path}/send_raw", {"raw_bytes": "0x00"}).status_int == 200
    for reply, text in (
            (whole.app.post_json(f"{path}/send_raw?method=send_raw", {"raw_bytes": "0x00"}), "is required once"),
            (whole.app.post_json(f"{path}?method=send_raw", {}), "/raw_bytes: is required"),
            (whole.app.post_json(f"{path}?method=send_raw", {"raw_bytes": "0x00", "x": 1}), "/x: is not one of raw"),
            (whole.app.put_json(f"{path}?method=send_raw", {"raw_bytes": "0x00"}), "is for POST, not for PUT"),
            (whole.app.get(f"{path}?method=nosuch"), "no vendor method nosuch. Valid: send_raw"),
            (whole.app.post_json(path, {}), "method: names the vendor method")):
        assert (reply.status_int, text in fault(reply)) == (400, True), fault(reply)
    unable = whole.enroll(vendor_interface="no-vendor")
    reply = whole.app.get(f"/v1/nodes/{unable}/vendor_passthru/methods")
    assert (reply.status_int, "does not support vendor" in fault(reply)) == (400, True)


def test_drivers_tell_the_properties_of_logical_disks_and_have_no_vendor_methods(whole):
    told = whole.app.get("/v1/drivers/fake-hardware/raid/logical_disk_properties", headers=at(12)).json
    assert set(told) >= {"size_gb", "raid_level", "is_root_volume", "controller", "physical_disks"}
    assert whole.app.get("/v1/drivers/fake-hardware/vendor_passthru/methods").json == {}
    reply = whole.app.post_json("/v1/drivers/fake-hardware/vendor_passthru?method=x", {})
    assert (reply.status_int, "has no vendor method x" in fault(reply)) == (400, True)
    for below in ("raid/logical_disk_properties", "vendor_passthru/methods", "vendor_passthru?method=x"):
        assert whole.app.get(f"/v1/drivers/nosuch/{below}").status_int == 404


def test_a_failure_goes_to_the_caller_or_to_the_node(whole, monkeypatch):
    node = whole.enroll()
    for name in ("get_boot_device", "set_boot_device", "set_boot_mode"):
        monkeypatch.setattr(FakeManagement, name, failing)

    reply = whole.app.get(f"/v1/nodes/{node}/management/boot_device")
    assert (reply.status_int, fault(reply)) == (502, f"The BMC of node {node}: it refused a request.")
    reply = whole.app.put_json(f"/v1/nodes/{node}/management/boot_device", {"boot_device": "pxe"})
    assert (reply.status_int, whole.at_rest(node).last_error) == (502, None)
    assert whole.app.put_json(f"/v1/nodes/{node}/states/boot_mode", {"target": "bios"}).status_int == 202
    text = f"set_boot_mode failed: The BMC of node {node}: it refused a request. (IR-0502)"
    assert whole.at_rest(node).last_error == text
    assert whole.events(node)[-1] == ("ERROR", text)


def test_a_locked_node_is_read_and_not_changed(whole):
    node = whole.enroll()
    whole.put(node, reservation="another-host")

    assert whole.app.get(f"/v1/nodes/{node}/management/boot_device").status_int == 200
    reply = whole.app.put_json(f"/v1/nodes/{node}/management/boot_device", {"boot_device": "pxe"})
    assert (reply.status_int, "another-host" in fault(reply)) == (409, True)


def test_a_repetition_with_the_same_key_is_not_carried_out_again(whole, monkeypatch):
    node, told = whole.enroll(), []
    monkeypatch.setattr(FakeManagement, "inject_nmi", lambda self, task: told.append(task.node.uuid))

    for _ in range(2):
        reply = whole.app.put_json(f"/v1/nodes/{node}/management/inject_nmi", {}, headers={"Idempotency-Key": "nmi-1"})
        assert reply.status_int == 204

    assert told == [node]


def test_an_operation_that_takes_too_long_continues_and_its_failure_is_kept(whole, monkeypatch):
    node, held = whole.enroll(), Held()
    monkeypatch.setattr(FakeManagement, "set_boot_device", held)

    reply = whole.app.put_json(f"/v1/nodes/{node}/management/boot_device", {"boot_device": "disk"})

    assert (reply.status_int, "It continues" in fault(reply)) == (503, True)
    assert whole.row(node).reservation == "conductor-1"
    held.end.set()
    assert whole.at_rest(node).last_error is None


def test_slow_bmcs_leave_threads_for_other_calls(whole, monkeypatch):
    slow, other = [whole.enroll() for _ in range(9)], whole.enroll()
    held = Held({"boot_device": "pxe", "persistent": False})
    monkeypatch.setattr(FakeManagement, "get_boot_device", held)

    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(whole.app.get, f"/v1/nodes/{node}/management/boot_device") for node in slow[:8]]
        for _ in replies:
            assert held.begun.acquire(timeout=60)
        refused = whole.app.get(f"/v1/nodes/{slow[8]}/management/boot_device")
        assert whole.provision(other, "manage")["provision_state"] == "manageable"
        held.end.set()
        assert {reply.result().status_int for reply in replies} <= {200, 503}

    assert (refused.status_int, "waits for too many BMCs" in fault(refused)) == (503, True)
    assert wait_for("a turn", lambda: whole.app.get(
        f"/v1/nodes/{slow[0]}/management/boot_device").status_int == 200)


def test_one_slow_bmc_leaves_turns_for_others(whole, monkeypatch):
    slow, other = whole.enroll(), whole.enroll()
    path = f"/v1/nodes/{slow}/management/boot_device"
    held = Held({"boot_device": "pxe", "persistent": False})
    monkeypatch.setattr(FakeManagement, "get_boot_device", held)

    with ThreadPoolExecutor(4) as pool:
        replies = [pool.submit(whole.app.get, path) for _ in range(4)]
        for _ in replies:
            assert held.begun.acquire(timeout=60)
        refused = whole.app.get(path)
        served = whole.app.put_json(f"/v1/nodes/{other}/management/inject_nmi", {})
        held.end.set()
        assert {reply.result().status_int for reply in replies} <= {200, 503}

    assert (refused.status_int, f"too often for that of node {slow}" in fault(refused)) == (503, True)
    assert served.status_int == 204


def test_what_only_reads_ends_before_its_caller_gives_up(whole, monkeypatch):
    monkeypatch.setattr(FakeManagement, "get_boot_device", lambda self, task: {"left_s": waiting.left_s()})

    assert whole.app.get(f"/v1/nodes/{whole.enroll()}/management/boot_device").json["left_s"] <= 1


def test_an_api_that_waits_for_slow_bmcs_serves_other_calls(whole, monkeypatch):
    nodes_, other = [whole.enroll() for _ in range(10)], whole.enroll()
    held = Held({"boot_device": "pxe", "persistent": False})
    # The limit of the conductor is reached by several APIs together.
    monkeypatch.setattr(whole.conductor.hardware_turns, "turn", lambda node: contextlib.nullcontext())
    monkeypatch.setattr(FakeManagement, "get_boot_device", held)

    with ThreadPoolExecutor(9) as pool:
        replies = [pool.submit(whole.app.get, f"/v1/nodes/{node}/management/boot_device") for node in nodes_[:9]]
        for _ in replies:
            assert held.begun.acquire(timeout=60)
        refused = whole.app.get(f"/v1/nodes/{nodes_[9]}/management/boot_device")
        assert whole.ask(other, "manage").status_int == 202
        held.end.set()
        assert {reply.result().status_int for reply in replies} <= {200, 503}

    assert refused.status_int == 503
    assert whole.at_rest(other).provision_state == "manageable"


def test_what_a_dead_conductor_began_is_told(whole):
    node = whole.enroll()
    lock = whole.conductor.new_lock(whole.row(node).id)
    whole.db.write(lambda conn: nodes.reserve(conn, lock, "hardware: set_boot_mode"))

    recovery.resume_orphans(whole.conductor)

    wait_for("recovery", lambda: whole.row(node).reservation is None)
    assert "ended during \"hardware: set_boot_mode\"; please repeat" in whole.row(node).last_error


def test_an_older_conductor_is_named_and_nothing_is_done(whole, monkeypatch, caplog):
    node = whole.enroll()
    older = messaging.Target(version="1.1")
    monkeypatch.setattr("ironic_rules.conductor.endpoint.ConductorEndpoint.target", older)

    reply = whole.app.put_json(f"/v1/nodes/{node}/management/inject_nmi", {})

    assert reply.status_int == 503
    assert "needs version 1.2 of their interface for call_hardware; upgrade them" in caplog.text


def test_every_operation_names_a_method_of_its_kind_of_interface():
    from ironic_rules.hardware.base import KINDS

    assert all(hasattr(KINDS[operation.kind], operation.method) for operation in hardware_calls.OPERATIONS.values())
