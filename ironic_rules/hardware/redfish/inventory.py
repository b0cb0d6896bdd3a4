"""The data that a BMC provides of its machine, in the format of IPA's inventory.

BMCs differ in the resources that they have. Missing ones are left out with a warning; if a BMC cannot be reached or
refuses the user, reading the inventory fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ironic_rules.hardware.redfish.client import sushy
from ironic_rules.models import mac

#: (ProcessorArchitecture or InstructionSet) -> the output of ``uname -m`` on such a machine
_ARCHITECTURES = {
    "x86-64": "x86_64", "ARM-A64": "aarch64", "PowerISA": "ppc64le", "x86": "i686", "ARM-A32": "armv7l",
    "ARM": "aarch64", "Power": "ppc64le",
}
_MODES = {"UEFI": "uefi", "Legacy": "bios"}
MAX_ITEMS = 1024

Warn = Callable[[str], None]


def read(system: Any, warn: Warn) -> dict[str, Any]:
    """Return the inventory of ``system``, without its BMC's addresses.

    :param warn: called with a message for each resource that the BMC does not have
    :raises sushy.exceptions.SushyError: the BMC cannot be reached, or refuses the user
    """
    found: dict[str, Any] = {
        "interfaces": _part("EthernetInterfaces", lambda: interfaces(system), warn) or [],
        "cpu": _part("Processors", lambda: _cpu(system), warn) or _cpu_summary(system),
        "disks": _part("Storage", lambda: _disks(system), warn) or [],
        "memory": _part("MemorySummary", lambda: _memory(system), warn) or {"physical_mb": None, "total": None},
        "system_vendor": {
            "product_name": system.model, "serial_number": system.serial_number, "manufacturer": system.manufacturer,
            "firmware": {"vendor": system.manufacturer, "version": system.bios_version, "build_date": None},
        },
        "hostname": system.hostname,
    }
    mode = boot_mode(system)
    # The interface that the machine boots from is not known here; without it, hooks do not change pxe_enabled.
    found["boot"] = {} if mode is None else {"current_boot_mode": mode}
    return found


def pci_devices(system: Any, warn: Warn) -> list[dict[str, str]]:
    """Return the PCI functions in the format of IPA's ``pci-devices`` collector."""
    return _part("PCIeDevices", lambda: list(_pci_functions(system)), warn) or []


def boot_mode(system: Any) -> str | None:
    """Return ``uefi``, ``bios``, or None if the BMC does not report it."""
    mode = _value(system.boot.mode) if system.boot else None
    return _MODES.get(mode) if isinstance(mode, str) else None


def interfaces(system: Any) -> list[dict[str, Any]]:
    """Return the Ethernet interfaces with a MAC address, without duplicate addresses."""
    found: dict[str, dict[str, Any]] = {}
    for entry in system.ethernet_interfaces.get_members()[:MAX_ITEMS]:
        address = next((text for text in (entry.mac_address, entry.permanent_mac_address) if mac.is_mac(text)), None)
        if address is not None:
            address = mac.normalize(address)
            found.setdefault(address, {
                "name": entry.identity or entry.name, "mac_address": address, "ipv4_address": None,
                "ipv6_address": None, "has_carrier": None, "speed_mbps": entry.speed_mbps,
            })
    return list(found.values())


def _part(name: str, read_it: Callable[[], Any], warn: Warn) -> Any:
    errors = sushy().exceptions
    try:
        return read_it()
    except (errors.AccessError, errors.ConnectionError):
        raise
    except errors.SushyError:
        warn(f"the BMC does not provide {name}")
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        warn(f"the BMC's data of {name} cannot be read ({type(exc).__name__})")
    return None


def _cpu(system: Any) -> dict[str, Any] | None:
    processors = [entry for entry in system.processors.get_members()[:MAX_ITEMS]
                  if _value(entry.processor_type) in (None, "CPU")]
    if not processors:
        return None
    first = processors[0]
    count = sum(entry.total_threads or entry.total_cores or 0 for entry in processors)
    kinds = (_value(first.instruction_set), _value(first.processor_architecture))
    return {
        "count": count or None, "socket_count": len(processors), "model_name": first.model,
        "architecture": next((_ARCHITECTURES[kind] for kind in kinds if kind in _ARCHITECTURES), None),
        "frequency": None if first.max_speed_mhz is None else str(first.max_speed_mhz), "flags": [],
    }


def _cpu_summary(system: Any) -> dict[str, Any]:
    summary = system.json.get("ProcessorSummary")
    summary = summary if isinstance(summary, dict) else {}
    count = summary.get("LogicalProcessorCount") or summary.get("CoreCount") or summary.get("Count")
    return {
        "count": count if isinstance(count, int) else None, "socket_count": None, "model_name": summary.get("Model"),
        "architecture": None, "frequency": None, "flags": [],
    }


def _memory(system: Any) -> dict[str, Any] | None:
    size_gib = system.memory_summary.size_gib if system.memory_summary else None
    return None if not size_gib else {"physical_mb": size_gib * 1024, "total": size_gib * 1024**3}


def _disks(system: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": drive.name or drive.identity, "model": drive.model, "size": drive.capacity_bytes or 0,
            "rotational": None if drive.media_type is None else _value(drive.media_type) == "HDD",
            "serial": drive.serial_number, "vendor": drive.manufacturer, "wwn": _wwn(drive),
        }
        for storage in system.storage.get_members()[:MAX_ITEMS] for drive in storage.drives[:MAX_ITEMS]
    ]


def _wwn(drive: Any) -> str | None:
    for identifier in drive.identifiers or ():
        if _value(identifier.durable_name_format) == "NAA" and identifier.durable_name:
            text = str(identifier.durable_name).lower().replace(":", "").replace("-", "")
            return text if text.startswith("0x") else f"0x{text}"
    return None


def _pci_functions(system: Any) -> Iterator[dict[str, str]]:
    for device in system.pcie_devices.get_members()[:MAX_ITEMS]:
        for function in device.pcie_functions.get_members()[:MAX_ITEMS]:
            if function.vendor_id and function.device_id:
                yield {
                    "vendor_id": _hex(function.vendor_id), "product_id": _hex(function.device_id),
                    "class": _hex(function.class_code), "revision": _hex(function.revision_id),
                    "bus": str(function.bus_number or ""),
                }


def _hex(text: Any) -> str:
    return str(text or "").lower().removeprefix("0x")


def _value(item: Any) -> Any:
    """Return the BMC's own text of an enumerated value; sushy uses different names."""
    return getattr(item, "value", item)
