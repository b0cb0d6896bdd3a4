"""``redfish`` inspection: out-of-band, with the data that the BMC provides in the format of IPA's inventory.

BMCs differ in the resources that they have: those that a BMC does not have are missing here too. A network interface is
an ``EthernetInterface`` of the system. Its adapter in the chassis has, under the same MAC address, a function, and a
port with the link and the LLDP data that the adapter has received.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Iterator
from typing import Any

from oslo_log import log
from oslo_utils import units

from ironic_rules.exceptions import BMCError
from ironic_rules.hardware import resolver
from ironic_rules.hardware.base import InspectInterface
from ironic_rules.hardware.redfish import quirks, raid
from ironic_rules.hardware.redfish.client import RedfishInterface, documents
from ironic_rules.hardware.redfish.reading import MAX_ITEMS, FoundResources, Reader, ReadLimits, RedfishResource
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.inventories import InspectionData
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.text import enumeration

_CARRIER = {"LinkUp": True, "Up": True, "LinkDown": False, "NoLink": False, "Down": False}
#: The subtypes of IEEE 802.1AB by their names in Redfish; what is not a MAC address is a text, at the latest in these.
_CHASSIS_SUBTYPES = {"ChassisComp": 1, "IfAlias": 2, "PortComp": 3, "MacAddr": 4, "IfName": 6}
_PORT_SUBTYPES = {"IfAlias": 1, "PortComp": 2, "MacAddr": 3, "IfName": 5, "AgentId": 6}
_LOCAL = 7
_CHASSIS_ID, _PORT_ID, _SYSTEM_NAME, _SYSTEM_DESCRIPTION, _MANAGEMENT_ADDRESS = 1, 2, 5, 6, 8
_MAX_TLV = 255
#: Kinds of resources that have network interfaces.
_NETWORK = frozenset({"interface", "chassis", "adapter", "port", "function"})


def network_interfaces(resources: FoundResources) -> list[JSONObject]:
    """Return the Ethernet interfaces with a MAC address that are not absent, without duplicate addresses.

    First those of the system; then those that only the network adapters have, as functions or as ports.
    """
    ports, functions = _ports(resources), _functions(resources)
    seen_addresses: set[str] = set()
    listed: dict[str, JSONObject] = {}
    for resource in (*resources.of("interface"), *functions.values()):
        macs = _macs(resource)
        if macs and seen_addresses.isdisjoint(macs):
            address = macs[0]
            if _is_here(resource):
                listed[address] = _interface(resources, resource, address, ports.get(address), functions.get(address))
        seen_addresses.update(macs)
    adapters = [resource.parent for resource in functions.values()]
    for address, port in ports.items():
        if address not in seen_addresses and port.parent not in adapters and _is_here(port):
            listed[address] = {**_interface(resources, port, address, port, None), "name": _port_name(port)}
    return list(listed.values())


def mac_addresses(get: Any, why_not: Any, limits: ReadLimits, root: JSONObject, system: Any) -> list[str]:
    """Return the MAC addresses of enabled interfaces, also of those that only the network adapters have.

    :param get: and ``why_not``, as in :class:`Reader`
    :param system: of sushy
    """
    resources = Reader(get, why_not, limits, _NETWORK).read(root, system.json, system.path)
    return [interface["mac_address"] for interface in network_interfaces(resources)]


def pci_address(function: RedfishResource) -> str | None:
    """Return the address of a PCI function on the bus, such as ``0000:17:00.0``; None if the BMC does not report it."""
    keys = ("SegmentNumber", "BusNumber", "DeviceNumber", "FunctionNumber")
    segment, bus, device, number = (_hexadecimal(function.get(key)) for key in keys)
    if bus is None or device is None:
        return None
    number = number if number is not None else _hexadecimal(function.get("FunctionId"))
    return f"{segment or 0:04x}:{bus:02x}:{device:02x}.{number or 0:x}"


def _interface(resources: FoundResources, resource: RedfishResource, address: str, port: RedfishResource | None,
               function: RedfishResource | None) -> JSONObject:
    pci = None if function is None else resources.by_path(function.get("Links", "PCIeFunction", "@odata.id"))
    vendor, product = (None if pci is None else pci.text(key) for key in ("VendorId", "DeviceId"))
    return {
        "name": resource.text("Id") or resource.text("Name") or address, "mac_address": address, "ipv4_address": None,
        "ipv6_address": None, "has_carrier": _carrier(resource, port), "lldp": None if port is None else _lldp(port),
        "vendor": _lower(vendor), "product": _lower(product), "speed_mbps": _speed(resource, port),
        "pci_address": None if pci is None else pci_address(pci),
    }


def _macs(resource: RedfishResource) -> list[str]:
    """Return the MAC address that an interface has, and then the one that it was made with."""
    places = (("MACAddress",), ("PermanentMACAddress",), ("Ethernet", "MACAddress"),
              ("Ethernet", "PermanentMACAddress"))
    return list(dict.fromkeys(
        addresses.normalize_mac(text) for place in places if addresses.is_mac(text := resource.get(*place))))


def _is_here(resource: RedfishResource | None) -> bool:
    """Return whether neither a resource nor the adapter that has it is an empty slot."""
    while resource is not None:
        if not resource.is_present:
            return False
        resource = resource.parent
    return True


def _port_name(port: RedfishResource) -> str:
    adapter = None if port.parent is None else port.parent.text("Id")
    return "-".join(filter(None, (adapter, port.text("Id")))) or port.path


def _functions(resources: FoundResources) -> dict[str, RedfishResource]:
    functions: dict[str, RedfishResource] = {}
    for function in resources.of("function"):
        if _is_here(function) and function.get("NetDevFuncType") in (None, "Ethernet") and (macs := _macs(function)):
            functions.setdefault(macs[0], function)
    return functions


def _ports(resources: FoundResources) -> dict[str, RedfishResource]:
    """Return the physical port of each MAC address."""
    ports: dict[str, RedfishResource] = {}
    for port in resources.of("port"):
        for key in (("Ethernet", "AssociatedMACAddresses"), ("AssociatedNetworkAddresses",)):
            listed = port.get(*key)
            for text in listed if isinstance(listed, list) else ():
                if addresses.is_mac(text):
                    ports.setdefault(addresses.normalize_mac(text), port)
        if addresses.is_mac(text := port.get("Oem", "Lenovo", "PhysicalPortMacAddress")):
            ports.setdefault(addresses.normalize_mac(text), port)
    for address, function in _functions(resources).items():
        for path in _assigned(function):
            if address not in ports and (assigned := resources.by_path(path)) is not None:
                ports[address] = assigned
    return ports


def _assigned(function: RedfishResource) -> Iterator[Any]:
    """Yield the paths of the ports of a function, in the places that the versions of its schema have."""
    for key in (("Links", "PhysicalNetworkPortAssignment"), ("Links", "PhysicalPortAssignment"),
                ("PhysicalPortAssignment",)):
        yield function.get(*key, "@odata.id")
    for key in (("AssignablePhysicalNetworkPorts",), ("AssignablePhysicalPorts",)):
        # Several: which one it is cannot be determined.
        if len(listed := function.objects(*key)) == 1:
            yield listed[0].get("@odata.id")


def _carrier(resource: RedfishResource, port: RedfishResource | None) -> bool | None:
    reported = [resource.get("LinkStatus"), *([] if port is None else [port.get("LinkStatus"), port.get("LinkState")])]
    return next((_CARRIER[text] for text in reported if isinstance(text, str) and text in _CARRIER), None)


def _speed(resource: RedfishResource, port: RedfishResource | None) -> int | None:
    speed = resource.number("SpeedMbps")
    if not speed and port is not None:
        speed = (port.number("CurrentSpeedGbps") or 0) * 1000 or port.number("CurrentLinkSpeedMbps")
    return int(speed) if speed else None


def _lldp(port: RedfishResource) -> list[list[Any]] | None:
    """Return the LLDP data as the TLVs that a ramdisk would have received: ``[type, hexadecimal octets]``."""
    tlvs = [
        *_identifier(port, _CHASSIS_ID, "ChassisId", _CHASSIS_SUBTYPES),
        *_identifier(port, _PORT_ID, "PortId", _PORT_SUBTYPES),
        *_text(port, _SYSTEM_NAME, "SystemName"), *_text(port, _SYSTEM_DESCRIPTION, "SystemDescription"),
        *_management(port),
    ]
    return tlvs or None


def _identifier(port: RedfishResource, kind: int, key: str, subtypes: dict[str, int]) -> Iterator[list[Any]]:
    text = port.text("Ethernet", "LLDPReceive", key)
    if text is None:
        return
    subtype = port.text("Ethernet", "LLDPReceive", f"{key}Subtype")
    if subtype in (None, "MacAddr"):
        subtype = "MacAddr" if addresses.is_mac(text) else "text"
    if subtype == "MacAddr":
        value = bytes.fromhex(addresses.normalize_mac(text).replace(":", ""))
    else:
        value = text.encode()[:_MAX_TLV]
    yield [kind, (bytes([subtypes.get(str(subtype), _LOCAL)]) + value).hex()]


def _text(port: RedfishResource, kind: int, key: str) -> Iterator[list[Any]]:
    text = port.text("Ethernet", "LLDPReceive", key)
    if text is not None:
        yield [kind, text.encode()[:_MAX_TLV].hex()]


def _management(port: RedfishResource) -> Iterator[list[Any]]:
    for key, family in (("ManagementAddressIPv4", 1), ("ManagementAddressIPv6", 2)):
        try:
            address = ipaddress.ip_address(port.text("Ethernet", "LLDPReceive", key) or "").packed
        except ValueError:
            continue
        # The address with its length and family, then an interface number, which is unknown, and no object identifier.
        yield [_MANAGEMENT_ADDRESS, (bytes([len(address) + 1, family]) + address + bytes([1, 0, 0, 0, 0, 0])).hex()]


def _hexadecimal(value: JSON) -> int | None:
    """Return a number that a BMC writes as ``0x17``, or as a JSON number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= 0xFFFF else None
    try:
        return int(value, 16) if isinstance(value, str) and len(value) <= 8 and int(value, 16) >= 0 else None
    except ValueError:
        return None


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


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
#: Parts that an inventory should have, with the resource that has each.
_EXPECTED = {"interface": "EthernetInterfaces", "processor": "Processors", "storage": "Storage"}


def inventory_of(resources: FoundResources) -> JSONObject:
    """Return the inventory, without the addresses of the BMC."""
    system = resources.of("system")[0]
    mode = boot_mode(system.get("Boot", "BootSourceOverrideMode"))
    maker, version = system.text("Manufacturer"), system.text("BiosVersion")
    controllers = raid.storage_resources(resources)
    return {
        "interfaces": network_interfaces(resources),
        "cpu": _cpu(resources, system),
        "disks": _disks(resources),
        "memory": _memory(system),
        "system_vendor": {
            "product_name": system.text("Model"), "manufacturer": maker,
            "serial_number": quirks.service_tag(maker, system.text("SKU")) or system.text("SerialNumber"),
            "firmware": {"vendor": maker, "version": version, "build_date": None},
        },
        "hostname": system.text("HostName"),
        # The interface that the machine boots from is not known here; without it, hooks do not change pxe_enabled.
        "boot": {} if mode is None else {"current_boot_mode": mode},
        **({"storage_controllers": controllers} if controllers else {}),
    }


def plugin_data(resources: FoundResources) -> JSONObject:
    """Return further data of the machine; what the BMC does not have is left out."""
    data = {
        "pci_devices": _pci_devices(resources), "storage_controllers": _controllers(resources),
        "volumes": _volumes(resources), "firmware": _firmware(resources), "tpm": _tpm(resources.of("system")[0]),
        "bios_settings": _bios_settings(resources),
    }
    return {name: value for name, value in data.items() if value}


def lacking_resources(resources: FoundResources) -> list[str]:
    """Return the names of expected resources that the BMC does not report."""
    system = resources.of("system")[0]
    names = [name for kind, name in _EXPECTED.items() if not resources.of(kind)]
    return names if system.number("MemorySummary", "TotalSystemMemoryGiB") else [*names, "MemorySummary"]


def root_disk_size(resources: FoundResources) -> int | None:
    """Return the size in bytes of the smallest disk of at least 4 GiB that an operating system sees; None without one.

    An operating system sees the volumes of the RAID controllers or, without volumes, the drives.
    """
    sizes = [volume["size"] for volume in _volumes(resources)] or [disk["size"] for disk in _disks(resources)]
    return min((size for size in sizes if size >= 4 * _GIB), default=None)


def boot_mode(reported: object) -> str | None:
    """Return ``uefi``, ``bios``, or None if the BMC does not report it."""
    return _MODES.get(reported) if isinstance(reported, str) else None


def _cpu(resources: FoundResources, system: RedfishResource) -> JSONObject:
    processors = [processor for processor in resources.of("processor")
                  if processor.is_present and processor.get("ProcessorType") in (None, "CPU")]
    if not processors:
        keys = ("LogicalProcessorCount", "CoreCount", "Count")
        count = next((number for key in keys if (number := _whole(system.number("ProcessorSummary", key)))), None)
        model = system.text("ProcessorSummary", "Model")
        return {"count": count, "socket_count": _whole(system.number("ProcessorSummary", "Count")), "model_name": model,
                "architecture": _architecture((), model), "frequency": None, "flags": []}
    first = processors[0]
    count = sum(int(processor.number("TotalThreads") or processor.number("TotalCores") or 0)
                for processor in processors)
    frequency = first.number("MaxSpeedMHz")
    return {
        "count": count or None, "socket_count": len(processors), "model_name": first.text("Model"),
        "architecture": _architecture((first.get("InstructionSet"), first.get("ProcessorArchitecture")),
                                      first.text("Model")),
        "frequency": None if frequency is None else str(frequency), "flags": [],
    }


def _architecture(reported: tuple[object, ...], model: str | None) -> str | None:
    for name in reported:
        if isinstance(name, str) and name in _ARCHITECTURES:
            return _ARCHITECTURES[name]
    return next((name for pattern, name in _MODELS if pattern.search(model or "")), None)


def _memory(system: RedfishResource) -> JSONObject:
    size_gib = system.number("MemorySummary", "TotalSystemMemoryGiB")
    if not size_gib:
        return {"physical_mb": None, "total": None}
    return {"physical_mb": int(size_gib * 1024), "total": int(size_gib * _GIB)}


def _disks(resources: FoundResources) -> list[JSONObject]:
    disks = [_disk(drive, drive.text("Name") or drive.text("Id")) for drive in resources.of("drive")
             if drive.is_present]
    if disks:
        return disks
    # BMCs without Storage have SimpleStorage, whose devices are objects in it.
    return [_disk(RedfishResource("device", resource.path, device), RedfishResource("device", "", device).text("Name"))
            for resource in resources.of("simple_storage") for device in resource.objects("Devices")]


def _disk(drive: RedfishResource, name: str | None) -> JSONObject:
    kind, protocol = drive.text("MediaType"), drive.text("Protocol")
    return {
        "name": name, "model": drive.text("Model"), "size": int(drive.number("CapacityBytes") or 0),
        "rotational": None if kind is None else kind == "HDD", "serial": drive.text("SerialNumber"),
        "vendor": drive.text("Manufacturer"), "wwn": _wwn(drive),
        "tran": None if protocol is None else protocol.lower(),
    }


def _wwn(drive: RedfishResource) -> str | None:
    for identifier in drive.objects("Identifiers"):
        name = identifier.get("DurableName")
        if identifier.get("DurableNameFormat") == "NAA" and isinstance(name, str) and name:
            text = name.lower().replace(":", "").replace("-", "")
            return text if text.startswith("0x") else f"0x{text}"
    return None


def _volumes(resources: FoundResources) -> list[JSONObject]:
    """Return the volumes of RAID controllers; what a controller without RAID shows of each drive is none."""
    return [{"name": volume.text("Name") or volume.text("Id"), "size": int(size), "raid_type": volume.text("RAIDType"),
             "controller": None if volume.parent is None else volume.parent.text("Id")}
            for volume in resources.of("volume")
            if volume.get("VolumeType") != "RawDevice" and (size := volume.number("CapacityBytes"))]


def _controllers(resources: FoundResources) -> list[JSONObject]:
    return [{
        "name": controller.text("Name") or parent.text("Name"), "model": controller.text("Model"),
        "vendor": controller.text("Manufacturer"), "serial": controller.text("SerialNumber"),
        "firmware_version": controller.text("FirmwareVersion"), "drives": len(resources.of("drive", parent)),
    } for parent in resources.of("storage") for controller in raid.controllers_of(resources, parent)]


def _pci_devices(resources: FoundResources) -> list[dict[str, str]]:
    """Return the PCI functions in the format of IPA's ``pci-devices`` collector."""
    return [{
        "vendor_id": _hex(function.get("VendorId")), "product_id": _hex(function.get("DeviceId")),
        "class": _hex(function.get("ClassCode")), "revision": _hex(function.get("RevisionId")),
        "bus": pci_address(function) or "",
    } for function in resources.of("pcie_function")
        if _hex(function.get("VendorId")) and _hex(function.get("DeviceId"))]


def _firmware(resources: FoundResources) -> list[JSONObject]:
    """Return the versions of the firmware of all components. BMCs list previous versions, too: those are left out."""
    return [{"id": component.text("Id"), "name": component.text("Name"), "version": component.text("Version"),
             "manufacturer": component.text("Manufacturer")}
            for component in resources.of("firmware")
            if component.text("Version") and not (component.text("Id") or "").startswith(("Previous", "Available"))]


def _tpm(system: RedfishResource) -> list[JSONObject]:
    modules = [RedfishResource("module", system.path, entry) for entry in system.objects("TrustedModules")]
    return [{"type": module.text("InterfaceType"), "firmware_version": module.text("FirmwareVersion"),
             "state": module.text("Status", "State")} for module in modules if module.is_present]


def _bios_settings(resources: FoundResources) -> JSONObject:
    settings: JSONObject = {}
    for bios in resources.of("bios"):
        for name, value in list(quirks.settings_of(bios.get("Attributes")).items())[:MAX_ITEMS]:
            if isinstance(value, (str, int, float, bool)) and not SECRET.search(name):
                settings[name] = value
    return settings


def _hex(text: object) -> str:
    return text.lower().removeprefix("0x") if isinstance(text, str) else ""


def _whole(number: int | float | None) -> int | None:
    return None if not number else int(number)


LOG = log.getLogger(__name__)

#: Maximum number of paths in the plug-in data.
_MAX_MISSING = 64


class RedfishInspect(RedfishInterface, InspectInterface):
    """Reads the inventory over Redfish; hooks and rules process it like a ramdisk's. The power state is unchanged."""

    def inspect_hardware(self, task: Task) -> InspectionData:
        """Read the inventory, and set the properties of the node that follow from it, whatever hooks are enabled.

        :raises BMCError: the BMC does not respond, or reports nothing about the machine
        """
        began = time.monotonic()
        resources = self._read(task)
        data = inventory_of(resources)
        if not (data["interfaces"] or data["disks"] or data["memory"]["total"] or data["cpu"]["count"]):
            raise BMCError(node=task.node.uuid, reason="it reports neither network interfaces nor disks, memory or "
                                                       "processors of the machine; use in-band inspection.")
        # An architecture that an operator has set is better than none.
        data["cpu"]["architecture"] = data["cpu"]["architecture"] or task.node.properties.get("cpu_arch")
        self._set_properties(task, data, root_disk_size(resources))
        for address in resolver.addresses(task.node.driver_info):
            key = "bmc_address" if ipaddress.ip_address(address).version == 4 else "bmc_v6address"
            data.setdefault(key, address)
        _warn(task, resources)
        seconds = round(time.monotonic() - began, 3)
        LOG.info("Node %s: the inventory was read from its BMC in %s s with %d requests", task.node.uuid, seconds,
                 resources.requests)
        return InspectionData(data, {**plugin_data(resources), "redfish_inspection": {
            "requests": resources.requests, "seconds": seconds, "missing": sorted(resources.missing)[:_MAX_MISSING]}})

    def _read(self, task: Task) -> FoundResources:
        options = self.conf.redfish
        limits = ReadLimits(options.inspection_requests_at_once, options.inspection_max_requests,
                            options.inspection_timeout)
        with self.system(task) as system:
            resources = Reader(documents(system), self.why_not, limits).read(self.root(task), system.json, system.path)
            if resources.unanswered:
                # A resource that a BMC cannot provide is missing. A BMC that cannot be reached fails the inspection.
                system.refresh()
        return resources

    def _set_properties(self, task: Task, data: JSONObject, root_disk_size: int | None) -> None:
        """Set the properties that Ironic's inspection sets; hooks that set the same properties run later."""
        properties = task.node.properties
        if data["memory"]["physical_mb"]:
            properties["memory_mb"] = data["memory"]["physical_mb"]
        if data["cpu"]["architecture"]:
            properties["cpu_arch"] = data["cpu"]["architecture"]
        if root_disk_size is not None and not properties.get("root_device"):
            spacing = self.conf.inspector.disk_partitioning_spacing
            properties["local_gb"] = max(0, root_disk_size // units.Gi - spacing)
        mode, present = data["boot"].get("current_boot_mode"), properties.get("capabilities")
        # The setting of an operator is how the machine shall boot, not how it does.
        if mode is not None and isinstance(present, (str, dict, type(None))) \
                and capabilities.get(present, "boot_mode") is None:
            properties["capabilities"] = capabilities.put(present, "boot_mode", mode)

    def abort(self, task: Task) -> None:
        """Do nothing: nothing was booted, and a failed inspection has changed nothing."""


def _warn(task: Task, resources: FoundResources) -> None:
    if lacks := lacking_resources(resources):
        LOG.warning("Node %s: the BMC does not provide %s", task.node.uuid, ", ".join(lacks))
    by_reason: dict[str, list[str]] = {}
    for path, reason in sorted(resources.missing.items()):
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in by_reason.items():
        LOG.warning("Node %s: resources of the BMC are missing (%s): %s", task.node.uuid, reason, enumeration(paths))
