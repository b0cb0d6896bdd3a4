"""Redfish interfaces with a BMC of a few documents: features that the emulator of the functional tests lacks."""

from __future__ import annotations

import base64
import io
import logging
from types import SimpleNamespace

import pytest
from sushy import connector

from ironic_rules import service
from ironic_rules.exceptions import BMCError, ConfigurationError, InvalidParameterValue, IronicRulesError
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.inspect import RedfishInspect
from ironic_rules.hardware.redfish.management import RedfishManagement
from ironic_rules.hardware.redfish.power import RedfishPower
from ironic_rules.hardware.redfish.virtual_media import RedfishVirtualMediaBoot
from ironic_rules.models import states
from tests.unit.hardware.redfish_bmc import SYSTEM, documents, members, serving
from tests.unit.inspection.tasks import UUID, make_task

PASSWORD = "s3cr3t-word"
OK = {"State": "Enabled", "Health": "OK"}
PCI = "/redfish/v1/Chassis/1/PCIeDevices/1"
MACHINE = {
    "Manufacturer": "Vendor", "Model": "Server 9", "SerialNumber": "S1", "BiosVersion": "2.0", "HostName": "h",
    "MemorySummary": {"TotalSystemMemoryGiB": 64, "Status": OK},
    "Boot": {"BootSourceOverrideMode": "UEFI", "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once",
             "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Cd", "Hdd", "BiosSetup"]},
    "Processors": {"@odata.id": f"{SYSTEM}/Processors"}, "Storage": {"@odata.id": f"{SYSTEM}/Storage"},
    "EthernetInterfaces": {"@odata.id": f"{SYSTEM}/EthernetInterfaces"}, "PCIeDevices": [{"@odata.id": PCI}],
    "Actions": {"#ComputerSystem.Reset": {"target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
                                          "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}},
}
CPU = {"Id": "1", "ProcessorType": "CPU", "ProcessorArchitecture": "x86", "InstructionSet": "x86-64", "Model": "Xeon",
       "TotalCores": 8, "TotalThreads": 16, "MaxSpeedMHz": 3400, "Status": OK}
PARTS = {
    "Processors": members(*(f"{SYSTEM}/Processors/{name}" for name in "123")),
    "Processors/1": CPU, "Processors/2": {**CPU, "Id": "2"}, "Processors/3": {**CPU, "Id": "3", "ProcessorType": "GPU"},
    "EthernetInterfaces": members(*(f"{SYSTEM}/EthernetInterfaces/{name}" for name in "123")),
    "EthernetInterfaces/1": {"Id": "NIC.1", "MACAddress": "52:54:00:AA:00:01", "SpeedMbps": 25000, "Status": OK},
    "EthernetInterfaces/2": {"Id": "NIC.2", "PermanentMACAddress": "52-54-00-aa-00-02", "MACAddress": "", "Status": OK},
    "EthernetInterfaces/3": {"Id": "NIC.3", "MACAddress": "00:00:00:00:00:00", "Status": OK},
    "Storage": members(f"{SYSTEM}/Storage/1"),
    "Storage/1": {"Id": "1", "Name": "C", "Drives": [{"@odata.id": f"{SYSTEM}/Storage/1/Drives/1"}], "Status": OK},
    "Storage/1/Drives/1": {
        "Id": "1", "Name": "Disk 0", "CapacityBytes": 480103981056, "MediaType": "SSD", "Model": "M",
        "SerialNumber": "D1", "Manufacturer": "V",
        "Identifiers": [{"DurableName": "50:00:c5:00:a1:b2:c3:d4", "DurableNameFormat": "NAA"}]},
    PCI: {"Id": "1", "Name": "NIC", "PCIeFunctions": {"@odata.id": f"{PCI}/PCIeFunctions"}},
    f"{PCI}/PCIeFunctions": members(f"{PCI}/PCIeFunctions/0"),
    f"{PCI}/PCIeFunctions/0": {"Id": "0", "Name": "F", "VendorId": "0x8086", "DeviceId": "0x159B",
                               "ClassCode": "0x020000", "RevisionId": "0x02"},
}


@pytest.fixture
def bmc():
    with serving(documents(MACHINE, PARTS)) as found:
        yield found


@pytest.fixture(autouse=True)
def quick(conf, monkeypatch):
    conf.set_override("connection_attempts", 1, group="redfish")
    conf.set_override("connection_retry_interval", 1, group="redfish")
    conf.set_override("request_timeout", 5, group="redfish")
    conf.set_override("auth_type", "basic", group="redfish")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    monkeypatch.setattr(connector, "time", SimpleNamespace(sleep=lambda seconds: None))


def make(cls, conf, **others):
    return cls(conf, lambda node, kind: others[kind])


def task_of(bmc, **node):
    info = {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": PASSWORD, **node.pop("info", {})}
    return make_task({"driver_info": info, **node})


def inspected(conf, task):
    found = make(RedfishInspect, conf).inspect_hardware(task)
    return found.inventory, found.plugin_data


def test_the_inventory_has_the_shape_of_a_ramdisks(bmc, conf):
    inventory, plugin_data = inspected(conf, task_of(bmc, info={"bmc_address": "192.0.2.5"}))

    assert inventory == {
        "interfaces": [
            {"name": "NIC.1", "mac_address": "52:54:00:aa:00:01", "ipv4_address": None, "ipv6_address": None,
             "has_carrier": None, "lldp": None, "vendor": None, "product": None, "speed_mbps": 25000,
             "pci_address": None},
            {"name": "NIC.2", "mac_address": "52:54:00:aa:00:02", "ipv4_address": None, "ipv6_address": None,
             "has_carrier": None, "lldp": None, "vendor": None, "product": None, "speed_mbps": None,
             "pci_address": None}],
        "cpu": {"count": 32, "socket_count": 2, "model_name": "Xeon", "architecture": "x86_64", "frequency": "3400",
                "flags": []},
        "memory": {"physical_mb": 65536, "total": 64 * 1024**3},
        "disks": [{"name": "Disk 0", "model": "M", "size": 480103981056, "rotational": False, "serial": "D1",
                   "vendor": "V", "wwn": "0x5000c500a1b2c3d4", "tran": None}],
        "system_vendor": {"product_name": "Server 9", "serial_number": "S1", "manufacturer": "Vendor",
                          "firmware": {"vendor": "Vendor", "version": "2.0", "build_date": None}},
        "hostname": "h", "boot": {"current_boot_mode": "uefi"}, "bmc_address": "192.0.2.5",
        "storage_controllers": [{"id": "1", "name": "C", "storage_controllers": [], "drives": [
            {"name": "Disk 0", "size": 480103981056, "id": "1", "media_type": "SSD", "serial_number": "D1",
             "manufacturer": "V", "model": "M", "revision": None}]}],
    }
    told = plugin_data.pop("redfish_inspection")
    assert (told["requests"], told["missing"]) == (14, [])
    assert plugin_data == {
        "pci_devices": [{"vendor_id": "8086", "product_id": "159b", "class": "020000", "revision": "02", "bus": ""}]}


def test_what_a_bmc_does_not_have_is_left_out(bmc, conf):
    for path in ("Processors", "Storage"):
        del bmc.content[f"{SYSTEM}/{path}"]
    bmc.content[SYSTEM] = {key: value for key, value in bmc.content[SYSTEM].items() if key != "MemorySummary"}
    bmc.content[SYSTEM]["ProcessorSummary"] = {"Count": 2, "LogicalProcessorCount": 64, "Model": "Xeon"}

    inventory, _ = inspected(conf, task_of(bmc, properties={"cpu_arch": "x86_64"}))

    assert (inventory["disks"], inventory["memory"]["physical_mb"]) == ([], None)
    assert (inventory["cpu"]["count"], inventory["cpu"]["architecture"]) == (64, "x86_64")


def test_a_bmc_that_tells_nothing_is_no_inspection(conf):
    with serving(documents({}, {})) as bmc, pytest.raises(BMCError, match="use in-band inspection"):
        inspected(conf, task_of(bmc))


@pytest.mark.parametrize("content", [[], {"Members": "x"}, {"Members": [{"@odata.id": 7}]}, b"not json"])
def test_documents_that_are_nonsense_end_in_one_clear_error(bmc, conf, content):
    bmc.content["/redfish/v1/Systems"] = content

    with pytest.raises(BMCError, match=f"The BMC of node {UUID}: {bmc.url} "):
        make(RedfishPower, conf).get_power_state(task_of(bmc))


@pytest.mark.parametrize(("status", "text"), [
    (401, "refuses the user name or the password"), (403, "refuses the user name or the password"),
    (500, "refused a request"), (400, "refused a request")])
def test_errors_are_told_without_the_password(bmc, conf, status, text):
    bmc.refuse = (status, f"Who is u with {PASSWORD}?\nNobody.")

    with pytest.raises(BMCError, match=text) as caught:
        make(RedfishPower, conf).get_power_state(task_of(bmc))

    assert PASSWORD not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_connection_is_kept_per_credentials_and_dropped_when_refused(bmc, conf):
    power = make(RedfishPower, conf)

    for user in ("u", "u", "other"):
        power.get_power_state(task_of(bmc, info={"redfish_username": user}))

    assert len(client.CONNECTIONS) == 2
    expected = "Basic " + base64.b64encode(f"other:{PASSWORD}".encode()).decode()
    assert bmc.logins[-1] == expected
    bmc.refuse = (401, "no")
    with pytest.raises(BMCError):
        power.get_power_state(task_of(bmc))
    assert len(client.CONNECTIONS) == 1


def test_the_connections_are_bounded(bmc, conf):
    conf.set_override("connection_cache_size", 2, group="redfish")
    power = make(RedfishPower, conf)

    for number in range(5):
        power.get_power_state(task_of(bmc, info={"redfish_username": f"u{number}"}))

    assert len(client.CONNECTIONS) == 2


def test_power_that_is_neither_on_nor_off_is_told(bmc, conf):
    bmc.content[SYSTEM]["PowerState"] = None

    with pytest.raises(BMCError, match="does not report the power state"):
        make(RedfishPower, conf).get_power_state(task_of(bmc))


def test_a_reset_that_the_bmc_does_not_offer_is_told(bmc, conf):
    bmc.content[SYSTEM]["PowerState"] = "On"
    bmc.content[SYSTEM]["Actions"] = {
        "#ComputerSystem.Reset": {"target": "/reset", "ResetType@Redfish.AllowableValues": ["On"]}}

    with pytest.raises(BMCError, match="does not offer ForceRestart or PowerCycle"):
        make(RedfishPower, conf).set_power_state(task_of(bmc), states.REBOOT)

    assert bmc.told == []


def test_a_machine_that_must_stay_on_is_neither_switched_off_nor_power_cycled(bmc, conf):
    bmc.content[SYSTEM]["PowerState"] = "On"
    power, task = make(RedfishPower, conf), task_of(bmc)
    task.node.disable_power_off = True

    for change, text in (
            (lambda: power.set_power_state(task, states.POWER_OFF), "has disable_power_off"),
            (lambda: power.set_power_state(task, states.SOFT_POWER_OFF), "has disable_power_off"),
            (lambda: power.power_off(task), "has disable_power_off"),
            (lambda: power.set_power_state(task, states.REBOOT), "does not offer ForceRestart[.]"),
            (lambda: power.reboot(task), "does not offer ForceRestart[.]")):
        with pytest.raises(IronicRulesError, match=text):
            change()

    assert bmc.told == []


def test_a_machine_that_does_not_switch_is_told(bmc, conf):
    with pytest.raises(BMCError, match="after 1 seconds the machine is still at 'power off'"):
        make(RedfishPower, conf).set_power_state(task_of(bmc), states.POWER_ON, timeout_s=1)

    assert bmc.told == [("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "On"})]


def test_boot_device_and_mode(bmc, conf):
    management, task = make(RedfishManagement, conf), task_of(bmc)

    assert management.get_boot_device(task) == {"boot_device": "pxe", "persistent": False}
    assert management.get_boot_mode(task) == "uefi"
    management.set_boot_device(task, "disk", persistent=True)
    management.set_boot_mode(task, "uefi")
    management.set_boot_mode(task, "bios")

    boots = [body["Boot"] for _, path, body in bmc.told if path == SYSTEM]
    assert boots == [{"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"},
                     {"BootSourceOverrideMode": "Legacy"}]


@pytest.mark.parametrize(("call", "text"), [
    (lambda management, task: management.set_boot_device(task, "tape"), "Unknown boot device 'tape'"),
    (lambda management, task: management.set_boot_mode(task, "x"), "Unknown boot mode 'x'"),
])
def test_unknown_devices_and_modes_are_refused(bmc, conf, call, text):
    with pytest.raises(InvalidParameterValue, match=text):
        call(make(RedfishManagement, conf), task_of(bmc))

    assert bmc.told == []


def drive(name, kinds, **values):
    path = f"/redfish/v1/Managers/1/VirtualMedia/{name}"
    actions = {f"#VirtualMedia.{verb}Media": {"target": f"{path}/{verb}"} for verb in ("Insert", "Eject")}
    return {path: {"Id": name, "Name": name, "MediaTypes": kinds, "Inserted": False, "Actions": actions, **values}}


def with_drives(**drives):
    """Return documents with virtual drives where old BMCs have them: in the manager."""
    base = "/redfish/v1/Managers/1"
    system = {**MACHINE, "Links": {"ManagedBy": [{"@odata.id": base}]}}
    others = {path: body for entry in drives.values() for path, body in entry.items()}
    return documents(system, {
        base: {"Id": "1", "Name": "BMC", "VirtualMedia": {"@odata.id": f"{base}/VirtualMedia"}},
        f"{base}/VirtualMedia": members(*others), **others})


@pytest.fixture
def boot(conf, tmp_path):
    conf.set_override("http_root", str(tmp_path), group="deploy")
    conf.set_override("http_url", "http://web", group="deploy")
    conf.set_override("deploy_iso", "http://web/ipa.iso", group="deploy")
    return make(RedfishVirtualMediaBoot, conf, management=make(RedfishManagement, conf))


PARAMETERS = {"ipa-inspection-callback-url": "http://api/v1/continue_inspection"}


def test_virtual_media_of_the_manager(boot, tmp_path):
    content = with_drives(usb=drive("USB", ["USBStick", "Floppy"]),
                          cd=drive("CD1", ["CD", "DVD"], Inserted=True, Image="x"))
    with serving(content) as bmc:
        task = task_of(bmc)

        boot.prepare_ramdisk(task, PARAMETERS)

        media = "/redfish/v1/Managers/1/VirtualMedia"
        assert bmc.told == [
            ("POST", f"{media}/CD1/Eject", None),
            ("POST", f"{media}/CD1/Insert", {"Image": "http://web/ipa.iso"}),
            ("POST", f"{media}/USB/Insert", {"Image": f"http://web/redfish/{UUID}.img"}),
            ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}),
        ]
        assert (tmp_path / "redfish" / f"{UUID}.img").exists()
        boot.clean_up_ramdisk(task)
        assert not (tmp_path / "redfish" / f"{UUID}.img").exists()


@pytest.mark.parametrize(("drives", "text"), [
    ({}, "no virtual CD drive"), ({"a": drive("A", ["Floppy"])}, "no virtual CD drive"),
    ({"a": drive("A", ["CD"])}, "no virtual floppy disk or USB stick"),
    ({"a": drive("A", ["CD", "USBStick"])}, "no virtual floppy disk or USB stick"),
])
def test_a_bmc_without_the_drives_is_told(boot, drives, text):
    with serving(with_drives(**drives)) as bmc, pytest.raises(BMCError, match=text):
        boot.prepare_ramdisk(task_of(bmc), PARAMETERS)


def test_the_file_goes_even_if_the_bmc_is_away(boot, bmc, tmp_path):
    (tmp_path / "redfish").mkdir()
    (tmp_path / "redfish" / f"{UUID}.img").write_bytes(b"x")
    bmc.refuse = (500, "broken")

    with pytest.raises(BMCError):
        boot.clean_up_ramdisk(task_of(bmc))

    assert not (tmp_path / "redfish" / f"{UUID}.img").exists()


def test_a_missing_image_is_told(boot, bmc, conf):
    boot.validate_inspection(task_of(bmc))
    conf.clear_override("deploy_iso", group="deploy")

    with pytest.raises(InvalidParameterValue, match=r"Neither driver_info/deploy_iso nor \[deploy\]deploy_iso"):
        boot.validate_inspection(task_of(bmc))

    assert bmc.logins == []


def test_a_missing_package_stops_the_start_and_is_named(conf, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sushy", None)

    with pytest.raises(ConfigurationError, match=r"pip install '\.\[redfish\]'"):
        make(RedfishPower, conf)


def test_the_mac_addresses_are_those_of_enabled_interfaces(bmc, conf):
    bmc.content[f"{SYSTEM}/EthernetInterfaces/2"] = {
        "@odata.id": f"{SYSTEM}/EthernetInterfaces/2", "Id": "NIC.2", "MACAddress": "52:54:00:aa:00:02",
        "Status": {"State": "Disabled", "Health": "OK"}}
    del bmc.content[f"{SYSTEM}/EthernetInterfaces/3"]["MACAddress"]

    assert make(RedfishManagement, conf).get_mac_addresses(task_of(bmc)) == ["52:54:00:AA:00:01"]


def test_a_bmc_that_does_not_report_interfaces_has_no_mac_addresses(bmc, conf, caplog):
    del bmc.content[SYSTEM]["EthernetInterfaces"]

    assert make(RedfishManagement, conf).get_mac_addresses(task_of(bmc)) == []
    assert "does not report its network interfaces" in caplog.text


@pytest.mark.parametrize("auth_type", ["basic", "session"])
def test_a_bmc_that_repeats_the_login_does_not_write_the_log(bmc, conf, auth_type):
    """sushy logs what a BMC answers, by its own logger at the default level."""
    root, out = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    header = base64.b64encode(f"u:{PASSWORD}".encode()).decode()
    forged = "2026-01-01 00:00:00.000 1 INFO ironic_rules.policy [-] admin logged in"
    bmc.refuse = 500, f"u/{PASSWORD} {header}\n{forged}\r\x1b[2J"
    if auth_type == "session":
        bmc.sessions = set()
    try:
        service.setup_logging(service.prepare_config([], config_files=[]))
        for handler in root.handlers:
            if handler not in handlers and isinstance(handler, logging.StreamHandler):
                handler.setStream(out)
        conf.set_override("auth_type", auth_type, group="redfish")
        with pytest.raises(BMCError) as raised:
            make(RedfishPower, conf).get_power_state(task_of(bmc))
        logging.getLogger("ironic_rules.test").error("It failed", exc_info=raised.value)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    told = out.getvalue()
    assert " sushy." in told and "Traceback" in told and forged in told
    assert PASSWORD not in told and header not in told and "******" in told
    assert "\x1b" not in told and "\r" not in told
    assert not any(line.startswith("2026-01-01") for line in told.splitlines())
