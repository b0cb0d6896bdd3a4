"""Lookups: conditions that compare one value with a constant, in a form that the index can answer.

A condition has a lookup if and only if it tests the value at one path: ``{inventory[a]}``, optionally inverted. Loops,
several templates and text around a template have none, and are evaluated for each rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ironic_rules.rules import operators
from ironic_rules.rules.arguments import Bound
from ironic_rules.rules.getters import Getter
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.values import Compiled, Const

#: The data whose lookups are answered by the index: rules change the others too often, or they are small.
ROOTS = frozenset({"inventory", "plugin_data"})

EQUAL, BELOW, ABOVE, NETWORK, PREDICATE, FULL_MATCH, SEARCH = (
    "equal", "below", "above", "network", "predicate", "full match", "search")
#: Tests that few of the possible values pass.
SELECTIVE = frozenset({EQUAL, NETWORK, FULL_MATCH, SEARCH})

_PREDICATES = frozenset({operators.is_true, operators.is_false, operators.is_none, operators.is_empty})
_PATTERNS = {operators.matches: FULL_MATCH, operators.contains: SEARCH}
_EQ, _LT, _GT = (OPERATORS.get(name).call for name in ("eq", "lt", "gt"))
#: The test of a path by its place: ``path < constant`` and ``constant < path``.
_ORDERED = {_LT: (BELOW, ABOVE), _GT: (ABOVE, BELOW)}


@dataclass(frozen=True, slots=True)
class Lookup:
    """A condition on the value at ``steps`` of ``root``.

    :ivar test: how the value is compared with the operand
    :ivar operand: ``equal``: the keys of the constants, of which the value must have one; ``below``, ``above``: the
        bound, None if no value passes; ``network``: the network; ``predicate``: the function; otherwise the pattern
    :ivar inverted: whether the condition is true if the test fails
    """

    root: str
    steps: tuple[str, ...]
    get: Getter
    test: str
    operand: Hashable
    inverted: bool


def lookup(function: Callable[..., bool], bound: Bound, *, inverted: bool) -> Lookup | None:
    """Return the lookup of a condition; None if it has no such form."""
    if bound.named or bound.rest is not None or not bound.positional:
        return None
    path, *rest = bound.positional
    if len(rest) == 1 and isinstance(path, Const) and (function is _EQ or function in _ORDERED):
        return _of_path(rest[0], _test(function, path, 1), inverted)
    return _of_path(path, _test(function, rest[0] if rest else None, 0) if len(rest) < 2 else None, inverted)


def _of_path(compiled: Compiled, test: tuple[str, Hashable] | None, inverted: bool) -> Lookup | None:
    if test is None or isinstance(compiled, Const) or compiled.path is None or compiled.path.root not in ROOTS:
        return None
    return Lookup(compiled.path.root, compiled.path.steps, compiled.get, *test, inverted)


def _test(function: Callable[..., bool], operand: Any, place: int) -> tuple[str, Hashable] | None:
    """Return test and operand of a function of a path at ``place`` of the arguments, and one other argument or None."""
    if operand is None:
        return (PREDICATE, function) if function in _PREDICATES else None
    if not isinstance(operand, Const):
        return None
    value = operand.value
    if function is _EQ:
        return EQUAL, frozenset({key(value)})
    if function is operators.one_of:
        return EQUAL, frozenset(map(key, value))
    if function in _ORDERED:
        return _ORDERED[function][place], bound_of(value)
    if function is operators.in_net:
        return NETWORK, value
    return (_PATTERNS[function], value) if function in _PATTERNS else None


def key(value: Any, *, deep: bool = True) -> Hashable:
    """Return the key of JSON-like data: equal for two values if and only if ``eq`` finds them equal.

    :param deep: whether lists and objects, which can be large, have keys of their own; otherwise it is that of no
        constant
    """
    if value.__class__ is str:
        return value  # type: ignore[no-any-return]
    if isinstance(value, bool):
        return bool, value
    if value is None:
        return (None,)
    if isinstance(value, (int, float)):
        return float, value
    if deep and isinstance(value, dict):
        return dict, frozenset((name, key(item)) for name, item in value.items())
    if deep and isinstance(value, (list, tuple)):
        return list, tuple(map(key, value))
    return value if isinstance(value, str) else ()


def is_of_container(found: Hashable) -> bool:
    """Return whether a key is that of a list or an object."""
    return isinstance(found, tuple) and len(found) == 2 and found[0] in (dict, list)


def bound_of(value: Any) -> Hashable:
    """Return a number or text with which values can be compared; None for other values."""
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
