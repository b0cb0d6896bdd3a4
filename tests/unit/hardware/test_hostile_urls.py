"""Hostile URLs that a BMC or a machine would be given are refused; those that the API refuses are in ``functional``."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path

import pytest

from ironic_rules.exceptions import BMCError, InvalidParameterValue
from ironic_rules.hardware import resolver
from ironic_rules.hardware.boot.ipxe import IPXEBoot
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.connections import Connections
from ironic_rules.hardware.redfish.firmware import RedfishFirmware
from ironic_rules.hardware.redfish.power import RedfishPower
from ironic_rules.hardware.redfish.vendor import RedfishVendor
from ironic_rules.hardware.redfish.virtual_media import RedfishVirtualMediaBoot
from ironic_rules.steps import execution
from ironic_rules.steps.procedures import DEPLOYMENT
from tests.hostile_urls import HOSTILE
from tests.unit.hardware.recording import serving
from tests.unit.inspection.tasks import make_task

CERTIFICATE = Path(__file__).parent / "images.example.org.pem"
GOOD = "http://10.0.0.1/x"
PORTS = ({"address": "52:54:00:00:00:01"},)


@pytest.fixture(scope="module")
def loopback():
    with serving() as server:
        yield server


@pytest.fixture
def task(loopback):
    """Task of a node whose BMC must get no request."""
    return make_task({"driver_info": {"redfish_address": f"http://127.0.0.1:{loopback.port}",
                                      "deploy_kernel": GOOD, "deploy_ramdisk": GOOD, "deploy_iso": GOOD}}, PORTS)


def booting(cls, key):
    """Inspect or deploy a node with a URL of a ramdisk in ``driver_info``."""
    def use(conf, task, url):
        task.node.driver_info[key] = url
        boot = cls(conf, lambda node, kind: None)
        with pytest.raises(InvalidParameterValue, match=rf"/driver_info/{key}: "):
            boot.validate_inspection(task)
        boot.prepare_ramdisk(task, {})

    return use


def firmware(conf, task, url):
    update = RedfishFirmware(conf, lambda node, kind: None)
    settings = [{"component": "bios", "url": url}]
    execution.call(update, task, "update", {"settings": settings}, DEPLOYMENT)


def next_firmware(conf, task, url):
    """Begin the second update of a step, long after both were checked."""
    update = RedfishFirmware(conf, lambda node, kind: None)
    update._send(task, [{"component": "bios", "url": GOOD}, {"component": "bmc", "url": url}], 1)


def subscription(conf, task, url):
    vendor = RedfishVendor(conf, lambda node, kind: None)
    vendor.call_vendor_method(task, "create_subscription", "POST", {"Destination": url})


PLACES = {
    "deploy_kernel": booting(IPXEBoot, "deploy_kernel"), "deploy_ramdisk": booting(IPXEBoot, "deploy_ramdisk"),
    "deploy_iso": booting(RedfishVirtualMediaBoot, "deploy_iso"),
    "firmware.update": firmware, "the next firmware.update": next_firmware, "create_subscription": subscription,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("timeout_s", [0, 10], ids=["unchecked", "checked"])
def test_no_hostile_url_is_accepted_or_requested(conf, task, loopback, monkeypatch, tmp_path, place, timeout_s):
    loopback.asked.clear()
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    monkeypatch.setattr(resolver, "resolve", lambda names, timeout_s: [])
    for key, value in (("image_check_timeout", timeout_s), ("http_url", "http://10.0.0.1"),
                       ("http_root", str(tmp_path))):
        conf.set_override(key, value, group="deploy")

    for text in HOSTILE:
        with pytest.raises(InvalidParameterValue):
            PLACES[place](conf, task, text.format(port=loopback.port))

    assert loopback.asked == []


def test_the_addresses_of_bmcs_that_the_operator_denies_get_no_request(conf, task, loopback, monkeypatch):
    loopback.asked.clear()
    conf.set_override("denied_networks", conf.deploy.image_url_denied_networks, group="redfish")
    conf.set_override("connection_attempts", 1, group="redfish")
    conf.set_override("connect_timeout", 1, group="redfish")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    power = RedfishPower(conf, lambda node, kind: None)

    for text in HOSTILE:
        task.node.driver_info["redfish_address"] = text.format(port=loopback.port)
        with pytest.raises((BMCError, InvalidParameterValue)):
            power.get_power_state(task)

    assert loopback.asked == []


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("ask", [
    lambda power, task: power.get_power_state(task), lambda power, task: power.read(task, "/redfish/v1/Systems/1")],
    ids=["sushy", "quick"])
def test_a_bmc_whose_name_leads_to_a_denied_address_later(conf, task, monkeypatch, scheme, ask):
    """A name server changes its answer: each connection is checked, not only the first one."""
    names, real = {"bmc": "127.0.0.2"}, socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *arguments, **named: real(
        names.get(host, host), *arguments, **named))
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    for key, value in (("denied_networks", ["127.0.0.1/32"]), ("connection_attempts", 1), ("auth_type", "basic")):
        conf.set_override(key, value, group="redfish")
    tls = None
    if scheme == "https":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(CERTIFICATE)
    power = RedfishPower(conf, lambda node, kind: None)
    with serving("0.0.0.0", tls=tls) as server:
        task.node.driver_info |= {"redfish_address": f"{scheme}://bmc:{server.port}", "redfish_verify_ca": False,
                                  "redfish_username": "u", "redfish_password": "p"}
        server.answer = json.dumps({
            "Id": "1", "Name": "x", "RedfishVersion": "1.6.0", "Systems": {"@odata.id": "/redfish/v1/Systems"},
            "Members": [{"@odata.id": "/redfish/v1/Systems/1"}], "PowerState": "On"}).encode()
        ask(power, task)
        before = len(server.asked)

        names["bmc"] = "127.0.0.1"
        with pytest.raises(BMCError, match=r"is in the network 127\.0\.0\.1/32 \(\[redfish\]denied_networks\)"):
            ask(power, task)

        assert len(server.asked) == before > 0


@pytest.mark.parametrize("place", ["the next firmware.update", "create_subscription"])
def test_other_urls_are_given_to_the_bmc(conf, task, monkeypatch, place):
    """The server is not one, but it is asked."""
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    conf.set_override("connection_attempts", 1, group="redfish")

    with pytest.raises(BMCError):
        PLACES[place](conf, task, GOOD)


def test_the_operators_own_images_may_be_anywhere(conf, task, tmp_path):
    """As in a set-up in which all is on one machine."""
    for key in ("deploy_kernel", "deploy_ramdisk"):
        conf.set_override(key, "http://127.0.0.1/x", group="deploy")
        del task.node.driver_info[key]
    conf.set_override("http_url", "http://127.0.0.1", group="deploy")
    conf.set_override("http_root", str(tmp_path), group="deploy")

    IPXEBoot(conf, lambda node, kind: None).validate_inspection(task)
