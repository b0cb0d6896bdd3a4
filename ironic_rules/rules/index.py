"""An index of rules: finds the rules that can match an inventory without evaluating the others.

The inventory does not change while rules run. A condition that is true if and only if one of its values equals a
constant (``eq``, ``one-of``) becomes an entry of a table: the value is looked up once per inspection and table, and
rules with other constants are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.rules.arguments import Bound
from ironic_rules.rules.mask import View
from ironic_rules.rules.operators import CONSTANTS
from ironic_rules.rules.values import Const, Getter, Path

_INDEXED = frozenset({str, bool, int, float, type(None)})


@dataclass(frozen=True, slots=True)
class Lookup:
    """A condition that is true if and only if the value at ``steps`` of the inventory has one of the ``keys``."""

    steps: tuple[str, ...]
    get: Getter
    keys: frozenset[Hashable]


def lookup(function: Callable[..., bool], bound: Bound) -> Lookup | None:
    """Return the lookup of a condition; None if it has no such form."""
    if function not in CONSTANTS or bound.named or bound.rest is not None or len(bound.positional) != 2:
        return None
    path, constant = bound.positional
    if isinstance(path, Const) and CONSTANTS[function].symmetric:
        path, constant = constant, path
    if not isinstance(path, Path) or path.field.root != "inventory" or not isinstance(constant, Const):
        return None
    constants = CONSTANTS[function].of(constant.value)
    if not all(type(value) in _INDEXED for value in constants):
        return None
    return Lookup(path.field.steps, path.get, frozenset(map(key, constants)))


def key(value: Any) -> Hashable:
    """Return the key of a value: equal for two values if and only if ``eq`` finds them equal.

    The key of dicts and lists is that of no constant.
    """
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, (int, float)):
        return float, value
    return (None,) if value is None else ()


class Index:
    """Rules by their lookups.

    :param rules: for each rule, in order: the lookups of its conditions (None if they have none), whether it is
        sensitive
    """

    __slots__ = ("_always", "_tables", "chosen")

    def __init__(self, rules: Sequence[tuple[Sequence[Lookup | None], bool]]) -> None:
        common = Counter(
            (found.steps, value) for lookups, _ in rules for found in lookups if found is not None
            for value in found.keys)
        tables: dict[tuple[tuple[str, ...], bool], tuple[Getter, dict[Hashable, list[int]]]] = {}
        always = []
        #: for each rule the position of the condition that is true whenever the rule is a candidate, or None
        self.chosen: list[int | None] = []
        for number, (lookups, sensitive) in enumerate(rules):
            # The rarest constant excludes the rule most often.
            usable = [
                (sum(common[found.steps, value] for value in found.keys), place)
                for place, found in enumerate(lookups) if found is not None]
            place = min(usable)[1] if usable else None
            self.chosen.append(place)
            found = None if place is None else lookups[place]
            if found is None:
                always.append(number)
                continue
            _, table = tables.setdefault((found.steps, sensitive), (found.get, {}))
            for value in found.keys:
                table.setdefault(value, []).append(number)
        self._always = tuple(always)
        self._tables = tuple((sensitive, get, table) for (_, sensitive), (get, table) in tables.items())

    def candidates(self, view: View, sensitive_view: View) -> Sequence[int]:
        """Return the numbers of the rules that may match, in order.

        :param view: the view of rules that are not sensitive
        :param sensitive_view: the view of those that are
        """
        found: list[int] = []
        for is_sensitive, get, table in self._tables:
            found += table.get(key(get(sensitive_view if is_sensitive else view)), ())
        if not found:
            return self._always
        # Sorting a concatenation of sorted sequences merges them.
        return sorted((*self._always, *found))
