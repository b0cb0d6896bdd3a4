"""A Metal3 host on sushy-tools' emulator, with the real agent: from its registration until it is deleted."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.functional.clients import machines
from tests.functional.clients.test_ipa_deployment import ramdisk
from tests.functional.hardware import bmcs
from tests.functional.hardware.metal3 import Host
from tests.functional.processes import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def host(ironic, machine) -> Iterator[Host]:
    found = Host(ironic.url, f"host-{machine}")
    yield found
    found.close()


def test_the_life_of_a_host(ironic, bmc, machine, host, web, tmp_path):
    hardware = machines.machine(60)
    host.register(bmc.settings(machine), hardware.pxe_mac, "custom-agent")
    settings, schema, versions = host.firmware()
    assert settings == {"BootMode": "Uefi", "EmbeddedSata": "Raid", "NicBoot1": "NetworkBoot",
                        "ProcTurboMode": "Enabled"}
    assert (schema["ProcTurboMode"]["attribute_type"], schema["ProcTurboMode"]["read_only"]) == ("Enumeration", False)
    assert schema["ProcTurboMode"]["allowable_values"] == ["Enabled", "Disabled"]
    assert versions == {"bios": "1.0.0", "bmc": "1.00"}
    assert host.show()["boot_mode"] == "uefi"

    host.ask("GET", host.node("/inventory"), ok=404)
    host.change("inspect")
    host.in_state("inspect wait")
    told = bmcs.ramdisk_parameters(str(bmc.media(machine)["Floppy"]), tmp_path)
    reply = httpx.post(told["ipa-inspection-callback-url"], content=hardware.content, trust_env=False)
    assert reply.status_code == 200, reply.text
    host.in_state("manageable")
    assert "inventory" in host.ask("GET", host.node("/inventory"), ok=200)

    host.prepare([{"size_gb": 100, "raid_level": "0", "volume_name": "root", "is_root_volume": True}],
                 {"ProcTurboMode": "Disabled"})
    host.in_state("clean wait")
    assert bmc.media(machine)["Cd"] == f"{web}/ipa.iso"
    with ramdisk(ironic.url, hardware, tmp_path / "cleaning"):
        wait_for("the reboot that applies the settings",
                 lambda: (host.show()["driver_internal_info"].get("step_poll") or {}).get("awaits_ramdisk"))
    assert bmc.media(machine)["Cd"] == f"{web}/ipa.iso"
    with ramdisk(ironic.url, hardware, tmp_path / "after the reboot"):
        host.in_state("manageable")
    host.provide()
    assert bmc.get(f"{bmc.system_id(machine)}/BIOS")["Attributes"]["ProcTurboMode"] == "Disabled"
    assert host.firmware()[0]["ProcTurboMode"] == "Disabled"
    (volume,) = bmc.get(f"{bmc.system_id(machine)}/Storage/0/Volumes")["Members"]
    assert bmc.get(volume["@odata.id"])["Name"] == "root"
    assert host.show()["raid_config"]["logical_disks"][0]["volume_name"] == "root"

    host.provision({"image_source": f"{web}/image.raw", "image_os_hash_algo": "sha256",
                    "image_os_hash_value": "0" * 64})
    host.in_state("wait call-back")
    assert bmc.media(machine)["Cd"] == f"{web}/ipa.iso"
    with ramdisk(ironic.url, hardware, tmp_path / "ramdisk"):
        shown = host.in_state("active")
    assert (shown["power_state"], shown["last_error"]) == ("power on", None)
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}

    host.attach_data_image(f"{web}/ipa.iso")
    assert host.has_data_image()
    host.detach_data_image()
    assert not host.has_data_image()
    ident = host.subscribe("https://192.0.2.1/events", [{"Authorization": "Bearer t0ken"}])
    assert host.ask("GET", host.node("/vendor_passthru?method=get_subscription"), {"id": ident}, ok=200) == {
        "Id": ident, "Context": "metal3", "Protocol": "Redfish", "Destination": "https://192.0.2.1/events",
        "EventTypes": ["Alert"]}
    host.unsubscribe(ident)

    host.deprovision()
    host.delete()
    assert bmc.system(machine)["PowerState"] == "Off"


def test_a_live_iso_is_booted_from_the_virtual_drive_until_the_host_is_deprovisioned(bmc, machine, host, web):
    host.register(bmc.settings(machine), bmcs.mac(machine, 1), "ramdisk")
    host.provide()

    host.provision({"boot_iso": f"{web}/ipa.iso"})

    shown = host.in_state("active")
    assert (shown["power_state"], shown["instance_info"]["boot_iso"]) == ("power on", f"{web}/ipa.iso")
    assert bmc.media(machine)["Cd"] == f"{web}/ipa.iso"
    assert bmc.system(machine)["Boot"]["BootSourceOverrideTarget"] == "Cd"
    host.deprovision()
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
    assert bmc.system(machine)["PowerState"] == "Off"


def test_subscriptions_are_listed_and_their_headers_are_in_no_error(ironic, bmc, machine):
    node = ironic.enroll("redfish", bmc.settings(machine), vendor_interface="redfish")
    path = f"/v1/nodes/{node}/vendor_passthru?method="
    body = {"Destination": "https://192.0.2.1/events", "HttpHeaders": [{"X-Token": "t0p-secret"}]}

    created = ironic.http.post(f"{path}create_subscription", json=body).json()
    listed = ironic.http.get(f"{path}get_all_subscriptions").json()["Members"]
    assert any(member["@odata.id"].endswith(f"/{created['Id']}") for member in listed)
    assert set(ironic.http.get(f"/v1/nodes/{node}/vendor_passthru/methods").json()) == {
        "create_subscription", "delete_subscription", "get_subscription", "get_all_subscriptions", "eject_vmedia"}
    gone = ironic.http.request("DELETE", f"{path}delete_subscription", json={"id": "4711"})
    assert (gone.status_code, "has no subscription 4711" in gone.text) == (404, True)
    refused = ironic.http.post(f"{path}create_subscription", json={**body, "Protocol": "SNMP"})
    assert (refused.status_code, "refused" in refused.text, "t0p-secret" in refused.text) == (502, True, False)
    for wrong, where in (({"Destination": "file:///x"}, "/Destination: must be a URL"), ({}, "/Destination: is requir"),
                         ({**body, "HttpHeaders": ["x"]}, "/HttpHeaders/0: must be an object")):
        reply = ironic.http.post(f"{path}create_subscription", json=wrong)
        assert (reply.status_code, where in reply.text) == (400, True), reply.text
    assert ironic.http.request("GET", f"{path}get_subscription", json={"id": "../../Systems"}).status_code == 400


def test_secure_boot_boot_device_and_drives_of_a_machine(ironic, bmc, machine, web):
    node = ironic.enroll("redfish", bmc.settings(machine))
    system = bmc.system_id(machine)

    assert ironic.http.put(f"/v1/nodes/{node}/states/secure_boot", json={"target": True}).status_code == 202
    assert ironic.at_rest(node)["secure_boot"] is True
    assert bmc.get(f"{system}/SecureBoot")["SecureBootEnable"] is True
    path, image = f"/v1/nodes/{node}/management/boot_device", f"{web}/ipa.iso"
    assert ironic.http.put(path, json={"boot_device": "cdrom", "persistent": True}).status_code == 204
    assert ironic.http.get(path).json()["boot_device"] == "cdrom"
    media = f"/v1/nodes/{node}/vmedia"
    for _ in range(2):
        assert ironic.http.post(media, json={"device_type": "cdrom", "image_url": image}).status_code == 204
        shown = ironic.at_rest(node)
    assert "virtual drives of type cdrom are in use" in shown["last_error"]
    drives = {tuple(drive["media_types"]): drive["image"] for drive in ironic.http.get(media).json()}
    assert drives == {("CD", "DVD"): image, ("Floppy", "USBStick"): None}
    assert ironic.http.post(f"/v1/nodes/{node}/vendor_passthru?method=eject_vmedia", json={}).status_code == 200
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
