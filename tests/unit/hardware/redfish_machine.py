"""The documents of a BMC as current servers have: many drives, network adapters with LLDP, PCIe devices, firmware."""

from __future__ import annotations

from typing import Any

from tests.unit.hardware.redfish_bmc import ROOT, SYSTEM, documents, members

CHASSIS = "/redfish/v1/Chassis/1"
ADAPTERS = f"{CHASSIS}/NetworkAdapters"
UPDATE = "/redfish/v1/UpdateService"
OK = {"State": "Enabled", "Health": "OK"}
GIB = 1024**3


def ref(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def mac(number: int) -> str:
    return f"B0:7B:25:E4:52:{number:02X}"


def server(drives: int = 24, nics: int = 12, firmwares: int = 30) -> dict[str, Any]:
    """Return the documents of a server: two CPUs, a RAID controller, adapters of two ports, and a device for each."""
    adapters = (nics + 1) // 2
    devices = [f"{CHASSIS}/PCIeDevices/{number}" for number in range(adapters + 2)]
    system = {
        "UUID": "4c4c4544-0048-5410-8038-b4c04f585833", "SerialNumber": "4HT81X3", "Manufacturer": "Dell Inc.",
        "Model": "PowerEdge R660", "BiosVersion": "2.4.4", "HostName": "", "PowerState": "Off",
        "MemorySummary": {"TotalSystemMemoryGiB": 512, "Status": OK},
        "ProcessorSummary": {"Count": 2, "LogicalProcessorCount": 128, "Model": "Intel(R) Xeon(R) Gold 6430"},
        "Boot": {"BootSourceOverrideMode": "UEFI", "BootSourceOverrideEnabled": "Disabled"},
        "TrustedModules": [{"InterfaceType": "TPM2_0", "FirmwareVersion": "7.2.2.0", "Status": {"State": "Enabled"}}],
        "Processors": ref(f"{SYSTEM}/Processors"), "EthernetInterfaces": ref(f"{SYSTEM}/EthernetInterfaces"),
        "Storage": ref(f"{SYSTEM}/Storage"), "Bios": ref(f"{SYSTEM}/Bios"),
        "PCIeDevices": [ref(path) for path in devices], "Links": {"Chassis": [ref(CHASSIS)]},
    }
    content = documents(system, {
        "Bios": {"Id": "Bios", "Attributes": {"BootMode": "Uefi", "LogicalProc": "Enabled", "SysPassword": "secret",
                                              "SHA256SystemPassword": "ab12", "NumLock": True, "AssetTag": None}},
        CHASSIS: {"Id": "1", "Name": "Chassis", "NetworkAdapters": ref(ADAPTERS),
                  "PCIeDevices": ref(f"{CHASSIS}/PCIeDevices")},
        UPDATE: {"Id": "UpdateService", "FirmwareInventory": ref(f"{UPDATE}/FirmwareInventory")},
    })
    content[ROOT]["UpdateService"] = ref(UPDATE)
    _add(content, f"{SYSTEM}/Processors", {f"CPU.{number}": {
        "ProcessorType": "CPU", "InstructionSet": "x86-64", "Model": "Intel(R) Xeon(R) Gold 6430", "TotalCores": 32,
        "TotalThreads": 64, "MaxSpeedMHz": 3400, "Status": OK} for number in (1, 2)})
    _add_storage(content, drives)
    _add(content, f"{SYSTEM}/EthernetInterfaces", {f"NIC.{number}": {
        "MACAddress": mac(number), "LinkStatus": "LinkUp" if number % 2 else "LinkDown", "SpeedMbps": None}
        for number in range(1, nics + 1)})
    _add_adapters(content, nics, devices)
    _add(content, f"{UPDATE}/FirmwareInventory", {f"Installed-{number}": {
        "Name": f"Component {number}", "Version": f"1.0.{number}", "Manufacturer": "Dell Inc."}
        for number in range(firmwares)})
    return content


def _add(content: dict[str, Any], path: str, entries: dict[str, dict[str, Any]]) -> None:
    """Add a collection and its members."""
    content[path] = members(*(f"{path}/{name}" for name in entries))
    for name, body in entries.items():
        content[f"{path}/{name}"] = {"@odata.id": f"{path}/{name}", "Id": name, "Name": name, **body}


def _add_storage(content: dict[str, Any], drives: int) -> None:
    path = f"{SYSTEM}/Storage/RAID.1"
    names = [f"{path}/Drives/Disk.{number}" for number in range(drives)]
    _add(content, f"{SYSTEM}/Storage", {"RAID.1": {
        "Drives": [ref(name) for name in names], "Controllers": ref(f"{path}/Controllers"),
        "Volumes": ref(f"{path}/Volumes")}})
    _add(content, f"{path}/Controllers", {"0": {
        "Model": "PERC H965i", "Manufacturer": "DELL", "FirmwareVersion": "8.2.0", "SerialNumber": "C1"}})
    _add(content, f"{path}/Volumes", {
        "0": {"CapacityBytes": 480 * GIB, "RAIDType": "RAID1"},
        "1": {"CapacityBytes": 2 * GIB, "RAIDType": "RAID1"},
        "raw": {"CapacityBytes": 100 * GIB, "VolumeType": "RawDevice"}})
    for number, name in enumerate(names):
        content[name] = {
            "@odata.id": name, "Id": f"Disk.{number}", "Name": f"Bay {number}", "CapacityBytes": 1920383410176,
            "MediaType": "SSD", "Protocol": "NVMe", "Model": "KPM7VRUG1T92", "SerialNumber": f"D{number}",
            "Manufacturer": "KIOXIA", "Status": OK,
            "Identifiers": [{"DurableName": f"58CE38EE21{number:06X}", "DurableNameFormat": "NAA"}]}


def _add_adapters(content: dict[str, Any], nics: int, devices: list[str]) -> None:
    _add(content, ADAPTERS, {f"Slot.{number}": {
        "Manufacturer": "Broadcom", "Ports": ref(f"{ADAPTERS}/Slot.{number}/Ports"),
        "NetworkDeviceFunctions": ref(f"{ADAPTERS}/Slot.{number}/NetworkDeviceFunctions")}
        for number in range((nics + 1) // 2)})
    for slot in range((nics + 1) // 2):
        numbers = range(2 * slot + 1, min(2 * slot + 3, nics + 1))
        path, device = f"{ADAPTERS}/Slot.{slot}", devices[slot]
        _add(content, f"{path}/Ports", {str(number): {
            "CurrentSpeedGbps": 25, "LinkStatus": "LinkUp", "Ethernet": {"LLDPReceive": {
                "ChassisId": "00:1C:73:AA:BB:CC", "ChassisIdSubtype": "MacAddr", "PortId": f"Ethernet{number}",
                "PortIdSubtype": "IfName", "SystemName": "leaf-1", "ManagementAddressIPv4": "192.0.2.250"}}}
            for number in numbers})
        _add(content, f"{path}/NetworkDeviceFunctions", {f"{number}-1": {
            "Ethernet": {"MACAddress": mac(number)}, "Links": {
                "PhysicalNetworkPortAssignment": ref(f"{path}/Ports/{number}"),
                "PCIeFunction": ref(f"{device}/PCIeFunctions/{number % 2}")}} for number in numbers})
    for number, device in enumerate(devices):
        content[device] = {"Id": str(number), "Name": "Device", "PCIeFunctions": ref(f"{device}/PCIeFunctions")}
        _add(content, f"{device}/PCIeFunctions", {str(function): {
            "VendorId": "0x14E4", "DeviceId": "0x16D7", "ClassCode": "0x020000", "RevisionId": "0x01",
            "BusNumber": f"0x{number + 0x17:02x}", "DeviceNumber": "0x00", "FunctionId": function}
            for function in (0, 1)})
