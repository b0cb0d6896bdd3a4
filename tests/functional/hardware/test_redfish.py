"""Machines with Redfish, from sushy-tools' emulator: power, managed boot, out-of-band inspection, failures."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import httpx
import pytest

from tests.functional.hardware import bmcs
from tests.functional.hardware.bmcs import PASSWORD, mac
from tests.functional.hardware.services import ramdisk_body, service
from tests.functional.processes import free_port, wait_for
from tests.unit.hardware.test_node_iso import write_image

pytestmark = pytest.mark.slow


@pytest.fixture
def managed(ironic, bmc, machine):
    """A manageable node of a machine."""
    node = ironic.enroll("redfish", bmc.settings(machine))
    shown = ironic.provision(node, "manage")
    assert (shown["provision_state"], shown["power_state"], shown["last_error"]) == ("manageable", "power off", None)
    return node


@pytest.mark.parametrize(("before", "target", "ends"), [
    ("Off", "power on", "On"), ("On", "power on", "On"), ("On", "power off", "Off"), ("On", "soft power off", "Off"),
    ("On", "rebooting", "On"), ("Off", "rebooting", "On"), ("On", "soft rebooting", "On"), ("Off", "power off", "Off"),
])
def test_power(ironic, bmc, machine, managed, before, target, ends):
    if before == "On":
        bmc.reset(machine, "On")
        wait_for("the machine", lambda: bmc.system(machine)["PowerState"] == "On")

    shown = ironic.power(managed, target)

    assert bmc.system(machine)["PowerState"] == ends
    assert (shown["power_state"], shown["last_error"]) == (f"power {ends.lower()}", None)


def test_a_machine_boots_the_ramdisk_from_virtual_media_and_ends_manageable(ironic, bmc, machine, managed, web, folder):
    assert ironic.provision(managed, "inspect")["provision_state"] == "inspect wait"

    system, media = bmc.system(machine), bmc.media(machine)
    assert (system["PowerState"], system["Boot"]["BootSourceOverrideTarget"]) == ("On", "Cd")
    assert media == {"Cd": f"{web}/ipa.iso", "Floppy": f"{web}/redfish/{managed}.img"}

    told = bmcs.ramdisk_parameters(media["Floppy"], folder)
    assert told == {
        "ipa-inspection-callback-url": f"{ironic.url}/v1/continue_inspection?node_uuid={managed}",
        "ipa-api-url": ironic.url, "ipa-debug": "1",
    }
    # These ports were made before the boot. Without them the data do not identify the node: only the UUID in the
    # callback URL does.
    assert set(ironic.ports(managed)) == {mac(machine, 1), mac(machine, 2)}
    for port in ironic.http.get(f"/v1/ports?node={managed}").json()["ports"]:
        assert ironic.http.delete(f"/v1/ports/{port['uuid']}").status_code == 204
    reply = httpx.post(told["ipa-inspection-callback-url"], json=ramdisk_body(mac(machine, 9)), trust_env=False)
    assert reply.status_code == 200, reply.text

    shown = ironic.at_rest(managed)
    assert (shown["provision_state"], shown["power_state"]) == ("manageable", "power off")
    assert (shown["last_error"], shown["driver_internal_info"]) == (None, {})
    assert bmc.system(machine)["PowerState"] == "Off"
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
    assert not (folder / "web" / "redfish" / f"{managed}.img").exists()
    assert mac(machine, 9) in ironic.ports(managed)


def test_a_machine_boots_its_own_copy_of_an_image_with_a_place_for_parameters(ironic, bmc, machine, managed, web,
                                                                             folder):
    write_image(folder / "web" / "own.iso")
    patch = [{"op": "add", "path": "/driver_info/deploy_iso", "value": f"{web}/own.iso"}]
    assert ironic.http.patch(f"/v1/nodes/{managed}", json=patch).status_code == 200

    assert ironic.provision(managed, "inspect")["provision_state"] == "inspect wait"

    assert bmc.media(machine) == {"Cd": f"{web}/redfish/{managed}.iso", "Floppy": None}
    loaded = httpx.get(f"{web}/redfish/{managed}.iso", trust_env=False).raise_for_status().content
    callback = f"{ironic.url}/v1/continue_inspection?node_uuid={managed}"
    (told,) = re.findall(rb"\nset of_node='(.*)'\n", loaded)
    assert told.decode() == f"ipa-inspection-callback-url={callback} ipa-api-url={ironic.url} ipa-debug=1 nofb"
    disks = [{"name": "/dev/sda", "size": 480_103_981_056}, {"name": "/dev/sr0", "size": len(loaded)}]
    report = ramdisk_body(mac(machine, 1))
    report["inventory"]["disks"] = disks
    assert httpx.post(callback, json=report, trust_env=False).status_code == 200

    assert ironic.at_rest(managed)["provision_state"] == "manageable"
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
    assert not (folder / "web" / "redfish" / f"{managed}.iso").exists()
    inventory = ironic.http.get(f"/v1/nodes/{managed}/inventory").json()["inventory"]
    assert inventory["disks"] == disks[:1]


def test_media_of_somebody_else_make_room(ironic, bmc, machine, managed, web):
    system = bmc.system_id(machine)
    with httpx.Client(base_url=bmc.url, auth=(bmcs.USER, PASSWORD), trust_env=False) as client:
        client.post(f"{system}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia",
                    json={"Image": f"{web}/ipa.kernel"}).raise_for_status()

    assert ironic.provision(managed, "inspect")["provision_state"] == "inspect wait"

    assert bmc.media(machine)["Cd"] == f"{web}/ipa.iso"


def test_an_aborted_inspection_leaves_the_machine_off_and_its_drives_empty(ironic, bmc, machine, managed, folder):
    ironic.provision(managed, "inspect")

    shown = ironic.provision(managed, "abort")

    assert shown["provision_state"] == "inspect failed"
    assert "aborted" in shown["last_error"]
    assert bmc.system(machine)["PowerState"] == "Off"
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
    assert not (folder / "web" / "redfish" / f"{managed}.img").exists()


def test_an_image_that_the_bmc_can_not_load_fails_the_inspection_and_leaves_nothing(ironic, bmc, machine, managed, web,
                                                                                  folder):
    patch = [{"op": "add", "path": "/driver_info/deploy_iso", "value": f"{web}/missing.iso"}]
    assert ironic.http.patch(f"/v1/nodes/{managed}", json=patch).status_code == 200

    shown = ironic.provision(managed, "inspect")

    assert shown["provision_state"] == "inspect failed"
    assert "refused a request" in shown["last_error"]
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
    assert bmc.system(machine)["PowerState"] == "Off"
    assert not (folder / "web" / "redfish" / f"{managed}.img").exists()


def test_a_machine_boots_over_the_network_by_scripts_for_its_ports(ironic, bmc, machine, web, folder):
    first, second = mac(machine, 1), mac(machine, 2)
    node = ironic.enroll("redfish", bmc.settings(machine), (first, second), boot_interface="ipxe")
    port = ironic.http.get(f"/v1/ports?address={second}").json()["ports"][0]["uuid"]
    ironic.http.patch(f"/v1/ports/{port}", json=[{"op": "replace", "path": "/pxe_enabled", "value": False}])
    ironic.provision(node, "manage")

    assert ironic.provision(node, "inspect")["provision_state"] == "inspect wait"

    assert bmc.system(machine)["Boot"]["BootSourceOverrideTarget"] == "Pxe"
    boot = httpx.get(f"{web}/boot.ipxe", trust_env=False).text
    assert "chain --autofree pxelinux.cfg/${boot-mac}" in boot
    dashed = first.replace(":", "-")
    script = httpx.get(f"{web}/pxelinux.cfg/{dashed}", trust_env=False).text
    assert script.splitlines()[:3] == [
        "#!ipxe",
        f"kernel --name kernel {web}/ipa.kernel ipa-inspection-callback-url={ironic.url}/v1/continue_inspection "
        f"ipa-api-url={ironic.url} ipa-debug=1 nofb BOOTIF=01-{dashed} initrd=ramdisk || goto failed",
        f"initrd --name ramdisk {web}/ipa.initramfs || goto failed",
    ]
    assert not (folder / "web" / "pxelinux.cfg" / second.replace(":", "-")).exists()

    body = ramdisk_body(first, second)
    assert ironic.http.post("/v1/continue_inspection", json=body).status_code == 200
    assert ironic.at_rest(node)["provision_state"] == "manageable"
    assert not (folder / "web" / "pxelinux.cfg" / dashed).exists()
    assert bmc.system(machine)["PowerState"] == "Off"


def test_inspection_out_of_band(ironic, bmc, machine):
    node = ironic.enroll("redfish", bmc.settings(machine), (mac(machine, 1),), inspect_interface="redfish",
                         properties={"cpu_arch": "aarch64"})
    port = ironic.http.get(f"/v1/ports?address={mac(machine, 1)}").json()["ports"][0]["uuid"]
    ironic.http.patch(f"/v1/ports/{port}", json=[{"op": "replace", "path": "/pxe_enabled", "value": False}])
    ironic.provision(node, "manage")
    rule = ironic.http.post("/v1/inspection_rules", json={
        "conditions": [{"op": "eq", "args": ["{inventory[system_vendor][manufacturer]}", "Sushy Emulator"]},
                       {"op": "eq", "args": ["{node.uuid}", node]}],
        "actions": [{"op": "set-attribute", "args": ["/extra/mode", "{inventory[boot][current_boot_mode]}"]}]})
    assert rule.status_code == 201, rule.text

    shown = ironic.provision(node, "inspect")

    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    assert shown["inspection_finished_at"]
    assert shown["extra"] == {"mode": "uefi"}
    assert bmc.system(machine)["PowerState"] == "Off"
    stored = ironic.http.get(f"/v1/nodes/{node}/inventory").json()
    assert [entry["mac_address"] for entry in stored["inventory"]["interfaces"]] == [mac(machine, 1), mac(machine, 2)]
    assert stored["inventory"]["disks"] == [{
        "name": "Bay 1", "model": "C123", "size": 899527000000, "rotational": True, "serial": "1234570",
        "vendor": "Contoso", "wwn": None, "tran": "sas"}]
    assert stored["plugin_data"]["macs"] == [mac(machine, 1), mac(machine, 2)]
    # Known values are unchanged, and unknown ones are those of a new port.
    assert ironic.ports(node) == {mac(machine, 1): False, mac(machine, 2): True}
    history = [entry["event"] for entry in ironic.http.get(f"/v1/nodes/{node}/history?detail=true").json()["history"]]
    assert any(rule.json()["uuid"] in event for event in history)


def test_a_bmc_without_processors_is_inspected_out_of_band(ironic, bmc, machine):
    assert "Processors" not in bmc.system(machine)
    node = ironic.enroll("redfish", bmc.settings(machine), inspect_interface="redfish")
    ironic.provision(node, "manage")

    shown = ironic.provision(node, "inspect")

    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    # Nor does the emulator know how much memory the machine has.
    assert shown["properties"].keys() == {"local_gb", "capabilities"}
    assert shown["properties"]["local_gb"] == 899527000000 // 1024**3 - 1
    assert set(ironic.ports(node)) == {mac(machine, 1), mac(machine, 2)}
    told = ironic.http.get(f"/v1/nodes/{node}/inventory").json()["plugin_data"]["redfish_inspection"]
    assert told["requests"] > 5


def test_manage_stores_the_uuid_of_the_machine(ironic, bmc, machine, managed, folder):
    with contextlib.closing(sqlite3.connect(next(folder.glob("state/*.sqlite")))) as database:
        stored = database.execute("SELECT m.value FROM node_machine_ids m JOIN nodes n ON n.id = m.node_id "
                                  "WHERE n.uuid = ?", (managed,)).fetchall()

    assert (f"uuid:{bmc.system(machine)['UUID']}",) in stored


def test_a_rule_that_fails_ends_an_inspection_out_of_band(ironic, bmc, machine, folder):
    node = ironic.enroll("redfish", bmc.settings(machine), inspect_interface="redfish",
                         properties={"cpu_arch": "aarch64"})
    ironic.provision(node, "manage")
    ironic.http.post("/v1/inspection_rules", json={
        "conditions": [{"op": "eq", "args": ["{node.uuid}", node]}],
        "actions": [{"op": "fail", "args": ["not this machine"]}]})

    shown = ironic.provision(node, "inspect")

    assert shown["provision_state"] == "inspect failed"
    assert "not this machine" in shown["last_error"]
    assert ironic.ports(node) == {}
    with contextlib.closing(sqlite3.connect(next(folder.glob("state/*.sqlite")))) as database:
        stored = database.execute("SELECT i.status, i.inventory_data FROM node_inventory i JOIN nodes n "
                                  "ON n.id = i.node_id WHERE n.uuid = ?", (node,)).fetchall()
    assert [(status, mac(machine, 1) in data) for status, data in stored] == [("failed", True)]


def no_secret(ironic, shown: dict) -> bool:
    log = ironic.process.text()
    return PASSWORD not in str(shown) and PASSWORD not in log and "wrong-" not in str(shown) and "wrong-" not in log


def test_a_wrong_password_is_told_without_the_password(ironic, bmc, machine):
    node = ironic.enroll("redfish", {**bmc.settings(machine), "redfish_password": "wrong-one"})

    shown = ironic.provision(node, "manage")

    assert shown["provision_state"] == "enroll"
    assert "refuses the user name or the password" in shown["last_error"]
    assert no_secret(ironic, shown)


def test_a_bmc_that_is_away_is_told(ironic, bmc, machine):
    address = f"http://127.0.0.1:{free_port()}"
    node = ironic.enroll("redfish", {**bmc.settings(machine), "redfish_address": address})

    shown = ironic.provision(node, "manage")

    assert shown["provision_state"] == "enroll"
    assert f"{address} cannot be reached" in shown["last_error"]
    assert no_secret(ironic, shown)


def test_a_bmc_that_does_not_answer_is_given_up_in_time(ironic, bmc, machine):
    with bmcs.silent_bmc() as address:
        node = ironic.enroll("redfish", {**bmc.settings(machine), "redfish_address": address})
        shown = ironic.provision(node, "manage")

    assert f"{address} cannot be reached" in shown["last_error"]
    assert no_secret(ironic, shown)


def test_several_systems_need_a_system_id(ironic, bmc, machine):
    settings = {key: value for key, value in bmc.settings(machine).items() if key != "redfish_system_id"}

    shown = ironic.provision(ironic.enroll("redfish", settings), "manage")

    assert "driver_info/redfish_system_id" in shown["last_error"]


def test_a_password_that_changes_is_used(ironic, bmc, machine):
    node = ironic.enroll("redfish", {**bmc.settings(machine), "redfish_password": "wrong-two"})
    assert ironic.provision(node, "manage")["provision_state"] == "enroll"
    patch = [{"op": "replace", "path": "/driver_info/redfish_password", "value": PASSWORD}]
    assert ironic.http.patch(f"/v1/nodes/{node}", json=patch).status_code == 200

    assert ironic.provision(node, "manage")["provision_state"] == "manageable"


def test_validation_names_what_is_missing_and_talks_to_no_bmc(ironic):
    with bmcs.silent_bmc() as address:
        node = ironic.enroll("redfish", {"redfish_address": address})
        shown = ironic.http.get(f"/v1/nodes/{node}/validate").json()
        empty = ironic.http.get(f"/v1/nodes/{ironic.enroll('redfish', {})}/validate").json()

    assert shown["power"] == {"result": True}
    assert shown["inspect"] == {"result": True}
    for kind in ("power", "management", "boot", "inspect"):
        assert "driver_info/redfish_address is missing" in empty[kind]["reason"], kind


def test_the_properties_of_the_drivers_are_told(ironic):
    redfish = ironic.http.get("/v1/drivers/redfish/properties").json()
    ipmi = ironic.http.get("/v1/drivers/ipmi/properties").json()

    assert redfish.keys() >= {"redfish_address", "redfish_password", "redfish_system_id", "deploy_iso", "deploy_kernel"}
    assert ipmi.keys() >= {"ipmi_address", "ipmi_password", "ipmi_cipher_suite", "deploy_ramdisk"}
    assert "redfish_address" not in ipmi


def test_a_bmc_that_does_not_answer_holds_up_no_end_and_the_next_start_goes_on(bmc, machine, web, tmp_path):
    (tmp_path / "web").mkdir()
    with bmcs.silent_bmc() as address:
        with service(tmp_path, web, free_port(), request_timeout_s=600) as first:
            node = first.enroll("redfish", {**bmc.settings(machine), "redfish_address": address})
            first.http.put(f"/v1/nodes/{node}/states/provision", json={"target": "manage"})
            wait_for("the work to begin", lambda: first.show(node)["provision_state"] == "verifying")

            first.process.terminate()

        with service(tmp_path, web, free_port()) as second:
            shown = second.at_rest(node)

    assert shown["provision_state"] == "enroll"
    assert f"{address} cannot be reached" in shown["last_error"]
