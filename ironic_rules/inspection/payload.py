"""Validation and parsing of the data that a ramdisk posts.

The format is that of ironic-python-agent's inventory (``hardware.HardwareManager.list_hardware_info``). Unknown fields
are accepted unchanged; known fields may be null, because agents send null for values that they cannot determine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import InvalidInventory, Problem
from ironic_rules.models import addresses
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.inventories import AUTO_DISCOVERED

_MAX_PROBLEMS = 20
_MAX_TEXT = 4096
_INTEGER_BOUND = 2**63
_NOT_PLUGIN_DATA = frozenset({"inventory", "logs", AUTO_DISCOVERED})

#: Returns the problems of a value, each with a JSON pointer from there, or nothing: most values have none, and then
#: no pointer is made.
Check = Callable[[Any], list[Problem] | None]


@dataclass(frozen=True, slots=True)
class Payload:
    """A ramdisk's data.

    :ivar inventory: as sent
    :ivar plugin_data: everything else, without ``logs`` (an archive of the ramdisk's journal, often megabytes) and
        ``auto_discovered``, which the service sets itself
    :ivar macs: the interfaces' MAC addresses, normalised, without duplicates and those that no port can have
    :ivar bmc_addresses: those of the machine's BMC, normalised
    """

    inventory: JSONObject
    plugin_data: JSONObject
    macs: tuple[str, ...]
    bmc_addresses: tuple[str, ...]


def split(body: Any, *, infiniband: bool = False) -> Payload:
    """Check the body of a callback and split it into its parts.

    :param infiniband: whether interfaces with an InfiniBand address have a MAC address, too
    :raises InvalidInventory: 400, with up to 20 problems, each with a JSON pointer; does not quote the body
    """
    if problems := _BODY(body):
        raise InvalidInventory(problems=problems[:_MAX_PROBLEMS])
    inventory = body["inventory"]
    found = (addresses.normalize(inventory.get(key)) for key in ("bmc_address", "bmc_v6address"))
    return Payload(
        inventory, {key: value for key, value in body.items() if key not in _NOT_PLUGIN_DATA},
        _unique(addresses.mac_of_interface(item["mac_address"], infiniband=infiniband)
                for item in inventory.get("interfaces") or ()),
        _unique(found))


def _unique(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def _one(reason: str) -> list[Problem]:
    return [Problem("", reason)]


def _below(step: object, problems: list[Problem]) -> list[Problem]:
    return [Problem(f"/{step}{problem.where}", problem.text) for problem in problems]


def _text(value: Any) -> list[Problem] | None:
    if value is None or (isinstance(value, str) and len(value) <= _MAX_TEXT):
        return None
    return _one(f"must be at most {_MAX_TEXT} characters" if isinstance(value, str) else "must be a string or null")


def _integer(value: object) -> list[Problem] | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INTEGER_BOUND):
        return None
    return _one("must be an integer of 64 bits, or null")


def _text_or_number(value: object) -> list[Problem] | None:
    return _text(value) if isinstance(value, bool) or not isinstance(value, (int, float)) else None


def _boolean(value: object) -> list[Problem] | None:
    return None if value is None or isinstance(value, bool) else _one("must be true, false or null")


def _address(value: Any) -> list[Problem] | None:
    if isinstance(value, str) and value and addresses.parse(value) is None:
        return [*(_text(value) or ()), *_one("must be an IP address, empty or null")]
    return _text(value)


def _mac(value: object) -> list[Problem] | None:
    if not value and (value is None or isinstance(value, str)):
        return None
    if addresses.is_infiniband(value):
        return None
    try:
        # One unusual address, such as zeros for an interface that is down, must not invalidate the whole report.
        addresses.check_mac(value)
    except ValueError as exc:
        return _one(str(exc))
    return None


def _list(check: Check | None, limit: int) -> Check:
    """Return the check for null or a list of at most ``limit`` items that all pass ``check``."""

    def each(value: object) -> list[Problem] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            return _one("must be a list or null")
        if len(value) > limit:
            return _one(f"must have at most {limit} items")
        if check is None:
            return None
        found: list[Problem] = []
        for index, item in enumerate(value):
            if problems := check(item):
                found += _below(index, problems)
                if len(found) >= _MAX_PROBLEMS:
                    break
        return found

    return each


def _object(fields: Mapping[str, Check], *, required: tuple[str, ...] = (), null: bool = True,
            limit: int | None = None) -> Check:
    """Return the check for an object whose known ``fields``, if present, pass their checks."""

    def each(value: object) -> list[Problem] | None:
        if value is None and null:
            return None
        if not isinstance(value, dict):
            return _one("must be an object" + (" or null" if null else ""))
        found = _one(f"must have at most {limit} keys") if limit is not None and len(value) > limit else []
        for name, check in fields.items():
            if name in value:
                if problems := check(value[name]):
                    found += _below(name, problems)
            elif name in required:
                found.append(Problem(f"/{name}", "is required"))
        return found

    return each


def _texts(*names: str) -> dict[str, Check]:
    return dict.fromkeys(names, _text)


_INTERFACE = _object({
    "mac_address": _mac, "has_carrier": _boolean, "speed_mbps": _integer, "lldp": _list(None, 1024),
    **_texts("name", "ipv4_address", "ipv6_address", "vendor", "product", "client_id", "biosdevname", "pci_address",
             "driver"),
}, required=("mac_address",), null=False)
_DISK = _object({
    "size": _integer, "rotational": _boolean, "logical_sectors": _integer, "physical_sectors": _integer,
    **_texts("name", "model", "wwn", "serial", "vendor", "wwn_with_extension", "wwn_vendor_extension", "hctl",
             "by_path", "tran"),
}, null=False)
_INVENTORY = _object({
    "interfaces": _list(_INTERFACE, 1024),
    "disks": _list(_DISK, 4096),
    "cpu": _object({
        "count": _integer, "socket_count": _integer, "frequency": _text_or_number, "flags": _list(_text, 4096),
        **_texts("model_name", "architecture"),
    }),
    "memory": _object({"total": _integer, "physical_mb": _integer}),
    "system_vendor": _object({
        "firmware": _object(_texts("vendor", "version", "build_date")),
        **_texts("product_name", "serial_number", "manufacturer"),
    }),
    "boot": _object(_texts("current_boot_mode", "pxe_interface")),
    "bmc_address": _address, "bmc_v6address": _address,
    **_texts("hostname", "bmc_mac"),
}, null=False)
_BODY = _object({
    "inventory": _INVENTORY, "pci_devices": _list(None, 65536), "usb_devices": _list(None, 65536),
    "data": _list(None, 65536), "lldp_raw": _object({}, limit=1024),
}, required=("inventory",), null=False)
