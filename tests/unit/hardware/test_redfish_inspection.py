"""Out-of-band inspection of a BMC with the resources of a current server, and of BMCs that lack them or misbehave."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from sushy import connector

from ironic_rules.context import RequestContext
from ironic_rules.exceptions import BMCError
from ironic_rules.hardware.redfish import client
from ironic_rules.hardware.redfish.client import Connections
from ironic_rules.hardware.redfish.inspect import RedfishInspect
from ironic_rules.inspection import lldp
from ironic_rules.inspection.hook_settings import HookSettings
from ironic_rules.inspection.hooks import loader
from ironic_rules.inspection.pipeline import Pipeline
from ironic_rules.text import printable
from tests import matrices
from tests.unit.hardware.redfish_bmc import ROOT, SYSTEM, close_all, documents, members, serving
from tests.unit.hardware.redfish_machine import ADAPTERS, GIB, UPDATE, server
from tests.unit.inspection.tasks import make_task

EXPAND = {"ExpandQuery": {"NoLinks": True, "Levels": True, "ExpandAll": True, "MaxLevels": 2}}


@pytest.fixture(autouse=True)
def quick(conf, monkeypatch):
    for name, value in {"connection_attempts": 1, "connection_retry_interval": 1, "auth_type": "basic"}.items():
        conf.set_override(name, value, group="redfish")
    monkeypatch.setattr(client, "CONNECTIONS", Connections())
    monkeypatch.setattr(connector, "time", SimpleNamespace(sleep=lambda seconds: None))
    yield
    close_all(client.CONNECTIONS)


@pytest.fixture
def bmc():
    with serving(server()) as found:
        yield found


def task_of(bmc, **node):
    info = {"redfish_address": bmc.url, "redfish_username": "u", "redfish_password": "p"}
    return make_task({"driver_info": info, "inspect_interface": "redfish", **node})


def inspected(conf, task):
    return RedfishInspect(conf, lambda node, kind: None).inspect_hardware(task)


def test_a_server_is_reported_in_the_form_of_a_ramdisk(bmc, conf):
    task = task_of(bmc)

    found = inspected(conf, task)

    assert len(found.inventory["interfaces"]) == 12
    first = found.inventory["interfaces"][0]
    assert {**first, "lldp": None} == {
        "name": "NIC.1", "mac_address": "b0:7b:25:e4:52:01", "ipv4_address": None, "ipv6_address": None,
        "has_carrier": True, "lldp": None, "vendor": "0x14e4", "product": "0x16d7", "speed_mbps": 25000,
        "pci_address": "0000:17:00.1"}
    assert lldp.decode(first["lldp"]).values == {
        "switch_chassis_id": "00:1c:73:aa:bb:cc", "switch_port_id": "Ethernet1", "switch_system_name": "leaf-1",
        "switch_mgmt_addresses": ["192.0.2.250"]}
    assert found.inventory["interfaces"][1]["has_carrier"] is False
    assert [disk["name"] for disk in found.inventory["disks"]] == [f"Bay {number}" for number in range(24)]
    assert found.inventory["disks"][23] == {
        "name": "Bay 23", "model": "KPM7VRUG1T92", "size": 1920383410176, "rotational": False, "serial": "D23",
        "vendor": "KIOXIA", "wwn": "0x58ce38ee21000017", "tran": "nvme"}
    assert (found.inventory["cpu"]["count"], found.inventory["cpu"]["socket_count"]) == (128, 2)
    data = found.plugin_data
    assert len(data["pci_devices"]) == 16
    assert data["pci_devices"][2] == {
        "vendor_id": "14e4", "product_id": "16d7", "class": "020000", "revision": "01", "bus": "0000:18:00.0"}
    assert data["storage_controllers"] == [{"name": "0", "model": "PERC H965i", "vendor": "DELL", "serial": "C1",
                                            "firmware_version": "8.2.0", "drives": 24}]
    assert [volume["size"] // GIB for volume in data["volumes"]] == [480, 2]
    assert data["tpm"] == [{"type": "TPM2_0", "firmware_version": "7.2.2.0", "state": "Enabled"}]
    assert (len(data["firmware"]), data["firmware"][3]["version"]) == (30, "1.0.3")


def test_the_bmc_is_told_the_id_of_the_request_by_each_thread_that_reads(bmc, conf):
    task = task_of(bmc)
    for request_id in (f"req-{digit * 8}-2222-4333-8444-555555555555" for digit in "12"):
        RequestContext(request_id=request_id)
        bmc.request_ids.clear()

        inspected(conf, task)

        # The first connection reads the root of the service before it has the header.
        assert set(bmc.request_ids) - {None} == {request_id}
        assert len(bmc.request_ids) > 20 and bmc.request_ids.count(None) <= 2


def test_rules_for_raid_read_controllers_and_drives_as_ironic_reports_them(bmc, conf):
    storage, = inspected(conf, task_of(bmc)).inventory["storage_controllers"]

    assert (storage["id"], storage["name"], len(storage["drives"])) == ("RAID.1", "RAID.1", 24)
    assert storage["storage_controllers"] == [{
        "member_id": "0", "name": "0", "model": "PERC H965i", "manufacturer": "DELL", "firmware_version": "8.2.0",
        "raid_types": [], "speed_gbps": None, "controller_protocols": [], "device_protocols": []}]
    assert storage["drives"][23] == {
        "name": "Bay 23", "size": 1920383410176, "id": "Disk.23", "media_type": "SSD", "serial_number": "D23",
        "manufacturer": "KIOXIA", "model": "KPM7VRUG1T92", "revision": None, "protocol": "NVMe",
        "status": {"health": "OK", "state": "Enabled"}}


def test_controllers_of_old_bmcs_are_objects_of_the_storage_and_absent_drives_are_left_out(bmc, conf):
    path = f"{SYSTEM}/Storage/RAID.1"
    del bmc.content[path]["Controllers"]
    bmc.content[path]["StorageControllers"] = [7, {
        "MemberId": "0", "Name": "PERC H730", "SpeedGbps": 12, "SupportedRAIDTypes": ["RAID0", "RAID1", None],
        "SupportedControllerProtocols": ["PCIe"], "SupportedDeviceProtocols": "SAS",
        "Status": {"Health": "Warning", "HealthRollup": "OK", "State": 7}}]
    bmc.content[f"{path}/Drives/Disk.0"]["Status"] = {"State": "Absent"}

    storage, = inspected(conf, task_of(bmc)).inventory["storage_controllers"]

    assert storage["storage_controllers"] == [{
        "member_id": "0", "name": "PERC H730", "model": None, "manufacturer": None, "firmware_version": None,
        "raid_types": ["RAID0", "RAID1"], "speed_gbps": 12, "controller_protocols": ["PCIe"], "device_protocols": [],
        "status": {"health": "Warning", "health_rollup": "OK"}}]
    assert [drive["id"] for drive in storage["drives"]][:2] == ["Disk.1", "Disk.2"]


def test_no_password_of_the_bios_is_kept(bmc, conf):
    assert inspected(conf, task_of(bmc)).plugin_data["bios_settings"] == {
        "BootMode": "Uefi", "LogicalProc": "Enabled", "NumLock": True}


def test_the_properties_are_those_of_ironics_inspection(bmc, conf):
    task = task_of(bmc, properties={"capabilities": "a:b", "memory_mb": 1})

    inspected(conf, task)

    # The smallest volume of at least 4 GiB, less the space for partitioning.
    assert task.node.properties == {"memory_mb": 524288, "cpu_arch": "x86_64", "local_gb": 479,
                                    "capabilities": "a:b,boot_mode:uefi"}


def test_what_an_operator_has_set_of_boot_mode_and_root_disk_is_kept(bmc, conf):
    task = task_of(bmc, properties={"capabilities": "boot_mode:bios", "root_device": {"size": ">= 900"}, "local_gb": 7})

    inspected(conf, task)

    assert (task.node.properties["capabilities"], task.node.properties["local_gb"]) == ("boot_mode:bios", 7)


def test_the_hooks_of_a_ramdisk_serve_both_ways(bmc, conf):
    names = ["validate-interfaces", "ports", "architecture", "memory", "parse-lldp", "local-link-connection"]
    task = task_of(bmc)
    found = inspected(conf, task)
    task.begin_inspection(set(), lambda: None)

    outcome = Pipeline(loader.load(names, HookSettings())).run(task, found.inventory, found.plugin_data)

    links = {port["address"]: port["local_link_connection"] for port in task.port_changes().created}
    assert len(links) == 12
    assert links["b0:7b:25:e4:52:03"] == {"switch_id": "00:1c:73:aa:bb:cc", "port_id": "Ethernet3",
                                          "switch_info": "leaf-1"}
    assert outcome.plugin_data["parsed_lldp"]["NIC.1"]["switch_system_name"] == "leaf-1"


def test_requests_are_sent_at_the_same_time_within_the_bound_and_none_twice(bmc, conf):
    conf.set_override("inspection_requests_at_once", 5, group="redfish")
    bmc.delay_s = 0.01

    found = inspected(conf, task_of(bmc))

    assert bmc.most_at_once == 5
    # To connect, sushy reads the root, the collection of systems, and the system, that twice.
    below = bmc.read[4:]
    twice = len(below) - len(set(below))
    assert (twice, found.plugin_data["redfish_inspection"]["requests"]) == (0, len(below))


def test_collections_are_read_with_their_members_where_that_is_offered(bmc, conf):
    whole = inspected(conf, task_of(bmc))
    count = len(bmc.read)
    bmc.content[ROOT]["ProtocolFeaturesSupported"] = EXPAND
    close_all(client.CONNECTIONS)
    client.CONNECTIONS = Connections()

    expanded = inspected(conf, task_of(bmc))

    assert f"{SYSTEM}/EthernetInterfaces?$expand=.($levels=1)" in bmc.read
    assert (expanded.inventory, expanded.plugin_data["firmware"]) == (whole.inventory, whole.plugin_data["firmware"])
    assert len(bmc.read) - count < count / 2


def test_a_collection_that_is_not_expanded_after_all_is_read_without(bmc, conf):
    bmc.content[ROOT]["ProtocolFeaturesSupported"] = EXPAND
    bmc.broken[f"{SYSTEM}/EthernetInterfaces?$expand=.($levels=1)"] = 501

    found = inspected(conf, task_of(bmc))

    assert len(found.inventory["interfaces"]) == 12
    assert found.plugin_data["redfish_inspection"]["missing"] == []


@pytest.mark.parametrize("features", [None, EXPAND])
def test_pages_are_followed(bmc, conf, features):
    bmc.page = 5
    bmc.content[ROOT]["ProtocolFeaturesSupported"] = features

    found = inspected(conf, task_of(bmc))

    assert [entry["name"] for entry in found.inventory["interfaces"]] == [f"NIC.{number}" for number in range(1, 13)]
    assert len(found.plugin_data["firmware"]) == 30


@pytest.mark.parametrize("following", [
    f"{UPDATE}/FirmwareInventory", f"{UPDATE}/FirmwareInventory?$skip=0", "http://192.0.2.99/x", "//192.0.2.99/x", 7])
def test_pages_that_lead_in_a_circle_or_elsewhere_end(bmc, conf, following):
    bmc.content[f"{UPDATE}/FirmwareInventory"]["Members@odata.nextLink"] = following

    assert len(inspected(conf, task_of(bmc)).plugin_data["firmware"]) == 30


def test_a_bmc_without_processors_is_inspected(bmc, conf, caplog):
    del bmc.content[SYSTEM]["Processors"], bmc.content[SYSTEM]["ProcessorSummary"]
    task = task_of(bmc)

    found = inspected(conf, task)
    task.begin_inspection(set(), lambda: None)
    outcome = Pipeline(loader.load(["ramdisk-error", "validate-interfaces", "ports", "architecture"], HookSettings())
                       ).run(task, found.inventory, found.plugin_data)

    assert found.inventory["cpu"]["architecture"] is None
    assert "cpu_arch" not in task.node.properties
    assert task.node.properties["memory_mb"] == 524288
    assert any("/cpu/architecture is unknown" in text for _, text in outcome.messages)
    assert "the BMC does not provide Processors" in caplog.text


@pytest.mark.parametrize(("model", "architecture"), [
    ("Intel(R) Xeon(R) Gold 6430", "x86_64"), ("AMD EPYC 9354", "x86_64"), ("Ampere(R) Altra(R) Q80-30", "aarch64"),
    ("VIA", None)])
def test_the_architecture_follows_from_the_name_of_the_processor(bmc, conf, model, architecture):
    del bmc.content[SYSTEM]["Processors"]
    bmc.content[SYSTEM]["ProcessorSummary"]["Model"] = model

    assert inspected(conf, task_of(bmc)).inventory["cpu"]["architecture"] == architecture


@pytest.mark.parametrize(("path", "status"), matrices.sampled(5, [
    f"{SYSTEM}/Storage", f"{SYSTEM}/Processors/CPU.1", f"{SYSTEM}/Bios", ADAPTERS, f"{UPDATE}/FirmwareInventory",
], [403, 404, 500, 503]))
def test_a_resource_that_fails_is_missing_with_a_warning(bmc, conf, caplog, path, status):
    bmc.broken[path] = status

    found = inspected(conf, task_of(bmc))

    assert len(found.inventory["interfaces"]) == 12
    assert found.plugin_data["redfish_inspection"]["missing"] == [path]
    assert f"resources of the BMC are missing (HTTP {status}): {printable(path, 64)}" in caplog.text


def test_a_resource_without_a_response_is_missing(bmc, conf):
    bmc.broken[f"{UPDATE}/FirmwareInventory"] = None

    found = inspected(conf, task_of(bmc))

    assert len(found.inventory["disks"]) == 24
    assert "firmware" not in found.plugin_data


def test_a_bmc_that_fails_during_the_inspection_fails_it(bmc, conf):
    task = task_of(bmc)
    original = bmc.document

    def document(path, query):
        if path == SYSTEM:
            bmc.broken |= dict.fromkeys(bmc.content)
        return original(path, query)

    bmc.document = document

    with pytest.raises(BMCError, match="cannot be reached"):
        inspected(conf, task)

    # Further requests are not sent when several have had no response.
    assert len(bmc.read) < 25


def test_values_of_the_wrong_type_are_missing(bmc, conf):
    for number, nonsense in enumerate(["x", 7, [], {}, None, [7, "x", {}], {"Members": 7}, {"@odata.id": 7}]):
        name = sorted(bmc.content)[number * 7]
        if name.startswith(SYSTEM + "/"):
            bmc.content[name] = nonsense
    for key in ("Manufacturer", "TrustedModules", "PCIeDevices", "ProcessorSummary"):
        bmc.content[SYSTEM][key] = [7]
    bmc.content[f"{SYSTEM}/EthernetInterfaces/NIC.1"] = {"Id": 7, "MACAddress": ["x"], "Status": 7}
    bmc.content[f"{SYSTEM}/Storage/RAID.1/Drives/Disk.0"] |= {"CapacityBytes": "much", "Identifiers": 7, "Name": None}

    found = inspected(conf, task_of(bmc))

    # One of them only as a port of its adapter
    assert [one["name"] for one in found.inventory["interfaces"]] == [*(f"NIC.{n}" for n in range(2, 13)), "1-1"]
    assert found.inventory["disks"][0]["size"] == 0
    assert found.inventory["system_vendor"]["manufacturer"] is None


def test_functions_of_adapters_are_the_interfaces_of_a_system_without_any(bmc, conf):
    del bmc.content[SYSTEM]["EthernetInterfaces"]

    found = inspected(conf, task_of(bmc))

    assert [entry["mac_address"] for entry in found.inventory["interfaces"]] == [
        f"b0:7b:25:e4:52:{number:02x}" for number in range(1, 13)]
    assert found.inventory["interfaces"][4]["speed_mbps"] == 25000


def test_old_bmcs_have_network_ports_and_simple_storage(conf):
    adapter = f"{ADAPTERS}/1"
    content = documents({
        "Links": {"Chassis": [{"@odata.id": "/redfish/v1/Chassis/1"}]},
        "SimpleStorage": {"@odata.id": f"{SYSTEM}/SimpleStorage"},
        "EthernetInterfaces": {"@odata.id": f"{SYSTEM}/EthernetInterfaces"},
    }, {
        "SimpleStorage": members(f"{SYSTEM}/SimpleStorage/1"),
        "SimpleStorage/1": {"Id": "1", "Devices": [{"Name": "SATA 1", "Model": "M", "CapacityBytes": 240 * GIB},
                                                   {"Name": "SATA 2"}]},
        "EthernetInterfaces": members(f"{SYSTEM}/EthernetInterfaces/1"),
        "EthernetInterfaces/1": {"Id": "1", "PermanentMACAddress": "B0:7B:25:E4:52:01"},
        "/redfish/v1/Chassis/1": {"Id": "1", "NetworkAdapters": {"@odata.id": ADAPTERS}},
        ADAPTERS: members(adapter),
        adapter: {"Id": "1", "NetworkPorts": {"@odata.id": f"{adapter}/NetworkPorts"}},
        f"{adapter}/NetworkPorts": members(f"{adapter}/NetworkPorts/1"),
        f"{adapter}/NetworkPorts/1": {"Id": "1", "LinkStatus": "Up", "CurrentLinkSpeedMbps": 10000,
                                      "AssociatedNetworkAddresses": ["B0:7B:25:E4:52:01"]},
    })
    with serving(content) as bmc:
        task = task_of(bmc)
        found = inspected(conf, task)

    assert [(disk["name"], disk["size"]) for disk in found.inventory["disks"]] == [
        ("SATA 1", 240 * GIB), ("SATA 2", 0)]
    (interface,) = found.inventory["interfaces"]
    assert (interface["has_carrier"], interface["speed_mbps"], interface["lldp"]) == (True, 10000, None)
    assert task.node.properties["local_gb"] == 239


def test_the_number_of_requests_and_the_time_are_bounded(bmc, conf, caplog):
    conf.set_override("inspection_max_requests", 40, group="redfish")

    found = inspected(conf, task_of(bmc))

    assert found.plugin_data["redfish_inspection"]["requests"] == 40
    assert found.inventory["interfaces"]
    assert "there are more than 40 resources" in caplog.text


def test_a_bmc_that_is_too_slow_holds_no_worker_longer_than_the_timeout(bmc, conf):
    conf.set_override("inspection_timeout", 1, group="redfish")
    task = task_of(bmc)
    connected = threading.Event()
    original = bmc.document

    def document(path, query):
        if connected.is_set():
            time.sleep(0.4)
        return original(path, query)

    bmc.document = document
    inspected(conf, task_of(bmc))
    connected.set()

    found = inspected(conf, task)

    assert found.plugin_data["redfish_inspection"]["missing"]
