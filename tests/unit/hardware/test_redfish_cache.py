"""Reports of a Redfish BMC about its BIOS settings and its firmware, also if it reports nonsense; NMI, secure boot."""

from __future__ import annotations

import pytest

from ironic_rules.exceptions import BMCError, UnsupportedDriverExtension
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.bios import RedfishBIOS
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.firmware import RedfishFirmware
from ironic_rules.hardware.redfish.management import RedfishManagement
from ironic_rules.models.nodes import BIOSSetting, FirmwareComponent
from tests.unit.hardware.redfish_bmc import ROOT, SYSTEM, documents, members, serving
from tests.unit.inspection.tasks import make_task

REGISTRIES, MANAGER, CHASSIS = "/redfish/v1/Registries", "/redfish/v1/Managers/1", "/redfish/v1/Chassis/1"
OK = {"State": "Enabled", "Health": "OK"}


def content():
    found = documents(
        {"Bios": {"@odata.id": f"{SYSTEM}/Bios"}, "BiosVersion": "U30 2.1",
         "Links": {"ManagedBy": [{"@odata.id": MANAGER}], "Chassis": [{"@odata.id": CHASSIS}]}}, {
            "Bios": {"Id": "Bios", "Name": "Bios", "AttributeRegistry": "BiosRegistry.v1_1",
                     "Attributes": {"Turbo": "on", "Cores": 8, "Quiet": True, "Empty": None, "AdminPassword": "s3cret",
                                    "x" * 300: "1"}},
            MANAGER: {"Id": "1", "Name": "M", "FirmwareVersion": "5.10"},
            CHASSIS: {"Id": "1", "NetworkAdapters": {"@odata.id": f"{CHASSIS}/NetworkAdapters"}},
            f"{CHASSIS}/NetworkAdapters": members(f"{CHASSIS}/NetworkAdapters/NIC.1"),
            f"{CHASSIS}/NetworkAdapters/NIC.1": {"Id": "NIC.1", "Controllers": [{"FirmwarePackageVersion": "22.31"}]},
            REGISTRIES: members(f"{REGISTRIES}/Base.1.0", f"{REGISTRIES}/BiosRegistry.v1_1"),
            f"{REGISTRIES}/BiosRegistry.v1_1": {"Id": "BiosRegistry.v1_1", "Location": [
                {"Language": "ja", "Uri": "/registries/ja"}, {"Language": "en", "Uri": "/registries/en"}]},
            "/registries/en": {"Id": "BiosRegistry.v1_1", "RegistryEntries": {"Attributes": [
                {"AttributeName": "Turbo", "Type": "Enumeration", "ReadOnly": False, "ResetRequired": True,
                 "Value": [{"ValueName": "on"}, {"ValueName": "off"}]},
                {"AttributeName": "Cores", "Type": "Integer", "LowerBound": 1, "UpperBound": 64, "MaxLength": "many"},
                "nonsense", {"Type": "String"}]}},
        })
    found[ROOT] = {**found[ROOT], "Registries": {"@odata.id": REGISTRIES}}
    return found


@pytest.fixture
def bmc():
    with serving(content()) as found:
        yield found


@pytest.fixture
def task(bmc, conf, monkeypatch):
    conf.set_override("connection_attempts", 1, group="redfish")
    conf.set_override("auth_type", "basic", group="redfish")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    return make_task({"driver_info": {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"}})


def settings(conf, task):
    return {setting.name: setting for setting in RedfishBIOS(conf, lambda node, kind: None).read_settings(task)}


def test_settings_have_their_values_and_what_the_registry_says(bmc, task, conf):
    assert settings(conf, task) == {
        "Turbo": BIOSSetting("Turbo", "on", "Enumeration", ("on", "off"), read_only=False, reset_required=True),
        "Cores": BIOSSetting("Cores", "8", "Integer", lower_bound=1, upper_bound=64),
        "Quiet": BIOSSetting("Quiet", "True"), "Empty": BIOSSetting("Empty", None),
        "AdminPassword": BIOSSetting("AdminPassword", None)}
    # The registries of messages are not read.
    assert not any("Base.1.0" in path for path in bmc.read)


@pytest.mark.parametrize("broken", [
    {REGISTRIES: 500}, {f"{REGISTRIES}/BiosRegistry.v1_1": 404}, {"/registries/en": 404}])
def test_settings_are_read_without_a_registry_too(bmc, task, conf, broken):
    bmc.broken = broken

    assert settings(conf, task)["Cores"] == BIOSSetting("Cores", "8")


def test_a_bmc_without_bios_settings_is_an_error_that_names_it(bmc, task, conf):
    del bmc.content[SYSTEM]["Bios"]

    with pytest.raises(BMCError, match="Bios"):
        settings(conf, task)


def test_an_nmi_is_a_reset_of_its_own_that_not_every_bmc_offers(bmc, task, conf):
    management = RedfishManagement(conf, lambda node, kind: None)
    reset = {"target": f"{SYSTEM}/Reset", "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "Nmi"]}
    bmc.content[SYSTEM]["Actions"] = {"#ComputerSystem.Reset": reset}

    management.inject_nmi(task)

    assert bmc.told == [("POST", f"{SYSTEM}/Reset", {"ResetType": "Nmi"})]
    reset["ResetType@Redfish.AllowableValues"].remove("Nmi")
    with pytest.raises(BMCError, match="does not offer Nmi"):
        management.inject_nmi(task)


def test_a_machine_without_secure_boot_says_so(bmc, task, conf):
    management = RedfishManagement(conf, lambda node, kind: None)

    assert management.get_secure_boot(task) is None
    with pytest.raises(UnsupportedDriverExtension):
        management.set_secure_boot(task, True)


def test_components_are_the_bios_the_bmc_and_the_network_adapters(bmc, task, conf):
    interface = RedfishFirmware(conf, lambda node, kind: None)

    assert interface.read_components(task) == [
        FirmwareComponent("bios", "U30 2.1"), FirmwareComponent("bmc", "5.10"),
        FirmwareComponent("nic:NIC.1", "22.31")]
    bmc.broken = {f"{CHASSIS}/NetworkAdapters": 500}
    bmc.content[SYSTEM]["BiosVersion"] = 7
    assert interface.read_components(task) == [FirmwareComponent("bmc", "5.10")]
