"""Where inspection rules read what legacy rules read: the counterpart of each key of ``data``, with its type.

The types are those of the reports of ironic-python-agent and of out-of-band inspection. Of a field whose type is not
known, a conversion notes what depends on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

#: Stands for any item of a list, or any value of an object, in the steps of a path.
ANY = "*"


class Kind(enum.Enum):
    """The type of a field in reports. Except for UNKNOWN, a field that is there has it, or is null."""

    TEXT = "a text"
    WHOLE = "a whole number"
    FLAG = "true or false"
    LIST = "a list"
    OBJECT = "an object"
    UNKNOWN = "anything"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What a template of an inspection rule reads.

    :ivar steps: may contain ``ANY``
    :ivar notes: what it depends on: full sentences
    :ivar null_is_missing: whether legacy rules find nothing where the counterpart is null
    """

    root: str
    steps: tuple[str, ...]
    kind: Kind
    notes: tuple[str, ...] = ()
    null_is_missing: bool = False


class NoCounterpart(Exception):
    """Inspection rules cannot read it; the text says why."""


_TEXT, _WHOLE, _FLAG, _LIST, _OBJECT = Kind.TEXT, Kind.WHOLE, Kind.FLAG, Kind.LIST, Kind.OBJECT
#: Fields of the inventory by path, with dots; ``*`` is any item of a list.
_INVENTORY: Mapping[str, Kind] = {
    "": _OBJECT,
    "bmc_address": _TEXT, "bmc_v6address": _TEXT, "hostname": _TEXT,
    "boot": _OBJECT, "boot.current_boot_mode": _TEXT, "boot.pxe_interface": _TEXT,
    "cpu": _OBJECT, "cpu.architecture": _TEXT, "cpu.count": _WHOLE, "cpu.flags": _LIST, "cpu.flags.*": _TEXT,
    "cpu.frequency": _TEXT, "cpu.model_name": _TEXT,
    "disks": _LIST, "disks.*": _OBJECT, "disks.*.by_path": _TEXT, "disks.*.hctl": _TEXT, "disks.*.model": _TEXT,
    "disks.*.name": _TEXT, "disks.*.rotational": _FLAG, "disks.*.serial": _TEXT, "disks.*.size": _WHOLE,
    "disks.*.vendor": _TEXT, "disks.*.wwn": _TEXT,
    "interfaces": _LIST, "interfaces.*": _OBJECT, "interfaces.*.biosdevname": _TEXT,
    "interfaces.*.client_id": _TEXT, "interfaces.*.has_carrier": _FLAG, "interfaces.*.ipv4_address": _TEXT,
    "interfaces.*.ipv6_address": _TEXT, "interfaces.*.mac_address": _TEXT, "interfaces.*.name": _TEXT,
    "interfaces.*.product": _TEXT, "interfaces.*.vendor": _TEXT,
    "memory": _OBJECT, "memory.physical_mb": _WHOLE, "memory.total": _WHOLE,
    "system_vendor": _OBJECT, "system_vendor.manufacturer": _TEXT, "system_vendor.product_name": _TEXT,
    "system_vendor.serial_number": _TEXT,
}
#: Lists whose items have all fields above in every report, if only as null.
_COMPLETE = frozenset({"disks", "interfaces", "cpu"})

_ROOT_DEVICE = ("The hook root-device must be enabled, which sets it; legacy rules read it whichever hooks are "
                "enabled.")
_INTERFACES = "The hook validate-interfaces must be enabled, as it is by default."
_EXTRA = "The hook extra-hardware must be enabled, and the collector of that name in the ramdisk."
_LLDP = "The hook parse-lldp must be enabled, and the ramdisk must have the kernel parameter ipa-collect-lldp=1."
_BMC = ("The hook validate-interfaces must be enabled, as it is by default. The value is the IPv4 address of the BMC, "
        "or its IPv6 address if it has no other.")
_BMC_V6 = ("The value is as the ramdisk sends it: it may have a prefix length or a zone, or be an unspecified address, "
           "which counts as missing for legacy rules.")
#: Keys of ``data`` that have their counterpart at another place.
_MOVED: Mapping[str, Counterpart] = {
    "memory_mb": Counterpart("inventory", ("memory", "physical_mb"), _WHOLE, null_is_missing=True),
    "cpus": Counterpart("inventory", ("cpu", "count"), _WHOLE, null_is_missing=True),
    "cpu_arch": Counterpart("inventory", ("cpu", "architecture"), _TEXT, null_is_missing=True),
    "local_gb": Counterpart("plugin_data", ("local_gb",), _WHOLE, (_ROOT_DEVICE,)),
    "root_disk": Counterpart("plugin_data", ("root_disk",), _OBJECT, (_ROOT_DEVICE,)),
    "ipmi_address": Counterpart("plugin_data", ("bmc_address",), _TEXT, (_BMC,), True),
    "ipmi_v6address": Counterpart("inventory", ("bmc_v6address",), _TEXT, (_BMC_V6,), True),
    "macs": Counterpart("plugin_data", ("macs",), _LIST, (_INTERFACES,)),
    "boot_interface": Counterpart("plugin_data", ("boot_interface",), _TEXT, (_INTERFACES,)),
    "all_interfaces": Counterpart("plugin_data", ("all_interfaces",), _OBJECT, (_INTERFACES,)),
    "interfaces": Counterpart("plugin_data", ("valid_interfaces",), _OBJECT, (_INTERFACES,)),
    "valid_interfaces": Counterpart("plugin_data", ("valid_interfaces",), _OBJECT, (_INTERFACES,)),
    "auto_discovered": Counterpart("plugin_data", ("auto_discovered",), _FLAG),
    "extra": Counterpart("plugin_data", ("extra",), _OBJECT, (_EXTRA,)),
}
_OF_INTERFACES = frozenset({"all_interfaces", "interfaces", "valid_interfaces"})
#: Fields of an interface in ``all_interfaces`` that have other names now.
_RENAMED: Mapping[str, tuple[str, Kind, str | None]] = {
    "mac": ("mac_address", _TEXT, None),
    "ip": ("ipv4_address", _TEXT, "An interface without an IPv4 address has none here; ironic-inspector gave its IPv6 "
                                  "address."),
    "pxe": ("pxe_enabled", _FLAG, None),
    "client_id": ("client_id", _TEXT, None),
}
_NODE = ("The node is read as earlier rules and earlier inspections have left it; legacy rules read it as it is "
         "without them.")
#: Fields of the node that no rule changes.
_FIXED = frozenset({"uuid", "auto_discovered"})
_UNSAFE = frozenset("[]{}")


def of(root: str, steps: tuple[str, ...]) -> Counterpart:
    """Return the counterpart of a path of a legacy rule.

    :param root: ``data`` or ``node``
    :param steps: keys and indexes; ``ANY`` stands for a wildcard
    :raises NoCounterpart: there is none
    """
    for step in steps:
        if not step or _UNSAFE.intersection(step) or step[0] in "'\"":
            raise NoCounterpart("a key of the path cannot be written in a template: it is empty, begins with a quote, "
                                "or has brackets or braces")
    if root == "node":
        fixed = len(steps) == 1 and steps[0] in _FIXED
        kind = _FLAG if steps == ("auto_discovered",) else _TEXT if fixed else Kind.UNKNOWN
        return Counterpart("node", steps, kind, () if fixed else (_NODE,))
    if not steps:
        raise NoCounterpart("all data of the inspection are no value that a template can read")
    first, *rest = steps
    if first == "inventory":
        return Counterpart("inventory", tuple(rest), _kind_in_inventory(tuple(rest)))
    moved = _MOVED.get(first)
    if moved is None:
        return Counterpart("plugin_data", steps, Kind.UNKNOWN)
    if first in _OF_INTERFACES:
        return _interface(moved, rest)
    if not rest:
        return moved
    kind = Kind.UNKNOWN
    if first == "root_disk":
        kind = _INVENTORY.get(f"disks.*.{'.'.join(rest)}", kind)
    elif first == "macs" and len(rest) == 1:
        kind = _TEXT
    return Counterpart(moved.root, (*moved.steps, *rest), kind, moved.notes)


def is_complete(found: Counterpart) -> bool:
    """Return whether every item of the path's list has the field, and the list has only such items."""
    return found.root == "inventory" and found.steps[:1] != () and found.steps[0] in _COMPLETE \
        and found.kind is not Kind.UNKNOWN


def _kind_in_inventory(steps: tuple[str, ...]) -> Kind:
    return _INVENTORY.get(".".join(ANY if step.isdecimal() else step for step in steps), Kind.UNKNOWN)


def _interface(moved: Counterpart, rest: list[str]) -> Counterpart:
    """Return the counterpart of a path in ``all_interfaces``: an interface's name, and a field."""
    if len(rest) < 2:
        if rest:
            raise NoCounterpart("an interface as a whole has other fields here: mac is mac_address, ip is ipv4_address "
                                "or ipv6_address, pxe is pxe_enabled")
        return moved
    name, field, *more = rest
    if field == "lldp_processed":
        return Counterpart("plugin_data", ("parsed_lldp", name, *more), Kind.UNKNOWN, (*moved.notes, _LLDP))
    if field in _RENAMED:
        new, kind, note = _RENAMED[field]
        notes = (*moved.notes, *([note] if note else []))
        return Counterpart(moved.root, (*moved.steps, name, new, *more), kind, notes)
    kind = _INVENTORY.get(f"interfaces.*.{'.'.join((field, *more))}", Kind.UNKNOWN)
    return Counterpart(moved.root, (*moved.steps, *rest), kind, moved.notes)
