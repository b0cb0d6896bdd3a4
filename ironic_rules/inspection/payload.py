"""A ramdisk's report: what of it is usable, by which addresses it is known, and what is odd in it.

The format is that of ironic-python-agent's inventory (``hardware.HardwareManager.list_hardware_info``). Unknown fields
are accepted unchanged; known fields may be null, because agents send null for values that they cannot determine.

Firmware, agents and collectors of others send odd values, and one of them must not cost a machine its report: a report
is stored as it came, and hooks and rules read it without what cannot be used. :func:`split` decides that, once, and
:func:`usable` does it, whenever stored data are processed. Refused is only what is no report, or has too many values.
The medium from which a BMC boots the ramdisk is no part of the machine: it is not stored.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from ironic_rules.exceptions import InvalidInventory, Problem
from ironic_rules.models import addresses, documents
from ironic_rules.models.documents import JSON, JSONObject, clone
from ironic_rules.models.inventories import AUTO_DISCOVERED, WARNINGS, InspectionData, is_virtual_medium
from ironic_rules.models.json_text import Oddity
from ironic_rules.text import printable

_MAX_PROBLEMS = 20
_MAX_TEXT = 4096
_INTEGER_BOUND = 2**63
_NOT_PLUGIN_DATA = frozenset({"inventory", "logs", AUTO_DISCOVERED, WARNINGS})
#: Maximum number of warnings; a part of the report with more is left out as a whole.
_MAX_WARNINGS = 1000
#: Sequence[JSONObject] that a message tells, and characters of each.
_TOLD, _SHOWN = 8, 160
#: Maximum number of addresses of a report that is refused.
_MAX_ADDRESSES = 256
#: Maximum number of texts in it that are read as addresses, most of which may be the same, or none.
_MAX_READ = 4096
_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,18})(?:\.0*)?\s*", re.ASCII)
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ARCHITECTURE = re.compile(r"[A-Za-z0-9._-]*")
#: Addresses in a text that may be no JSON: in single quotes, as Python shows a report, or as JSON in a string.
_SENT_MAC = re.compile(rb"""["']mac_address\\{0,3}["']\s*:\s*\\{0,3}["']([0-9A-Fa-f:-]{17,59})\\{0,3}["']""")
_SENT_BMC = re.compile(
    rb"""["']bmc_(?:v6)?address\\{0,3}["']\s*:\s*\\{0,3}["']([0-9A-Fa-f:./%]{2,64})\\{0,3}["']""")

#: Effects of a problem: the value is used as it came, hooks and rules read another one in its place, it is no longer
#: in its list, or the whole report is refused.
NOTED, REPLACED, LEFT_OUT, REFUSED = range(4)


class Finding(NamedTuple):
    """A problem of a value.

    :ivar where: JSON pointer from the value that was checked
    :ivar used: what is read in its place, if it is ``REPLACED``
    """

    where: str
    problem: str
    effect: int = REPLACED
    used: JSON = None


#: Returns the problems of a value, or nothing: most values have none, and then no pointer is made.
Check = Callable[[object], list[Finding] | None]


@dataclass(frozen=True, slots=True)
class Payload:
    """A ramdisk's data.

    :ivar received: the inventory as it came, without virtual media
    :ivar inventory: what of it is usable; the same object, if all is
    :ivar plugin_data: everything else, as it came, without ``logs`` (an archive of the ramdisk's journal, often
        megabytes) and what the service sets itself
    :ivar macs: the interfaces' MAC addresses, normalized, without duplicates and those that no port can have
    :ivar bmc_addresses: those of the machine's BMC, normalized
    :ivar warnings: about what is odd, as in stored plug-in data
    """

    received: JSONObject
    inventory: JSONObject
    plugin_data: JSONObject
    macs: tuple[str, ...]
    bmc_addresses: tuple[str, ...]
    warnings: Sequence[JSONObject] = ()

    def to_store(self) -> InspectionData:
        """Return the data as they are stored: as they came, with the warnings."""
        return InspectionData(
            self.received, {**self.plugin_data, WARNINGS: self.warnings} if self.warnings else self.plugin_data)


def split(body: Any, oddities: Iterable[Oddity] = (), *, infiniband: bool = False) -> Payload:
    """Split the body of a report into its parts, and find the values that cannot be used.

    :param oddities: of the text of the body
    :param infiniband: whether interfaces with an InfiniBand address have a MAC address, too
    :raises InvalidInventory: 400, it is no report, or has too many values; with up to 20 problems, each with a JSON
        pointer; does not quote the body
    """
    findings = {odd.where: Finding(odd.where, odd.problem, REPLACED if odd.is_unusable else NOTED) for odd in oddities}
    for finding in _BODY(body) or ():
        # The reason is the text that was sent; what is done about it depends on the place.
        earlier = findings.get(finding.where)
        findings[finding.where] = finding if earlier is None else finding._replace(problem=earlier.problem)
    if refused := [Problem(odd.where, odd.problem) for odd in findings.values() if odd.effect == REFUSED]:
        raise InvalidInventory(problems=refused[:_MAX_PROBLEMS])
    received: JSONObject = body["inventory"]
    if media := _virtual_media(received.get("disks")):
        if any(where.startswith("/inventory/disks/") for where in findings):  # places in the list are told
            findings |= {where: Finding(where, "is a virtual medium of the BMC, and no disk", LEFT_OUT)
                         for where in (f"/inventory/disks/{place}" for place in media)}
        else:
            received = {**received, "disks": [disk for place, disk in enumerate(received["disks"])
                                              if place not in media]}
    plugin_data = {key: value for key, value in body.items() if key not in _NOT_PLUGIN_DATA}
    if _virtual_media([plugin_data.get("root_disk")]):
        del plugin_data["root_disk"]
    warnings = [_warning(odd) for odd in _few([odd for odd in findings.values() if not _is_dropped(odd.where)])]
    inventory = _usable(received, {}, warnings).inventory if warnings else received
    return Payload(
        received, inventory, plugin_data,
        _unique(addresses.mac_of_interface(item.get("mac_address"), infiniband=infiniband)
                for item in inventory.get("interfaces") or ()),
        _unique(addresses.normalize(inventory.get(key)) for key in ("bmc_address", "bmc_v6address")), warnings)


def _virtual_media(disks: object) -> list[int]:
    """Return the places of virtual media in a list of disks."""
    return [place for place, disk in enumerate(disks if isinstance(disks, list) else ())
            if isinstance(disk, dict) and is_virtual_medium(disk)]


def addresses_in(raw: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the MAC addresses and those of the BMC in the text of a report that may be anything, e.g. not JSON."""
    # Without NUL, what is in UTF-16 can be read, too.
    raw = raw.replace(b"\0", b"")
    macs = (addresses.mac_of_interface(text, infiniband=True) for text in _sent(_SENT_MAC, raw))
    return _unique(macs)[:_MAX_ADDRESSES], _unique(map(addresses.normalize, _sent(_SENT_BMC, raw)))[:_MAX_ADDRESSES]


def _sent(pattern: re.Pattern[bytes], raw: bytes) -> Iterable[str]:
    """Yield the first texts that are in the place of an address: anybody can send millions of them."""
    return (match[1].decode() for match in itertools.islice(pattern.finditer(raw), _MAX_READ))


def usable(inventory: Mapping[str, object],
           plugin_data: Mapping[str, object]) -> tuple[InspectionData, Sequence[JSONObject]]:
    """Return what hooks and rules read of data as they are stored, and the warnings."""
    warnings = plugin_data.get(WARNINGS)
    if not isinstance(warnings, list) or not all(map(_is_warning, warnings)):
        return InspectionData(dict(inventory), dict(plugin_data)), ()
    rest = {key: value for key, value in plugin_data.items() if key != WARNINGS}
    return _usable(inventory, rest, warnings), warnings


def _usable(inventory: Mapping[str, Any], plugin_data: JSONObject, warnings: Sequence[JSONObject]) -> InspectionData:
    whole = clone({"inventory": inventory, **plugin_data})
    # From the last to the first: what is left out of a list changes the places of what comes after it.
    for warning in sorted(warnings, key=_place, reverse=True):
        _apply(whole, warning)
    return InspectionData(whole.pop("inventory"), whole)


def summary(warnings: Sequence[JSONObject]) -> str:
    """Return the warnings as one message for the operator."""
    listed = "; ".join(printable(f"{warning['path']} {warning['problem']}", _SHOWN) for warning in warnings[:_TOLD])
    more = f"; and {len(warnings) - _TOLD} more" if len(warnings) > _TOLD else ""
    return f"the report has values that are not used as they came: {listed}{more}"


def _is_warning(value: object) -> bool:
    # An early rule can have written anything there.
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("path", "problem"))


def _place(warning: JSONObject) -> list[tuple[int, str]]:
    # Numbers by their size: those of lists.
    return [(int(token), "") if token.isdecimal() and len(token) < 9 else (-1, token)
            for token in warning["path"].split("/")]


def _apply(whole: JSONObject, warning: JSONObject) -> None:
    holder: Any = whole
    try:
        tokens = documents.parse_pointer(warning["path"])
        for token in tokens[:-1]:
            holder = holder[int(token) if isinstance(holder, list) else token]
        key = int(tokens[-1]) if isinstance(holder, list) else tokens[-1]
        if "left_out" in warning:
            del holder[key]
        elif "used" in warning:
            holder[key] = warning["used"]
    except (KeyError, IndexError, TypeError, ValueError, documents.PointerError):
        # An early rule may have written something else there.
        return


def _warning(finding: Finding) -> JSONObject:
    shown: JSONObject = {"path": finding.where, "problem": finding.problem}
    if finding.effect == REPLACED:
        shown["used"] = finding.used
    elif finding.effect == LEFT_OUT:
        shown["left_out"] = True
    return shown


def _is_dropped(where: str) -> bool:
    return where.split("/", 2)[1:2] in (["logs"], [AUTO_DISCOVERED], [WARNINGS])


def _few(findings: list[Finding]) -> list[Finding]:
    """Return the findings, or if they are too many, one for each part of the report."""
    if len(findings) <= _MAX_WARNINGS:
        return findings
    parts: dict[str, int] = {}
    for finding in findings:
        steps = finding.where.split("/")
        part = "/".join(steps[:3] if steps[1:2] == ["inventory"] else steps[:2])
        parts[part] = parts.get(part, 0) + 1
    grouped = [Finding(part, f"has {number} odd values, and is left out") for part, number in parts.items()]
    return grouped[:_MAX_WARNINGS]


def _unique(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def _one(problem: str, used: JSON = None) -> list[Finding]:
    return [Finding("", problem, REPLACED, used)]


def _below(step: object, findings: list[Finding]) -> list[Finding]:
    return [finding._replace(where=f"/{step}{finding.where}") for finding in findings]


def _text(value: object) -> list[Finding] | None:
    if value is None or (isinstance(value, str) and len(value) <= _MAX_TEXT):
        return None
    if isinstance(value, str):
        return _one(f"must be at most {_MAX_TEXT} characters")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _one("is a number and read as text", orjson.dumps(value).decode())
    return _one("must be a string or null")


def _integer(value: object) -> list[Finding] | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INTEGER_BOUND):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < _INTEGER_BOUND:
        return _one("has a fraction and is read without it", int(value))
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        return _one("is a text and read as a number", int(match[1]))
    return _one("must be an integer of 64 bits, or null")


def _amount(value: object) -> list[Finding] | None:
    findings = _integer(value)
    read = value if findings is None else findings[0].used
    return _one("must not be negative") if isinstance(read, int) and read < 0 else findings


def _text_or_number(value: object) -> list[Finding] | None:
    return _text(value) if isinstance(value, bool) or not isinstance(value, (int, float)) else None


def _boolean(value: object) -> list[Finding] | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, (int, str)) and (read := _BOOLEANS.get(str(value).strip().lower())) is not None:
        return _one("is not true or false, and read as such", read)
    return _one("must be true, false or null")


def _architecture(value: object) -> list[Finding] | None:
    if isinstance(value, str) and len(value) <= _MAX_TEXT and not _ARCHITECTURE.fullmatch(value):
        return _one("is not the name of an architecture")
    return _text(value) if value is None or isinstance(value, str) else _one("must be a string or null")


def _address(value: object) -> list[Finding] | None:
    if not value and (value is None or isinstance(value, str)):
        return None
    return None if addresses.parse(value) is not None else _one("must be an IP address, empty or null")


def _mac(value: object) -> list[Finding] | None:
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


def _list(check: Check | None, limit: int, effect: int = REPLACED) -> Check:
    """Return the check for null or a list of at most ``limit`` items; those that fail ``check`` are left out.

    :param effect: of a value that is no list
    """

    def each(value: object) -> list[Finding] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            return [Finding("", "must be a list or null", effect)]
        if len(value) > limit:
            return [Finding("", f"must have at most {limit} items", REFUSED)]
        if check is None:
            return None
        findings: list[Finding] = []
        for index, item in enumerate(value):
            if problems := check(item):
                findings += _below(index, problems)
        return findings

    return each


def _object(fields: Mapping[str, Check], *, required: tuple[str, ...] = (), effect: int = REPLACED,
            limit: int | None = None) -> Check:
    """Return the check for an object whose known ``fields``, if present, pass their checks.

    :param effect: of a value that is no object; unless that is ``REPLACED``, null is none
    :param required: fields without which the report is refused
    """

    def each(value: object) -> list[Finding] | None:
        if value is None and effect in (REPLACED, NOTED):
            return None
        if not isinstance(value, dict):
            return [Finding("", "must be an object" + (" or null" if effect in (REPLACED, NOTED) else ""), effect)]
        if limit is not None and len(value) > limit:
            return [Finding("", f"must have at most {limit} keys", REFUSED)]
        findings: list[Finding] = []
        for name, check in fields.items():
            if name in value:
                if problems := check(value[name]):
                    findings += _below(name, problems)
            elif name in required:
                findings.append(Finding(f"/{name}", "is required", REFUSED))
        return findings

    return each


def _fields(check: Check, *names: str) -> dict[str, Check]:
    return dict.fromkeys(names, check)


_INTERFACE = _object({
    "mac_address": _mac, "has_carrier": _boolean, "speed_mbps": _integer, "lldp": _list(None, 1024),
    **_fields(_address, "ipv4_address", "ipv6_address"),
    **_fields(_text, "name", "vendor", "product", "client_id", "biosdevname", "pci_address", "driver"),
}, effect=LEFT_OUT)
_DISK = _object({
    "rotational": _boolean, **_fields(_amount, "size", "logical_sectors", "physical_sectors"),
    **_fields(_text, "name", "model", "wwn", "serial", "vendor", "wwn_with_extension", "wwn_vendor_extension", "hctl",
              "by_path", "tran"),
}, effect=LEFT_OUT)
_INVENTORY = _object({
    "interfaces": _list(_INTERFACE, 1024),
    "disks": _list(_DISK, 4096),
    "cpu": _object({
        "frequency": _text_or_number, "flags": _list(_text, 4096), "architecture": _architecture,
        **_fields(_amount, "count", "socket_count"), **_fields(_text, "model_name"),
    }),
    "memory": _object(_fields(_amount, "total", "physical_mb")),
    "system_vendor": _object({
        "firmware": _object(_fields(_text, "vendor", "version", "build_date")),
        **_fields(_text, "product_name", "serial_number", "manufacturer"),
    }),
    "boot": _object(_fields(_text, "current_boot_mode", "pxe_interface")),
    **_fields(_address, "bmc_address", "bmc_v6address"), **_fields(_text, "hostname", "bmc_mac"),
}, effect=REFUSED)
#: Collectors' data are free-form: whatever is there is stored, and the hooks say what they cannot read.
_BODY = _object({
    "inventory": _INVENTORY, "pci_devices": _list(None, 65536, NOTED), "usb_devices": _list(None, 65536, NOTED),
    "data": _list(None, 65536, NOTED), "lldp_raw": _object({}, effect=NOTED, limit=1024),
}, required=("inventory",), effect=REFUSED)
