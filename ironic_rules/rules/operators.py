"""The operators of conditions. Each is a small function whose parameters are the arguments in a rule.

The engine implements ``!``, ``loop``, ``multiple`` and templates; operators receive plain values only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ironic_rules.models.documents import JSON, same
from ironic_rules.rules.regex import Pattern, searched_texts, text_of
from ironic_rules.rules.signatures import (
    Address,
    FactName,
    Flag,
    Operation,
    Regex,
    Registry,
    Subnet,
    Values,
    parse_address,
    read_parameters,
)


def _read(name: str, function: Callable[..., bool]) -> Operation:
    parameters = read_parameters(function, skip=0)
    # A condition without any value is certainly a mistake: it would hold for every node.
    return Operation(name, function, tuple(
        replace(parameter, required=True) if parameter.variadic else parameter for parameter in parameters),
        function.__doc__ or "", absent=_ABSENT.get(name))


#: Results of comparisons for equality if a value is missing: it equals nothing, not even another missing one.
_ABSENT = {"eq": False, "ne": True, "one-of": False}
EQUALITY = frozenset(_ABSENT)


OPERATORS = Registry("operator", _read)


@OPERATORS.add("is-true")
def is_true(value: object) -> bool:
    """True for true, a number other than zero, and the strings "yes" and "true" in any case.

    :param value: anything; some values are neither true nor false

    .. rule:: {op: is-true, args: {value: "{inventory[interfaces][0][has_carrier]}"}}
    """
    if isinstance(value, str):
        return value.lower() in ("yes", "true")
    return isinstance(value, (bool, int, float)) and bool(value)


@OPERATORS.add("is-false")
def is_false(value: object) -> bool:
    """True for false, zero, null, a missing value, and the strings "no" and "false" in any case.

    :param value: anything; some values are neither true nor false

    .. rule:: {op: is-false, args: {value: "{plugin_data[skip_checks]}"}}
    """
    if isinstance(value, str):
        return value.lower() in ("no", "false")
    return value is None or (isinstance(value, (bool, int, float)) and not value)


@OPERATORS.add("is-none")
def is_none(value: object) -> bool:
    """True for null and for a missing value.

    :param value: anything

    .. rule:: {op: is-none, args: {value: "{inventory[bmc_v6address]}"}}
    """
    return value is None


@OPERATORS.add("is-empty")
def is_empty(value: object) -> bool:
    """True for null, a missing value, and an empty string, list or object. Zero and false are not empty.

    :param value: anything

    .. rule:: {op: is-empty, args: {value: "{inventory[system_vendor][serial_number]}"}}
    """
    return value is None or (isinstance(value, (str, list, dict)) and not value)


@OPERATORS.add("in-net")
def in_net(address: Address, subnet: Subnet) -> bool:
    """True when ``address`` is in ``subnet``; false when it is not an address.

    :param address: an IPv4 or IPv6 address, optionally with a zone (``fe80::1%eth0``)
    :param subnet: a network in CIDR form; host bits may be set

    .. rule:: {op: in-net, args: {address: "{inventory[bmc_address]}", subnet: 192.0.2.0/24}}
    """
    parsed = parse_address(address) if isinstance(address, str) else None
    return parsed is not None and parsed[0] == subnet.version and subnet.first <= parsed[1] <= subnet.last


@OPERATORS.add("contains")
def contains(value: object, regex: Regex) -> bool:
    """True when ``regex`` matches anywhere in ``value``, or in one of its elements if that is a list.

    :param value: a string; numbers and Booleans are converted to text, null and objects never match
    :param regex: a regular expression in RE2 syntax (linear time; no look-around, no back references)

    .. rule:: {op: contains, args: {value: "{inventory[system_vendor][manufacturer]}", regex: "(?i)dell"}}
    """
    if isinstance(value, list):
        return regex.is_in_any(searched_texts(value))
    text = text_of(value)
    return text is not None and regex.is_in(text)


@OPERATORS.add("matches")
def matches(value: object, regex: Regex) -> bool:
    """True when ``regex`` matches the whole of ``value``.

    :param value: a string; numbers and Booleans are converted to text, null, lists and objects never match
    :param regex: a regular expression in RE2 syntax (linear time; no look-around, no back references)

    If ``regex`` has no templates, the rule's actions can read its named groups: ``(?P<rack>..)`` is ``{match[rack]}``.

    .. rule:: {op: matches, args: {value: "{inventory[hostname]}", regex: "rack[0-9]{2}-.*"}}
    """
    text = text_of(value)
    return text is not None and regex.is_all_of(text)


def _matched_groups(value: object, regex: Pattern) -> dict[str, str | None] | None:
    text = text_of(value)
    return None if text is None else regex.groups_of(text)


#: Operators whose named groups actions can read; each with a function that returns the groups instead of true, and None
#: instead of false.
CAPTURES: dict[Callable[..., bool], Callable[[Any, Pattern], dict[str, str | None] | None]] = {
    matches: _matched_groups}


@OPERATORS.add("changed")
def changed(fact: FactName) -> bool:
    """True when the node has another value of ``fact`` than after the inspection before, or only one of them had one.

    It is false in the first inspection of a node.

    :param fact: the name of a fact, without templates

    .. rule:: {op: changed, args: {fact: memory_gib}}
    """
    now, before = fact
    return not same(now, before)


@OPERATORS.add("one-of")
def one_of(value: Any, values: Values) -> bool:
    """True when ``value`` equals one of ``values``. A missing value equals none.

    :param value: anything
    :param values: a list, or a template that returns one

    .. rule:: {op: one-of, args: {value: "{inventory[cpu][count]}", values: [8, 16, 40]}}
    """
    # A text equals no other type, so that the faster "in" is exact.
    return value in values if value.__class__ is str else any(same(value, item) for item in values)


_PLAIN_NUMBERS = frozenset({int, float})


def _less(a: Any, b: Any) -> bool:
    kind, other = a.__class__, b.__class__
    if kind in _PLAIN_NUMBERS and other in _PLAIN_NUMBERS:
        return bool(a < b)
    if (isinstance(a, str) and isinstance(b, str)) or (_is_number(a) and _is_number(b)):
        return bool(a < b)
    return False


def _greater(a: Any, b: Any) -> bool:
    # As _less(b, a), without another call.
    kind, other = a.__class__, b.__class__
    if kind in _PLAIN_NUMBERS and other in _PLAIN_NUMBERS:
        return bool(a > b)
    return _less(b, a)


def _at_least(a: JSON, b: JSON) -> bool:
    return _greater(a, b) or (_is_ordered(a) and same(a, b))


def _at_most(a: JSON, b: JSON) -> bool:
    return _at_least(b, a)


def _is_ordered(value: object) -> bool:
    return isinstance(value, str) or _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


#: Operators whose call with exactly two values is one comparison; compiled conditions call that directly.
PAIRS: dict[Callable[..., bool], Callable[[Any, Any], bool]] = {}


def _pairwise(name: str, compare: Callable[[Any, Any], bool], doc: str,
              decide: Callable[[Iterable[bool]], bool] = all) -> None:
    def operator(*values: Any, force_strings: Flag = False) -> bool:
        if force_strings:
            values = tuple(str(value) for value in values)
        if len(values) == 2:
            return compare(values[0], values[1])
        return decide(compare(a, b) for a, b in itertools.pairwise(values))

    operator.__name__ = name
    operator.__doc__ = doc
    OPERATORS.add(name, operator)
    if decide is all:
        PAIRS[operator] = compare


_PAIRWISE_DOC = """True when {meaning}.{rest}

    :param values: the values: ``[a, b]``, ``{{values: [a, b]}}`` and ``[[a, b]]`` are equivalent
    :param force_strings: compare the values as text instead

    .. rule:: {example}
    """

_UNLIKE = " Always true for a single value; false for values of different types."

_pairwise("eq", same, _PAIRWISE_DOC.format(
    meaning="all values are equal, at any depth (40 and 40.0 are, 40 and \"40\" or 1 and true are not)",
    rest=f" A missing\n    value equals nothing, not even another missing one.{_UNLIKE}",
    example='{op: eq, args: {values: ["{inventory[cpu][architecture]}", x86_64]}}'))
_pairwise("lt", _less, _PAIRWISE_DOC.format(
    meaning="each value is less than the next", rest=_UNLIKE,
    example='{op: lt, args: {values: ["{inventory[memory][physical_mb]}", 65536]}}'))
_pairwise("gt", _greater, _PAIRWISE_DOC.format(
    meaning="each value is greater than the next", rest=_UNLIKE,
    example='{op: gt, args: {values: ["{inventory[cpu][count]}", 16]}}'))
_pairwise("le", _at_most, _PAIRWISE_DOC.format(
    meaning="each value is less than the next, or equal to it", rest=_UNLIKE,
    example='{op: le, args: {values: ["{inventory[cpu][count]}", 64]}}'))
_pairwise("ge", _at_least, _PAIRWISE_DOC.format(
    meaning="each value is greater than the next, or equal to it", rest=_UNLIKE,
    example='{op: ge, args: {values: ["{inventory[cpu][count]}", 8]}}'))
_pairwise("ne", lambda a, b: not same(a, b), _PAIRWISE_DOC.format(
    meaning="``eq`` is not: a value differs from the next, or is missing", rest=" Always false for a single value.",
    example='{op: ne, args: {values: ["{inventory[cpu][architecture]}", aarch64]}}'), any)
