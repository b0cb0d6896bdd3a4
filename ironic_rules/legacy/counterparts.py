"""Counterparts of legacy conditions: the inspection rule's template for each key of ``data``, and its conditions.

The types are those of the reports of ironic-python-agent and of out-of-band inspection. For a field of unknown type, a
conversion notes the consequences.

A legacy condition is false for a missing field, inverted or not, and so is one whose data cannot be converted. So each
comparison is written without an inverse where that is possible, and otherwise with a second condition that the field
is there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jsonpath_ng.jsonpath import Fields, JSONPath, Wildcard

from ironic_rules.legacy import conditions, paths
from ironic_rules.legacy.paths import field_text
from ironic_rules.models.documents import JSONObject
from ironic_rules.rules import template
from ironic_rules.rules.limits import DEFAULT

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
    """The value that a template of an inspection rule reads.

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


def is_complete(counterpart: Counterpart) -> bool:
    """Return whether every item of the path's list has the field, and the list has only such items."""
    return counterpart.root == "inventory" and counterpart.steps[:1] != () and counterpart.steps[0] in _COMPLETE \
        and counterpart.kind is not Kind.UNKNOWN


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


Note = Callable[[str], None]

_INVERSE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
#: The index of each comparison of whole numbers: the operator, and what is added to the reference.
_STRICT = {"lt": ("lt", 0), "le": ("lt", 1), "gt": ("gt", 0), "ge": ("gt", -1)}
_SCALARS = frozenset({Kind.TEXT, Kind.WHOLE, Kind.FLAG})

NULL = "A field of null counts as missing; for ironic-inspector it differs from the reference."
NULL_ITEMS = "An item with null instead of a value meets the condition; for ironic-inspector it does not."
DIGITS = ("Only whole numbers, and texts of the digits 0 to 9, meet the condition; ironic-inspector also cut off the "
          "fraction of a number, and took true for 1.")
NUMBERS = "Only numbers meet the condition; ironic-inspector also converted text to a number."
ORDERED = "A value of another type meets the condition as well; for ironic-inspector it cannot be compared."
FLAGS = "Only true and false are compared; ironic-inspector took 1 and \"1\" for true."
DEEP = "1 and true are different here, in lists and objects too."
NO_TEXT = ("A list or an object is no text, and contains searches the items of a list; ironic-inspector searched the "
           "text that Python shows of it.")
NULL_TEXT = "Null is no text; ironic-inspector searched the text None."
NO_ADDRESS = "A text that is no address meets the condition as well; ironic-inspector failed."
IS_LIST = "The value before the wildcard is taken for a list; of an object, nothing meets the condition."
ITEMS = "An item without the field is a value that is missing; ironic-inspector left such items out."


@dataclass(frozen=True, slots=True)
class _Read:
    """The values that a condition reads, as templates.

    :ivar value: the field itself, or that of an item of the loop
    :ivar many: whether there is a loop
    :ivar has_objects: whether it is an object, or a list of objects
    """

    value: str
    kind: Kind
    loop: str | None = None
    multiple: str | None = None
    complete: bool = True
    null_is_missing: bool = False
    has_objects: bool = False

    @property
    def many(self) -> bool:
        return self.loop is not None

    @property
    def whole(self) -> str:
        return f"{self.value[:-1]}|int}}"


def convert(condition: Mapping[str, Any], note: Note) -> list[JSONObject]:
    """Return the conditions that together are equivalent to a legacy one, a valid one without a plug-in.

    :param note: called with each sentence on what differs
    :raises NoCounterpart: there are none; the text says why
    """
    op, invert = condition["op"], bool(condition.get("invert", False))
    if op not in conditions.OPERATORS:
        raise NoCounterpart(f"the operator {op} is a plug-in; inspection rules have no plug-ins for operators")
    read = _read(condition["field"], condition.get("multiple", "any"), note)
    if read.many and op in conditions.ALLOW_NONE:
        raise NoCounterpart("is-empty with a wildcard is true if nothing is found, which a loop cannot express")
    converted = _tests(read, op, condition.get("value"), invert, note)
    if read.many:
        multiple = {} if read.multiple == "any" else {"multiple": read.multiple}
        converted = [*_loop_guard(read, converted, note),
                     *({**test, "loop": read.loop, **multiple} for test in converted)]
    return [{**test, "args": _by_name(test["op"], test["args"])} for test in converted]


#: Names of the arguments of the operators that do not compare any number of values.
_NAMES = {"in-net": ("address", "subnet"), "contains": ("value", "regex"), "matches": ("value", "regex"),
          "is-empty": ("value",), "is-none": ("value",)}


def _by_name(op: str, args: list[object]) -> JSONObject:
    """Return arguments as Ironic wants them."""
    names = _NAMES.get(op.removeprefix("!"))
    return {"values": args} if names is None else dict(zip(names, args, strict=True))


def _loop_guard(read: _Read, tests: list[JSONObject], note: Note) -> list[JSONObject]:
    is_inverse = any(test["op"].startswith("!") for test in tests)
    if not read.complete and (is_inverse or read.multiple != "any"):
        note(ITEMS)
    # A condition over all items of an empty list is true.
    return [{"op": "!is-empty", "args": [read.loop]}] if read.multiple == "all" else []


def _tests(read: _Read, op: str, value: Any, invert: bool, note: Note) -> list[JSONObject]:
    if op == "is-empty":
        return [{"op": "!is-empty" if invert else "is-empty", "args": [read.value]}]
    if op in conditions.NETWORK:
        args = [read.value, literal(value)]
        if not invert:
            return [{"op": "in-net", "args": args}]
        note(NO_ADDRESS)
        return _guarded([{"op": "!in-net", "args": args}], read, note, "!is-empty")
    if op in ("matches", "contains"):
        return _expression(read, op, value, invert, note)
    return _comparison(read, _INVERSE[op] if invert else op, value, note)


def _expression(read: _Read, op: str, value: str, invert: bool, note: Note) -> list[JSONObject]:
    if read.has_objects:
        raise NoCounterpart("inspection rules do not search the text of an object: use the path of one of its fields")
    if read.kind not in _SCALARS:
        note(NO_TEXT)
    # Null does not meet the new condition; nor does it meet the inverse, unless it is an item.
    is_met_by_null = conditions.test_of(op, value, DEFAULT).call(None) is not invert
    if is_met_by_null is not (invert and read.many) and not read.null_is_missing:
        note(NULL_TEXT)
    search = conditions.as_search(value) if op == "matches" else None
    direct = {"op": op, "args": [read.value, regex(value)]} if search is None else {
        "op": "contains", "args": [read.value, regex(search)]}
    if not invert:
        return [direct]
    inverse = {**direct, "op": f"!{direct['op']}"}
    return [inverse] if read.many else [{"op": "!is-none", "args": [read.value]}, inverse]


def _guarded(inverses: list[JSONObject], read: _Read, note: Note, guard: str = "!is-none") -> list[JSONObject]:
    """Return inverse conditions with one that the field is there."""
    if read.many:
        note(NULL_ITEMS)
        return inverses
    return [{"op": guard, "args": [read.value]}, *inverses]


def _comparison(read: _Read, op: str, value: object, note: Note) -> list[JSONObject]:
    if isinstance(value, bool):
        return _of_flag(read, op, value, note)
    if isinstance(value, int):
        return _of_whole(read, op, value, note)
    if isinstance(value, float):
        if read.kind is not Kind.WHOLE:
            note(NUMBERS)
        return _ordered(read, op, value, note, doubt=read.kind is not Kind.WHOLE)
    if isinstance(value, str):
        return _ordered(read, op, literal(value), note, doubt=read.kind is not Kind.TEXT)
    if op not in ("eq", "ne"):
        raise NoCounterpart("lists and objects are not ordered in inspection rules")
    note(DEEP)
    return _equal(read, op, literal(value), note)


def _of_flag(read: _Read, op: str, value: bool, note: Note) -> list[JSONObject]:
    if op not in ("eq", "ne"):
        raise NoCounterpart("true and false are not ordered in inspection rules")
    if read.kind is not Kind.FLAG:
        note(FLAGS)
    return [{"op": "eq", "args": [read.value, value if op == "eq" else not value]}]


def _of_whole(read: _Read, op: str, value: int, note: Note) -> list[JSONObject]:
    if read.kind is not Kind.WHOLE:
        note(DIGITS)
    if op in _STRICT:
        strict, added = _STRICT[op]
        return [{"op": strict, "args": [read.whole, value + added]}]
    tests = [{"op": "eq" if op == "eq" else "!eq", "args": [read.whole, value]}]
    return tests if op == "eq" else _guarded(tests, read, note)


def _ordered(read: _Read, op: str, value: object, note: Note, *, doubt: bool) -> list[JSONObject]:
    if op in ("eq", "ne"):
        return _equal(read, op, value, note)
    if op in ("lt", "gt"):
        return [{"op": op, "args": [read.value, value]}]
    if doubt:
        note(ORDERED)
    return _guarded([{"op": f"!{'lt' if op == 'ge' else 'gt'}", "args": [read.value, value]}], read, note)


def _equal(read: _Read, op: str, value: object, note: Note) -> list[JSONObject]:
    if op == "eq":
        return [{"op": "eq", "args": [read.value, value]}]
    tests: list[JSONObject] = [{"op": "!eq", "args": [read.value, value]}]
    if read.many:
        # For both, null is a value that differs.
        return tests
    if not read.null_is_missing:
        note(NULL)
    return _guarded(tests, read, note)


def _read(field: str, multiple: str, note: Note) -> _Read:
    root, parts = paths.split(field)
    steps = tuple(_steps(parts))
    if steps.count(ANY) > 1:
        raise NoCounterpart("a condition has one loop, and the path has more than one wildcard")
    counterpart = of(root, steps)
    for text in counterpart.notes:
        note(text)
    has_objects = Kind.OBJECT in (counterpart.kind, counterpart.kind is Kind.LIST and of(root, (*steps, ANY)).kind)
    if ANY not in steps:
        return _Read(field_text(counterpart.root, counterpart.steps), counterpart.kind,
                     null_is_missing=counterpart.null_is_missing, has_objects=has_objects)
    return replace(_looped(counterpart, root, steps[:steps.index(ANY)], multiple, note), has_objects=has_objects)


def _looped(counterpart: Counterpart, root: str, before: tuple[str, ...], multiple: str, note: Note) -> _Read:
    at = counterpart.steps.index(ANY)
    prefix, rest = counterpart.steps[:at], counterpart.steps[at + 1:]
    if counterpart.root == "plugin_data" and prefix == ("parsed_lldp",):
        above = Kind.OBJECT
    else:
        above = of(root, before).kind
    if above is Kind.OBJECT:
        rest = ("value", *rest)
    elif above in _SCALARS:
        raise NoCounterpart("the value before the wildcard is neither a list nor an object")
    elif above is Kind.UNKNOWN:
        note(IS_LIST)
    return _Read(field_text("item", rest), counterpart.kind, field_text(counterpart.root, prefix), multiple,
                 is_complete(counterpart))


def _steps(parts: list[JSONPath]) -> Iterator[str]:
    for part in parts:
        is_any = isinstance(part, Wildcard) or (isinstance(part, Fields) and part.fields == (ANY,))
        step = ANY if is_any else paths.step(part)
        if step is None:
            raise NoCounterpart("the path has a part that templates do not have: only keys, indexes and one wildcard "
                                "can be converted")
        if step:
            yield step


def literal(value: object) -> Any:
    """Return a JSON value in which no text is a template."""
    if isinstance(value, str):
        return value.replace("{", "{{").replace("}", "}}")
    if isinstance(value, list):
        return [literal(item) for item in value]
    if isinstance(value, dict):
        # Keys are no templates.
        return {key: literal(item) for key, item in value.items()}
    return value


def regex(text: str) -> str:
    """Return a regular expression in which nothing is a template."""
    try:
        if template.parse(text, regex=True) in ((text,), ()):
            return text
    except template.TemplateError:
        pass
    out, is_escaped = [], False
    for index, character in enumerate(text):
        if character in "{}" and not is_escaped and not _is_quantifier(text, index):
            out.append("\\")
        out.append(character)
        is_escaped = character == "\\" and not is_escaped
    escaped = "".join(out)
    try:
        if template.parse(escaped, regex=True) == (escaped,):
            return escaped
    except template.TemplateError:
        pass
    raise NoCounterpart("the regular expression has braces that a template cannot have")


def _is_quantifier(text: str, index: int) -> bool:
    start = index if text[index] == "{" else text.rfind("{", 0, index)
    match = template.QUANTIFIER.match(text, start) if start >= 0 else None
    return match is not None and index in (start, match.end() - 1)
