"""Hints that select disks: ``properties/root_device`` and ``properties/skip_block_devices`` of a node.

A hint is ``{attribute: expression}``, and a disk of the inventory matches if all its attributes do. An expression is a
value, or an operator of oslo.utils' specs matcher and a value, such as ``>= 100`` or ``<or> WDC <or> Seagate``. The
comparison of texts is case-insensitive. Hints are accepted and match as in ironic-python-agent's deployments (its
``device_hints``), except that ``<or>`` and ``<range-in>`` are also supported for ``size``.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from oslo_utils import strutils, units

from ironic_rules.models.documents import JSON

#: attributes of a disk that are texts, or lists of texts of which one must match
TEXTS = frozenset({
    "name", "by_path", "hctl", "tran", "vendor", "model", "serial", "wwn", "wwn_with_extension", "wwn_vendor_extension",
})
ATTRIBUTES = TEXTS | {"size", "rotational"}

_TEXT_OPERATORS = frozenset({"s==", "s!=", "s<", "s<=", "s>", "s>=", "<in>", "<or>"})
_RANGE = "<range-in>"
_NUMBER_OPERATORS = frozenset({"=", "==", "!=", "<", "<=", ">", ">=", "<or>", _RANGE})
_BOUNDS = re.compile(r"([\[(])\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s+([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([\])])")

#: Deploy interfaces with which ironic-python-agent itself selects the root disk.
OF_AGENT = frozenset({"custom-agent", "direct"})

#: returns whether a disk matches
Hint = Callable[[Mapping[str, Any]], bool]


class BadHint(ValueError):
    """A hint is malformed. The message has its JSON pointer in the node."""


def parse(hint: JSON, where: str) -> Hint:
    """Return a function that determines whether a disk matches ``hint``, an object.

    :param where: JSON pointer of the hint, for messages
    :raises BadHint: it is not an object, or has an unknown attribute or a malformed expression
    """
    if not isinstance(hint, Mapping):
        raise BadHint(f"{where} is not an object")
    if not hint:
        raise BadHint(f"{where} is empty")
    unknown = sorted(set(hint) - ATTRIBUTES)
    if unknown:
        raise BadHint(f"{where}/{unknown[0]} is not an attribute of a disk; valid: {', '.join(sorted(ATTRIBUTES))}")
    tests = [(_PARSERS.get(name, _text)(expression, f"{where}/{name}"), name) for name, expression in hint.items()]
    return lambda disk: all(fits(disk.get(name)) for fits, name in tests)


def is_plain(value: str) -> bool:
    """Return whether ``value`` as an expression is a plain text without an operator."""
    return bool(value.strip()) and _operator().match(value.strip()) is None


@functools.cache
def _operator() -> re.Pattern[str]:
    # Longer operators come before their prefixes.
    return re.compile("|".join(map(re.escape, sorted(_comparisons(), key=len, reverse=True))), re.IGNORECASE)


def _comparisons() -> Mapping[str, Callable[..., bool]]:
    """Return the operators and their functions."""
    from oslo_utils import specs_matcher  # has a parser: 3 MiB, which only hints need

    methods: Mapping[str, Callable[..., bool]] = specs_matcher.op_methods
    return methods


def _split(expression: str, where: str) -> tuple[str, list[str]]:
    """Return the operator, empty if there is none, and its values."""
    match = _operator().match(expression)
    used = match[0] if match else ""
    parts = expression[len(used):].split("<or>") if used == "<or>" else [expression[len(used):]]
    values = [part.strip() for part in parts]
    if not all(values):
        raise BadHint(f"{where} lacks a value")
    return used, values


def _text(expression: JSON, where: str) -> Callable[[Any], bool]:
    if not isinstance(expression, str):
        raise BadHint(f"{where} is not a text")
    used, values = _split(expression.strip().lower(), where)
    if used and used not in _TEXT_OPERATORS:
        raise BadHint(f"{where}: the operator {used} is not for texts; valid: {', '.join(sorted(_TEXT_OPERATORS))}")
    compare = _comparisons()[used or "s=="]

    def fits(reported: object) -> bool:
        if reported is None:
            # A disk without the attribute differs from any value.
            return used == "s!="
        texts = reported if isinstance(reported, list) else [reported]
        return any(compare(text.strip().lower(), *values) for text in texts if isinstance(text, str) and text.strip())

    return fits


def _size(expression: JSON, where: str) -> Callable[[Any], bool]:
    if isinstance(expression, bool) or not isinstance(expression, (int, str)):
        raise BadHint(f"{where} is neither a number of GiB nor a text")
    used, values = _split(str(expression).strip().lower(), where)
    if used and used not in _NUMBER_OPERATORS:
        raise BadHint(f"{where}: the operator {used} is not for numbers; valid: {', '.join(sorted(_NUMBER_OPERATORS))}")
    if used == _RANGE:
        return _size_range(values[0], where)
    if not all(re.fullmatch(r"\+?[0-9]{1,15}", value) and int(value) > 0 for value in values):
        raise BadHint(f"{where} is not a positive whole number of GiB")
    compare: Callable[..., bool] = _comparisons()[used] if used else operator.eq
    numbers = [float(value) for value in values]
    return lambda size: is_size(size) and compare(size / units.Gi, *numbers)


def _size_range(text: str, where: str) -> Callable[[Any], bool]:
    match = _BOUNDS.fullmatch(text)
    if match is None or float(match[2]) > float(match[3]):
        raise BadHint(f"{where}: {_RANGE} lacks two numbers of GiB in brackets, such as {_RANGE} [ 100 500 ]")
    is_in = _comparisons()[_RANGE]
    bounds = match.groups()
    return lambda size: is_size(size) and is_in(str(size / units.Gi), *bounds)


def agent_problem(hint: JSON, where: str) -> str | None:
    """Return why ironic-python-agent would not deploy with a hint that is valid here; None if it would."""
    size = hint.get("size") if isinstance(hint, Mapping) else None
    if isinstance(size, str) and _RANGE in size.lower():
        return (f"{where}/size: ironic-python-agent has no {_RANGE}: an inspection can use it, but no deployment "
                f"interface of the agent ({', '.join(sorted(OF_AGENT))}); use one comparison, such as >= 100")
    return None


def _rotational(expression: JSON, where: str) -> Callable[[Any], bool]:
    try:
        rotational = strutils.bool_from_string(expression, strict=True)
    except ValueError as exc:
        raise BadHint(f"{where} is neither true nor false") from exc

    def fits(reported: object) -> bool:
        try:
            return strutils.bool_from_string(reported, strict=True) is rotational
        except ValueError:
            return False

    return fits


def is_size(value: JSON) -> bool:
    """Return whether ``value`` can be the size of a disk, in bytes."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_PARSERS: dict[str, Callable[[Any, str], Callable[[Any], bool]]] = {"size": _size, "rotational": _rotational}
