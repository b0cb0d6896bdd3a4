"""URLs that lead to the conductor itself or to its neighbours are refused wherever the API accepts a URL."""

from __future__ import annotations

import pytest

from tests.functional.test_cleaning import token_of
from tests.functional.test_instance_ramdisks import MAC, NetworkBooted
from tests.functional.whole import fault, running
from tests.hostile_urls import HOSTILE
from tests.unit.hardware.recording import serving

SHA256 = "d" * 64
DIRECT = {"image_source": "http://10.0.0.1/x", "image_checksum": SHA256}
HASH = {"image_source": "http://10.0.0.1/x", "image_os_hash_algo": "sha256"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    config = ("[DEFAULT]\nenabled_boot_interfaces = ipxe,fake\nenabled_rescue_interfaces = agent,fake,no-rescue\n"
              "[inspection_rules]\napi_call_allowed_hosts = cmdb.example.org\n"
              f"[deploy]\nhttp_url = http://192.0.2.1\nhttp_root = {folder}/published\n")
    with running(folder, config, {"network-booted": NetworkBooted}) as service:
        yield service


@pytest.fixture(scope="module")
def loopback():
    """A server on loopback, as that of another service of the conductor's machine."""
    with serving() as server:
        yield server


def deploying(place, **fields):
    """Return a function that deploys a node whose ``instance_info`` has a URL at ``place``."""
    def ready(whole):
        node = whole.enroll("available", automated_clean=False, **fields)
        if fields.get("driver"):
            for port in whole.app.get("/v1/ports").json["ports"]:
                whole.app.delete(f"/v1/ports/{port['uuid']}")
            whole.app.post_json("/v1/ports", {"node_uuid": node, "address": MAC})

        def ask(url):
            base = {} if fields.get("driver") else HASH if "hash" in place else DIRECT
            others = {"kernel": "tftp://10.0.0.1/k", "ramdisk": "tftp://10.0.0.1/r"} if place in (
                "kernel", "ramdisk") else {}
            whole.put(node, instance_info={**base, **others, place: url})
            reply = whole.ask(node, "active")
            assert whole.row(node).provision_state == "available", reply.text
            return reply

        return ask

    return ready


def requested_config_drive(whole):
    node = whole.enroll("available", automated_clean=False, deploy_interface="direct", instance_info=DIRECT)
    return lambda url: whole.ask(node, "active", configdrive=url)


def virtual_media(whole):
    node = whole.enroll()
    return lambda url: whole.app.post_json(f"/v1/nodes/{node}/vmedia", {"device_type": "cdrom", "image_url": url})


def callback(whole):
    node = whole.enroll("clean wait")
    token = token_of(whole, node)
    return lambda url: whole.app.post_json(f"/v1/heartbeat/{node}", {"callback_url": url, "agent_token": token})


def rule(whole):
    return lambda url: whole.app.post_json(
        "/v1/inspection_rules", {"actions": [{"op": "api-call", "args": {"url": url}}]})


DISK, NETWORK = {"deploy_interface": "direct"}, {"driver": "network-booted", "deploy_interface": "ramdisk"}
PLACES = {
    **{place: deploying(place, **DISK) for place in (
        "image_source", "image_checksum", "image_os_hash_value", "configdrive", "image_http_proxy",
        "image_https_proxy")},
    **{place: deploying(place, **NETWORK) for place in ("boot_iso", "kernel", "ramdisk")},
    "configdrive of the request": requested_config_drive, "image_url": virtual_media, "callback_url": callback,
    "api-call": rule,
}


@pytest.mark.parametrize("place", PLACES)
def test_no_hostile_url_is_accepted_or_requested(whole, loopback, place):
    loopback.asked.clear()
    ask = PLACES[place](whole)

    accepted = []
    for text in HOSTILE:
        reply = ask(text.format(port=loopback.port))
        if reply.status_int != 400 or not fault(reply):
            accepted.append((text, reply.status_int, reply.text))

    assert (accepted, loopback.asked) == ([], [])


def test_the_same_urls_are_requested_if_the_operator_denies_no_network(whole, loopback):
    loopback.asked.clear()
    node, url = whole.enroll("available", automated_clean=False, **DISK), f"HTTP://127.0.0.1:{loopback.port}"
    whole.put(node, instance_info={"image_source": f"{url}/i", "image_checksum": f"{url}/c", "configdrive": f"{url}/d"})

    with whole.option("deploy", "image_url_denied_networks", []):
        shown = whole.provision(node, "active")

    assert shown["provision_state"] == "wait call-back"
    assert [path for _, path, _ in loopback.asked] == ["/i", "/c", "/d"]


def test_private_networks_are_not_denied(whole):
    ask = virtual_media(whole)

    for host in ("10.0.0.1", "192.168.1.1:8080", "172.16.0.1", "[fd00::1]", "images.internal.example.org"):
        assert ask(f"http://{host}/a.iso").status_int in (204, 409), host
