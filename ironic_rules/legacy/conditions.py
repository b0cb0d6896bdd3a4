"""Conditions of ironic-inspector, compiled to the conditions of inspection rules.

Each operator is one of theirs, applied to the value as ironic-inspector converted it: expressions to the text of any
value, which for a list, an object or null is that of Python. If data cannot be converted, the condition and its inverse
are false.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from ironic_rules.legacy import paths
from ironic_rules.legacy.paths import FieldPath
from ironic_rules.rules import index, operators, values
from ironic_rules.rules.compiled import Condition
from ironic_rules.rules.errors import CannotEvaluate, MissingPath
from ironic_rules.rules.getters import Getter, View
from ironic_rules.rules.index import Lookup
from ironic_rules.rules.limits import Limits
from ironic_rules.rules.regex import Pattern, compile_regex
from ironic_rules.rules.signatures import parse_address, parse_network

MULTIPLE = ("any", "all", "first")

#: Returns whether a value of the data meets a condition, and raises CannotEvaluate if it is not of a fitting type.
Test = Callable[[Any], bool]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
#: Tests of conditions in an index, and whether the condition is the inverse of the test.
_INDEXED = {"eq": (index.EQUAL, False), "ne": (index.EQUAL, True),
            "lt": (index.BELOW, False), "ge": (index.BELOW, True),
            "gt": (index.ABOVE, False), "le": (index.ABOVE, True)}
#: ``net`` is the name in the document, ``in-net`` that in ironic-inspector.
NETWORK = frozenset({"net", "in-net"})
OPERATORS = frozenset({*_COMPARE, *NETWORK, "matches", "contains", "is-empty"})
#: In a view: the texts of lists and objects, by their ids.
_TEXTS = "texts of values"
#: The flag with which ``$`` is the end of any line.
_MULTI_LINE = re.compile(r"\(\?[A-Za-z]*m")
#: Operators without a value, which also test a missing field.
ALLOW_NONE = frozenset({"is-empty"})


@dataclass(frozen=True, slots=True)
class Tested:
    """A test of one value, with what an index needs.

    :ivar test: the index's way to test, and ``operand`` its constant; None: an index cannot
    :ivar convert: converts a value to that which the index compares; its name is that of the conversion
    :ivar of_text: whether ``convert`` makes the text of a value, which is made once for all conditions
    """

    call: Test
    test: str | None = None
    operand: Hashable = None
    inverted: bool = False
    convert: Callable[[Any], Any] | None = None
    of_text: bool = False


def is_without_order(op: str, value: object) -> bool:
    """Return whether an operator compares by an order that a value does not have."""
    return op in ("lt", "le", "gt", "ge") and isinstance(value, dict)


def problem(op: str, value: object, limits: Limits) -> str | None:
    """Return why an operator cannot have this ``value``; None if it can."""
    try:
        if op in NETWORK:
            if not isinstance(value, str):
                return "must be a network as text, such as 192.0.2.0/24"
            parse_network(value)
        elif op in ("matches", "contains"):
            if not isinstance(value, str):
                return "must be a regular expression as text"
            if len(value) > limits.text:
                return f"longer than {limits.text} characters"
            compile_regex(value)
    except CannotEvaluate as exc:
        return str(exc)
    return None


def test_of(op: str, value: Any, limits: Limits) -> Tested:
    """Return the test of an operator of ours; the value is one without :func:`problem`."""
    if op in _COMPARE:
        return _comparison(op, value)
    if op in NETWORK:
        network = parse_network(value)
        return Tested(lambda subject: operators.in_net(_address(subject), network), index.NETWORK, network)
    if op == "is-empty":
        return Tested(operators.is_empty, index.PREDICATE, operators.is_empty)
    text = _text_within(limits.subject)
    search = as_search(value) if op == "matches" else value
    if search is None:
        whole = Pattern(value, limits.subject)
        return Tested(lambda subject: operators.matches(text(subject), whole), index.FULL_MATCH, whole,
                      convert=text, of_text=True)
    part = Pattern(search, limits.subject)
    return Tested(lambda subject: operators.contains(text(subject), part), index.SEARCH, part,
                  convert=text, of_text=True)


def as_search(value: str) -> str | None:
    """Return the expression to search for instead of that of ``matches``; None if it has to match the whole text.

    ironic-inspector appended ``$``, unless there was one, and matched from the beginning of the text: of alternatives,
    only the last one has to match all of it. One that becomes too long, or another one, has to match the whole text.
    """
    if "|" not in value and not value.endswith(r"\$") and _MULTI_LINE.search(value) is None:
        return None
    search = rf"\A(?:{value}{'' if value.endswith('$') else '$'})"
    try:
        compile_regex(search)
    except CannotEvaluate:
        return None
    return search


def _comparison(op: str, value: Any) -> Tested:
    compare = _COMPARE[op]
    convert = float if isinstance(value, float) else int if isinstance(value, int) else None

    def call(subject: Any) -> bool:
        try:
            return bool(compare(subject if convert is None else convert(subject), value))
        except (TypeError, ValueError, OverflowError):
            if convert is None:
                reason = "values of these types are not ordered"
            else:
                reason = f"the value is not {'a number' if convert is float else 'an integer'}"
            raise CannotEvaluate(reason) from None

    test, inverted = _INDEXED[op]
    if convert is None and not isinstance(value, str):
        return Tested(call)
    number = value if convert is None else convert(value)
    operand = frozenset({index.hash_key(number)}) if test == index.EQUAL else index.bound_of(number)
    return Tested(call, test, operand, inverted, convert)


def _address(subject: Any) -> str:
    if not isinstance(subject, str) or parse_address(subject) is None:
        raise CannotEvaluate("the value is not an IP address")
    return subject


@functools.lru_cache(maxsize=16)
def _text_within(most: int) -> Callable[[Any], str]:
    """Return the function of the text that expressions are applied to: that which Python shows of any value."""
    def text(subject: object) -> str:
        if isinstance(subject, str):
            return subject
        if isinstance(subject, _NoText):
            raise CannotEvaluate(subject.reason)
        if isinstance(subject, (list, dict)):
            _check_size(subject, most)
        try:
            return str(subject)
        except RecursionError:
            raise CannotEvaluate("the value is nested too deeply") from None

    return text


def _check_size(subject: object, most: int) -> None:
    """Check the length of the text of a list or an object, as far as that can be said without making it.

    :raises CannotEvaluate: it certainly has more than ``most`` characters
    """
    remaining, values = most, [subject]
    while values:
        value = values.pop()
        if isinstance(value, (str, list, dict)):
            remaining -= len(value)
            if remaining < 0:
                raise CannotEvaluate(f"the text of the value has more than {most} characters")
        if isinstance(value, dict):
            values += value
            values += value.values()
        elif isinstance(value, list):
            values += value


class _NoText(NamedTuple):
    """In the place of a text that cannot be made."""

    reason: str


def _as_text(view: View, subject: object, text: Callable[[Any], str]) -> Any:
    """Return the text of a list or object in data, made once for all conditions of a run; everything else as it is."""
    if subject.__class__ is not dict and subject.__class__ is not list:
        return subject
    texts = view.get(_TEXTS)
    if texts is None:
        texts = view[_TEXTS] = {}
    if id(subject) not in texts:
        try:
            result: Any = text(subject)
        except CannotEvaluate as exc:
            result = _NoText(str(exc))
        texts[id(subject)] = result, subject  # as long as this is kept, nothing else has its id
    return texts[id(subject)][0]


def compile_condition(op: str, field: FieldPath, test: Tested, multiple: str, invert: bool, *,
                      allow_none: bool) -> Condition:
    """Return the condition that tests a field.

    :param allow_none: whether a missing field is tested, as null
    """
    call = _inverted(test.call) if invert else test.call
    # Data do not change while rules run.
    text = test.convert if test.of_text and field.root == "data" else None
    if field.plain is not None:
        whole = _of_one(field.get, call, allow_none, text)
    else:
        whole = values.join_values(multiple, _items(field, allow_none, text), call)
    return Condition(op, whole, field.root == "data", _lookup(field, test, invert))


# Rules that came from a generator have the same few conditions.
@functools.lru_cache(maxsize=4096)
def shared(text: bytes, limits: Limits) -> Condition:
    """Return a condition of ours without problems: the same one for all that are written alike.

    :param text: field, op, parameters, multiple and invert as JSON
    """
    field, op, params, multiple, invert = orjson.loads(text)
    condition = compile_condition(op, paths.parse(field, limits.loop_items), test_of(op, params.get("value"), limits),
                                  multiple, invert, allow_none=op in ALLOW_NONE)
    return replace(condition, written=text)


def _inverted(test: Test) -> Test:
    return lambda subject: not test(subject)


def _of_one(get: Getter, test: Test, allow_none: bool, text: Callable[[Any], str] | None) -> Callable[[View], bool]:
    def call(view: View) -> bool:
        try:
            value = get(view)
        except MissingPath:
            if not allow_none:
                raise
            value = None
        return test(value if text is None else _as_text(view, value, text))

    return call


def _items(field: FieldPath, allow_none: bool, text: Callable[[Any], str] | None) -> values.Items:
    find = field.find

    def items(view: View) -> list[Any]:
        subjects = find(view)
        if subjects:
            return subjects if text is None else [_as_text(view, subject, text) for subject in subjects]
        if not allow_none:
            raise CannotEvaluate("the path finds nothing")
        return [None]

    return items


def _lookup(field: FieldPath, test: Tested, invert: bool) -> Lookup | None:
    """Return a lookup that is true whenever the condition is; it can be true for a missing value as well."""
    if field.plain is None or test.test is None or field.root != "data":
        return None
    convert = test.convert
    # An index has a table for each root and path; converted values are in tables of their own.
    root = field.root if convert is None else f"{field.root} as {convert.__name__}"
    get = _converted(field.get, convert)
    return Lookup(root, field.plain.steps, get, test.test, test.operand, test.inverted != invert)


@functools.lru_cache(maxsize=1024)
def _converted(get: Getter, convert: Callable[[Any], Any] | None) -> Getter:
    def converted(view: View) -> Any:
        try:
            value = get(view)
            return value if convert is None else convert(value)
        except (CannotEvaluate, TypeError, ValueError, OverflowError):
            return None

    return converted
