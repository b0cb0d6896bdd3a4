"""Conditions of legacy rules as conditions of inspection rules.

A legacy condition is false for a missing field, inverted or not, and so is one whose data cannot be converted. So each
comparison is written without an inverse where that is possible, and otherwise with a second condition that the field
is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jsonpath_ng.jsonpath import Fields, JSONPath, Wildcard

from ironic_rules.legacy import conditions, counterparts, paths
from ironic_rules.legacy.counterparts import ANY, Counterpart, Kind, NoCounterpart
from ironic_rules.legacy.paths import field_text
from ironic_rules.models.documents import JSONObject
from ironic_rules.rules import template
from ironic_rules.rules.limits import DEFAULT

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
    """What a condition reads, as templates.

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
    made = _tests(read, op, condition.get("value"), invert, note)
    if not read.many:
        return made
    multiple = {} if read.multiple == "any" else {"multiple": read.multiple}
    return [*_loop_guard(read, made, note), *({**each, "loop": read.loop, **multiple} for each in made)]


def _loop_guard(read: _Read, made: list[JSONObject], note: Note) -> list[JSONObject]:
    is_inverse = any(each["op"].startswith("!") for each in made)
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
    made = {"op": op, "args": [read.value, regex(value)]} if search is None else {
        "op": "contains", "args": [read.value, regex(search)]}
    if not invert:
        return [made]
    inverse = {**made, "op": f"!{made['op']}"}
    return [inverse] if read.many else [{"op": "!is-none", "args": [read.value]}, inverse]


def _guarded(made: list[JSONObject], read: _Read, note: Note, guard: str = "!is-none") -> list[JSONObject]:
    """Return inverse conditions with one that the field is there."""
    if read.many:
        note(NULL_ITEMS)
        return made
    return [{"op": guard, "args": [read.value]}, *made]


def _comparison(read: _Read, op: str, value: Any, note: Note) -> list[JSONObject]:
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
    made = [{"op": "eq" if op == "eq" else "!eq", "args": [read.whole, value]}]
    return made if op == "eq" else _guarded(made, read, note)


def _ordered(read: _Read, op: str, value: Any, note: Note, *, doubt: bool) -> list[JSONObject]:
    if op in ("eq", "ne"):
        return _equal(read, op, value, note)
    if op in ("lt", "gt"):
        return [{"op": op, "args": [read.value, value]}]
    if doubt:
        note(ORDERED)
    return _guarded([{"op": f"!{'lt' if op == 'ge' else 'gt'}", "args": [read.value, value]}], read, note)


def _equal(read: _Read, op: str, value: Any, note: Note) -> list[JSONObject]:
    if op == "eq":
        return [{"op": "eq", "args": [read.value, value]}]
    made: list[JSONObject] = [{"op": "!eq", "args": [read.value, value]}]
    if read.many:
        # For both, null is a value that differs.
        return made
    if not read.null_is_missing:
        note(NULL)
    return _guarded(made, read, note)


def _read(field: str, multiple: str, note: Note) -> _Read:
    root, parts = paths.split(field)
    steps = tuple(_steps(parts))
    if steps.count(ANY) > 1:
        raise NoCounterpart("a condition has one loop, and the path has more than one wildcard")
    found = counterparts.of(root, steps)
    for text in found.notes:
        note(text)
    has_objects = Kind.OBJECT in (found.kind, found.kind is Kind.LIST and counterparts.of(root, (*steps, ANY)).kind)
    if ANY not in steps:
        return _Read(field_text(found.root, found.steps), found.kind, null_is_missing=found.null_is_missing,
                     has_objects=has_objects)
    return replace(_looped(found, root, steps[:steps.index(ANY)], multiple, note), has_objects=has_objects)


def _looped(found: Counterpart, root: str, before: tuple[str, ...], multiple: str, note: Note) -> _Read:
    at = found.steps.index(ANY)
    prefix, rest = found.steps[:at], found.steps[at + 1:]
    if found.root == "plugin_data" and prefix == ("parsed_lldp",):
        above = Kind.OBJECT
    else:
        above = counterparts.of(root, before).kind
    if above is Kind.OBJECT:
        rest = ("value", *rest)
    elif above in _SCALARS:
        raise NoCounterpart("the value before the wildcard is neither a list nor an object")
    elif above is Kind.UNKNOWN:
        note(IS_LIST)
    return _Read(field_text("item", rest), found.kind, field_text(found.root, prefix), multiple,
                 counterparts.is_complete(found))


def _steps(parts: list[JSONPath]) -> Iterator[str]:
    for part in parts:
        is_any = isinstance(part, Wildcard) or (isinstance(part, Fields) and part.fields == (ANY,))
        step = ANY if is_any else paths.step(part)
        if step is None:
            raise NoCounterpart("the path has a part that templates do not have: only keys, indexes and one wildcard "
                                "can be converted")
        if step:
            yield step


def literal(value: Any) -> Any:
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
    made = "".join(out)
    try:
        if template.parse(made, regex=True) == (made,):
            return made
    except template.TemplateError:
        pass
    raise NoCounterpart("the regular expression has braces that a template cannot have")


def _is_quantifier(text: str, index: int) -> bool:
    start = index if text[index] == "{" else text.rfind("{", 0, index)
    found = template.QUANTIFIER.match(text, start) if start >= 0 else None
    return found is not None and index in (start, found.end() - 1)
