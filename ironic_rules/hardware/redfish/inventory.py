"""The data that a BMC provides of its machine, in the format of IPA's inventory and plug-in data. No side effects.

BMCs differ in the resources that they have: what a BMC does not have is missing here too.
"""

from __future__ import annotations

import re
from typing import Any

from ironic_rules.hardware.redfish import network, storage
from ironic_rules.hardware.redfish.resources import MAX_ITEMS, Found, Resource
from ironic_rules.models.json_values import JSONObject

#: (ProcessorArchitecture or InstructionSet) -> the output of ``uname -m`` on such a machine
_ARCHITECTURES = {
    "x86-64": "x86_64", "ARM-A64": "aarch64", "PowerISA": "ppc64le", "x86": "i686", "ARM-A32": "armv7l",
    "ARM": "aarch64", "Power": "ppc64le",
}
#: Processors that old BMCs describe by their name only.
_MODELS = ((re.compile(r"\b(Xeon|EPYC|Opteron|Ryzen)\b", re.IGNORECASE), "x86_64"),
           (re.compile(r"\b(Ampere|Altra|AmpereOne|Neoverse|Grace|Kunpeng|ThunderX2?)\b", re.IGNORECASE), "aarch64"))
_MODES = {"UEFI": "uefi", "Legacy": "bios"}
_GIB = 1024**3
#: Settings that may be secret, and hashes of them.
SECRET = re.compile(r"pass(word|wd|phrase)|secret|salt|hash|sha256|privatekey", re.IGNORECASE)
#: What an inventory should have, with the resource that has it.
_EXPECTED = {"interface": "EthernetInterfaces", "processor": "Processors", "storage": "Storage"}


def of(found: Found) -> JSONObject:
    """Return the inventory, without the addresses of the BMC."""
    system = found.of("system")[0]
    mode = boot_mode(system.get("Boot", "BootSourceOverrideMode"))
    maker, version = system.text("Manufacturer"), system.text("BiosVersion")
    controllers = storage.resources(found)
    return {
        "interfaces": network.interfaces(found),
        "cpu": _cpu(found, system),
        "disks": _disks(found),
        "memory": _memory(system),
        "system_vendor": {
            "product_name": system.text("Model"), "serial_number": system.text("SerialNumber"), "manufacturer": maker,
            "firmware": {"vendor": maker, "version": version, "build_date": None},
        },
        "hostname": system.text("HostName"),
        # The interface that the machine boots from is not known here; without it, hooks do not change pxe_enabled.
        "boot": {} if mode is None else {"current_boot_mode": mode},
        **({"storage_controllers": controllers} if controllers else {}),
    }


def plugin_data(found: Found) -> JSONObject:
    """Return further data of the machine; what the BMC does not have is left out."""
    data = {
        "pci_devices": _pci_devices(found), "storage_controllers": _controllers(found), "volumes": _volumes(found),
        "firmware": _firmware(found), "tpm": _tpm(found.of("system")[0]), "bios_settings": _bios_settings(found),
    }
    return {name: value for name, value in data.items() if value}


def lacks(found: Found) -> list[str]:
    """Return the names of what the BMC does not report of its machine."""
    system = found.of("system")[0]
    names = [name for kind, name in _EXPECTED.items() if not found.of(kind)]
    return names if system.number("MemorySummary", "TotalSystemMemoryGiB") else [*names, "MemorySummary"]


def root_disk_size(found: Found) -> int | None:
    """Return the size in bytes of the smallest disk of at least 4 GiB that an operating system sees; None without one.

    These are the volumes of the RAID controllers, and if there are none, the drives.
    """
    volumes = [volume["size"] for volume in _volumes(found)]
    return min((size for size in volumes or [disk["size"] for disk in _disks(found)] if size >= 4 * _GIB), default=None)


def boot_mode(told: Any) -> str | None:
    """Return ``uefi``, ``bios``, or None if the BMC does not report it."""
    return _MODES.get(told) if isinstance(told, str) else None


def _cpu(found: Found, system: Resource) -> JSONObject:
    processors = [one for one in found.of("processor")
                  if one.is_present and one.get("ProcessorType") in (None, "CPU")]
    if not processors:
        keys = ("LogicalProcessorCount", "CoreCount", "Count")
        count = next((number for key in keys if (number := _whole(system.number("ProcessorSummary", key)))), None)
        model = system.text("ProcessorSummary", "Model")
        return {"count": count, "socket_count": _whole(system.number("ProcessorSummary", "Count")), "model_name": model,
                "architecture": _architecture((), model), "frequency": None, "flags": []}
    first = processors[0]
    count = sum(int(one.number("TotalThreads") or one.number("TotalCores") or 0) for one in processors)
    frequency = first.number("MaxSpeedMHz")
    return {
        "count": count or None, "socket_count": len(processors), "model_name": first.text("Model"),
        "architecture": _architecture((first.get("InstructionSet"), first.get("ProcessorArchitecture")),
                                      first.text("Model")),
        "frequency": None if frequency is None else str(frequency), "flags": [],
    }


def _architecture(told: tuple[Any, ...], model: str | None) -> str | None:
    for name in told:
        if isinstance(name, str) and name in _ARCHITECTURES:
            return _ARCHITECTURES[name]
    return next((name for pattern, name in _MODELS if pattern.search(model or "")), None)


def _memory(system: Resource) -> JSONObject:
    size_gib = system.number("MemorySummary", "TotalSystemMemoryGiB")
    if not size_gib:
        return {"physical_mb": None, "total": None}
    return {"physical_mb": int(size_gib * 1024), "total": int(size_gib * _GIB)}


def _disks(found: Found) -> list[JSONObject]:
    drives = [_disk(one, one.text("Name") or one.text("Id")) for one in found.of("drive") if one.is_present]
    if drives:
        return drives
    # BMCs without Storage have SimpleStorage, whose devices are objects in it.
    return [_disk(Resource("device", one.path, device), Resource("device", "", device).text("Name"))
            for one in found.of("simple_storage") for device in one.objects("Devices")]


def _disk(drive: Resource, name: str | None) -> JSONObject:
    kind, protocol = drive.text("MediaType"), drive.text("Protocol")
    return {
        "name": name, "model": drive.text("Model"), "size": int(drive.number("CapacityBytes") or 0),
        "rotational": None if kind is None else kind == "HDD", "serial": drive.text("SerialNumber"),
        "vendor": drive.text("Manufacturer"), "wwn": _wwn(drive),
        "tran": None if protocol is None else protocol.lower(),
    }


def _wwn(drive: Resource) -> str | None:
    for identifier in drive.objects("Identifiers"):
        name = identifier.get("DurableName")
        if identifier.get("DurableNameFormat") == "NAA" and isinstance(name, str) and name:
            text = name.lower().replace(":", "").replace("-", "")
            return text if text.startswith("0x") else f"0x{text}"
    return None


def _volumes(found: Found) -> list[JSONObject]:
    """Return the volumes of RAID controllers; what a controller without RAID shows of each drive is none."""
    return [{"name": one.text("Name") or one.text("Id"), "size": int(size), "raid_type": one.text("RAIDType"),
             "controller": None if one.parent is None else one.parent.text("Id")}
            for one in found.of("volume")
            if one.get("VolumeType") != "RawDevice" and (size := one.number("CapacityBytes"))]


def _controllers(found: Found) -> list[JSONObject]:
    return [{
        "name": one.text("Name") or parent.text("Name"), "model": one.text("Model"),
        "vendor": one.text("Manufacturer"), "serial": one.text("SerialNumber"),
        "firmware_version": one.text("FirmwareVersion"), "drives": len(found.of("drive", parent)),
    } for parent in found.of("storage") for one in storage.controllers_of(found, parent)]


def _pci_devices(found: Found) -> list[dict[str, str]]:
    """Return the PCI functions in the format of IPA's ``pci-devices`` collector."""
    return [{
        "vendor_id": _hex(one.get("VendorId")), "product_id": _hex(one.get("DeviceId")),
        "class": _hex(one.get("ClassCode")), "revision": _hex(one.get("RevisionId")),
        "bus": network.pci_address(one) or "",
    } for one in found.of("pcie_function") if _hex(one.get("VendorId")) and _hex(one.get("DeviceId"))]


def _firmware(found: Found) -> list[JSONObject]:
    """Return the versions of the firmware of all components. BMCs list previous versions, too: those are left out."""
    return [{"id": one.text("Id"), "name": one.text("Name"), "version": one.text("Version"),
             "manufacturer": one.text("Manufacturer")}
            for one in found.of("firmware")
            if one.text("Version") and not (one.text("Id") or "").startswith(("Previous", "Available"))]


def _tpm(system: Resource) -> list[JSONObject]:
    modules = [Resource("module", system.path, entry) for entry in system.objects("TrustedModules")]
    return [{"type": one.text("InterfaceType"), "firmware_version": one.text("FirmwareVersion"),
             "state": one.text("Status", "State")} for one in modules if one.is_present]


def _bios_settings(found: Found) -> JSONObject:
    settings: dict[str, Any] = {}
    for one in found.of("bios"):
        attributes = one.get("Attributes")
        for name, value in list(attributes.items())[:MAX_ITEMS] if isinstance(attributes, dict) else ():
            if isinstance(value, (str, int, float, bool)) and not SECRET.search(name):
                settings[name] = value
    return settings


def _hex(text: Any) -> str:
    return text.lower().removeprefix("0x") if isinstance(text, str) else ""


def _whole(number: int | float | None) -> int | None:
    return None if not number else int(number)
