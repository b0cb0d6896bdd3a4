"""Lookups: conditions that compare one value with a constant, in a form that the index can answer.

A condition has a lookup if and only if it tests the value at one path: ``{inventory[a]}``, optionally inverted. Loops,
several templates and text around a template have none, and are evaluated for each rule.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ironic_rules.rules.mask import Getter

#: The data whose lookups are answered by the index: rules change the others too often, or they are small.
ROOTS = frozenset({"inventory", "plugin_data"})

EQUAL, BELOW, ABOVE, NETWORK, PREDICATE, FULL_MATCH, SEARCH = (
    "equal", "below", "above", "network", "predicate", "full match", "search")
#: Tests that few of the possible values pass.
SELECTIVE = frozenset({EQUAL, NETWORK, FULL_MATCH, SEARCH})


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
