"""The network interfaces of a machine and their switches, as its BMC reports them. No side effects.

An interface is an ``EthernetInterface`` of the system. Its adapter in the chassis has, under the same MAC address, a
function, and a port with the link and the LLDP data that the adapter has received.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from ironic_rules.hardware.redfish.resources import FoundResources, RedfishResource
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSON, JSONObject

_CARRIER = {"LinkUp": True, "Up": True, "LinkDown": False, "NoLink": False, "Down": False}
#: The subtypes of IEEE 802.1AB by their names in Redfish; what is not a MAC address is a text, at the latest in these.
_CHASSIS_SUBTYPES = {"ChassisComp": 1, "IfAlias": 2, "PortComp": 3, "MacAddr": 4, "IfName": 6}
_PORT_SUBTYPES = {"IfAlias": 1, "PortComp": 2, "MacAddr": 3, "IfName": 5, "AgentId": 6}
_LOCAL = 7
_CHASSIS_ID, _PORT_ID, _SYSTEM_NAME, _SYSTEM_DESCRIPTION, _MANAGEMENT_ADDRESS = 1, 2, 5, 6, 8
_MAX_TLV = 255


def interfaces(found: FoundResources) -> list[dict[str, Any]]:
    """Return the Ethernet interfaces with a MAC address, without duplicate addresses.

    If the system has none, the functions of its network adapters are the interfaces.
    """
    ports, functions = _ports(found), _functions(found)
    listed: dict[str, JSONObject] = {}
    for one in found.of("interface") or functions.values():
        address = _mac(one)
        if address is not None and address not in listed:
            listed[address] = _interface(found, one, address, ports.get(address), functions.get(address))
    return list(listed.values())


def pci_address(function: RedfishResource) -> str | None:
    """Return the address of a PCI function on the bus, such as ``0000:17:00.0``; None if the BMC does not report it."""
    keys = ("SegmentNumber", "BusNumber", "DeviceNumber", "FunctionNumber")
    segment, bus, device, number = (_hexadecimal(function.get(key)) for key in keys)
    if bus is None or device is None:
        return None
    number = number if number is not None else _hexadecimal(function.get("FunctionId"))
    return f"{segment or 0:04x}:{bus:02x}:{device:02x}.{number or 0:x}"


def _interface(found: FoundResources, one: RedfishResource, address: str, port: RedfishResource | None,
               function: RedfishResource | None) -> dict[str, Any]:
    pci = None if function is None else found.by_path(function.get("Links", "PCIeFunction", "@odata.id"))
    vendor, product = (None if pci is None else pci.text(key) for key in ("VendorId", "DeviceId"))
    return {
        "name": one.text("Id") or one.text("Name") or address, "mac_address": address, "ipv4_address": None,
        "ipv6_address": None, "has_carrier": _carrier(one, port), "lldp": None if port is None else _lldp(port),
        "vendor": _lower(vendor), "product": _lower(product), "speed_mbps": _speed(one, port),
        "pci_address": None if pci is None else pci_address(pci),
    }


def _mac(one: RedfishResource) -> str | None:
    places = (("MACAddress",), ("PermanentMACAddress",), ("Ethernet", "MACAddress"),
              ("Ethernet", "PermanentMACAddress"))
    return next((addresses.normalize_mac(text) for place in places if addresses.is_mac(text := one.get(*place))), None)


def _functions(found: FoundResources) -> dict[str, RedfishResource]:
    functions: dict[str, RedfishResource] = {}
    for one in found.of("function"):
        if one.is_present and (address := _mac(one)) is not None:
            functions.setdefault(address, one)
    return functions


def _ports(found: FoundResources) -> dict[str, RedfishResource]:
    """Return the physical port of each MAC address."""
    ports: dict[str, RedfishResource] = {}
    for port in found.of("port"):
        for key in (("Ethernet", "AssociatedMACAddresses"), ("AssociatedNetworkAddresses",)):
            listed = port.get(*key)
            for text in listed if isinstance(listed, list) else ():
                if addresses.is_mac(text):
                    ports.setdefault(addresses.normalize_mac(text), port)
    for address, function in _functions(found).items():
        for path in _assigned(function):
            if address not in ports and (assigned := found.by_path(path)) is not None:
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


def _carrier(one: RedfishResource, port: RedfishResource | None) -> bool | None:
    told = [one.get("LinkStatus"), *([] if port is None else [port.get("LinkStatus"), port.get("LinkState")])]
    return next((_CARRIER[text] for text in told if isinstance(text, str) and text in _CARRIER), None)


def _speed(one: RedfishResource, port: RedfishResource | None) -> int | None:
    speed = one.number("SpeedMbps")
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
    told = port.text("Ethernet", "LLDPReceive", f"{key}Subtype")
    if told in (None, "MacAddr"):
        told = "MacAddr" if addresses.is_mac(text) else "text"
    value = bytes.fromhex(addresses.normalize_mac(text).replace(":",
                                                                "")) if told == "MacAddr" else text.encode()[:_MAX_TLV]
    yield [kind, (bytes([subtypes.get(str(told), _LOCAL)]) + value).hex()]


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
