"""Deploy steps of the Redfish interfaces, requested by templates and run on machines of sushy-tools' emulator.

Its volumes cannot be deleted and do not show their drives, and no setting waits for a reboot: unit tests with their own
BMC cover these.
"""

from __future__ import annotations

import itertools

import pytest

from tests.functional.agents import agent
from tests.functional.hardware.services import Service

pytestmark = pytest.mark.slow

_serials = itertools.count(1)
#: Cleaning, which is not the subject here, would wait for the ramdisk.
UNCLEANED = {"automated_clean": False}


def step(name, priority, **args):
    interface, _, own = name.partition(".")
    return {"interface": interface, "step": own, "priority": priority, "args": args}


@pytest.fixture
def deployed(ironic: Service, bmc, machine, web):
    """A function that deploys the node of a machine with the given steps, as one template, and returns the node."""

    def deploy(*steps):
        trait = f"CUSTOM_STEPS_{next(_serials)}"
        node = ironic.enroll("redfish", bmc.settings(machine), deploy_interface="direct", **UNCLEANED, instance_info={
            "image_source": f"{web}/system.raw", "image_checksum": "d" * 64})
        ironic.provision(node, "manage")
        assert ironic.provision(node, "provide")["provision_state"] == "available"
        reply = ironic.http.post("/v1/deploy-templates", json={"name": trait, "steps": list(steps)})
        assert reply.status_code == 201, reply.text
        assert ironic.http.put(f"/v1/nodes/{node}/traits/{trait}").status_code == 204
        reply = ironic.http.patch(f"/v1/nodes/{node}", json=[
            {"op": "add", "path": "/instance_info/traits", "value": [trait]}])
        assert reply.status_code == 200, reply.text
        validated = ironic.http.get(f"/v1/nodes/{node}/validate").json()
        assert validated["deploy"] == {"result": True}
        with agent() as ramdisk:
            return ironic.deploy(node, ramdisk)

    return deploy


def test_a_machine_is_configured_as_its_templates_say(bmc, machine, deployed):
    node = deployed(
        step("bios.apply_configuration", 95, settings=[
            {"name": "ProcTurboMode", "value": "Disabled"}, {"name": "EmbeddedSata", "value": "Raid"}]),
        step("raid.create_configuration", 94, logical_disks=[
            {"size_gb": 100, "raid_level": "0", "volume_name": "root", "is_root_volume": True}]),
        step("management.set_boot_mode", 93, mode="bios"),
        step("management.set_boot_device", 92, device="disk", persistent=True))

    assert (node["provision_state"], node["last_error"], node["power_state"]) == ("active", None, "power on")
    attributes = bmc.get(f"{bmc.system_id(machine)}/BIOS")["Attributes"]
    assert (attributes["ProcTurboMode"], attributes["EmbeddedSata"]) == ("Disabled", "Raid")
    (volume,) = bmc.get(f"{bmc.system_id(machine)}/Storage/0/Volumes")["Members"]
    made = bmc.get(volume["@odata.id"])
    assert (made["Name"], made["CapacityBytes"]) == ("root", 100 * 1024**3)
    assert node["raid_config"]["logical_disks"][0]["volume_name"] == "root"
    boot = bmc.system(machine)["Boot"]
    assert (boot["BootSourceOverrideMode"], boot["BootSourceOverrideTarget"]) == ("Legacy", "Hdd")


def test_settings_of_the_factory_the_clock_and_the_power(bmc, machine, deployed):
    node = deployed(
        step("bios.apply_configuration", 99, settings=[{"name": "NicBoot1", "value": "Disabled"}]),
        step("bios.factory_reset", 98), step("power.power_off", 97), step("power.power_on", 96),
        step("power.reboot", 95), step("power.power_off", 10),
        step("management.set_bmc_clock", 94, target_datetime="2030-01-01T00:00:00+00:00",
             datetime_local_offset="+00:00"))

    assert (node["provision_state"], node["last_error"]) == ("active", None)
    assert bmc.get(f"{bmc.system_id(machine)}/BIOS")["Attributes"]["NicBoot1"] == "NetworkBoot"
    manager = bmc.get(bmc.system(machine)["Links"]["ManagedBy"][0]["@odata.id"])
    assert manager["DateTime"].startswith("2030-01-01T00:00")
    # The last step of all: after the instance was booted.
    assert (node["power_state"], bmc.system(machine)["PowerState"]) == ("power off", "Off")


@pytest.mark.parametrize(("asked", "text"), [
    (step("bios.apply_configuration", 95, settings=[{"name": "NoSuch", "value": 1}]), "no setting NoSuch"),
    (step("raid.create_configuration", 95, logical_disks=[{"size_gb": "MAX", "raid_level": "1"}]),
     "not enough drives for MAX GB in RAID level 1"),
])
def test_what_the_machine_does_not_have_fails_the_deployment(deployed, asked, text):
    node = deployed(asked)

    assert node["provision_state"] == "deploy failed"
    assert f"{asked['interface']}.{asked['step']}" in node["last_error"]
    assert text in node["last_error"]


def test_a_machine_boots_the_iso_image_of_its_instance_until_it_is_torn_down(ironic, bmc, machine, web):
    node = ironic.enroll("redfish", bmc.settings(machine), **UNCLEANED, deploy_interface="ramdisk",
                         instance_info={"boot_iso": f"{web}/live.iso"})
    ironic.provision(node, "manage")
    ironic.provision(node, "provide")

    shown = ironic.provision(node, "active")

    assert (shown["provision_state"], shown["last_error"], shown["power_state"]) == ("active", None, "power on")
    assert bmc.media(machine) == {"Cd": f"{web}/live.iso", "Floppy": None}
    boot = bmc.system(machine)["Boot"]
    assert (boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]) == ("Cd", "Continuous")

    assert ironic.provision(node, "deleted")["power_state"] == "power off"
    assert bmc.media(machine) == {"Cd": None, "Floppy": None}
    assert bmc.system(machine)["PowerState"] == "Off"


def test_an_image_that_can_not_be_loaded_is_refused_before_the_bmc_is_told_anything(ironic, bmc, machine, web):
    node = ironic.enroll("redfish", bmc.settings(machine), deploy_interface="direct", **UNCLEANED, instance_info={
        "image_source": f"{web}/missing.raw", "image_checksum": "d" * 64})
    ironic.provision(node, "manage")
    ironic.provision(node, "provide")
    before = bmc.system(machine)

    reply = ironic.http.put(f"/v1/nodes/{node}/states/provision", json={"target": "active"})

    assert reply.status_code == 400
    assert "/instance_info/image_source: the image cannot be loaded: " in reply.text
    assert (bmc.system(machine), ironic.show(node)["provision_state"]) == (before, "available")
