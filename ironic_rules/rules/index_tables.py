"""The tables of an index: rules grouped by the constants with which their conditions compare the same value.

There is a class for each way of comparing, and one for its inverse. Each finds the groups whose conditions are true for
a value without going through the others, and then gives the numbers of their rules.

Tables are immutable. A changed one shares with the old one all that is not affected.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

from ironic_rules.rules import lookups
from ironic_rules.rules.lookups import Lookup
from ironic_rules.rules.networks import parse_address
from ironic_rules.rules.pattern_sets import PatternSets
from ironic_rules.rules.regex import searched_texts, text_of

#: Numbers of rules by the constant of their condition.
Groups = dict[Any, tuple[int, ...]]
#: For each rule, its lookup and its number.
Numbered = Iterable[tuple[Lookup, int]]


class Table:
    """Rules by the operands of their lookups.

    :param test: that of all the lookups
    :ivar groups: the numbers of the rules of each group, in order
    """

    __slots__ = ("groups", "test")

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        self.test = test
        self.groups = groups or {}

    @staticmethod
    def keys(lookup: Lookup) -> Iterable[Hashable]:
        """Return the groups that a rule with this lookup belongs to."""
        return (lookup.operand,)

    def changed(self, removed: Numbered, added: Numbered) -> Table:
        """Return the table with other rules."""
        return type(self)(self.test, self._regrouped(removed, added))

    def _regrouped(self, removed: Numbered, added: Numbered) -> Groups:
        changes: defaultdict[Hashable, tuple[set[int], list[int]]] = defaultdict(lambda: (set(), []))
        for lookup, number in removed:
            for group in self.keys(lookup):
                changes[group][0].add(number)
        for lookup, number in added:
            for group in self.keys(lookup):
                changes[group][1].append(number)
        groups = dict(self.groups)
        for group, (gone, new) in changes.items():
            numbers = tuple(sorted([*(old for old in groups.pop(group, ()) if old not in gone), *new]))
            if numbers:
                groups[group] = numbers
        return groups

    def tidied(self) -> Table:
        """Return the table in its fastest form; this one if it is."""
        return self

    def find(self, value: Any, found: list[int]) -> None:
        """Add the numbers of the rules whose condition is true for ``value``."""
        raise NotImplementedError

    def _but(self, passed: Collection[Any], found: list[int]) -> None:
        """Add the numbers of all groups but those."""
        for group, numbers in self.groups.items():
            if group not in passed:
                found += numbers


class _Equal(Table):
    """By the keys of constants: a rule with several constants belongs to several groups."""

    __slots__ = ("_has_containers",)

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._has_containers = any(map(lookups.is_of_container, self.groups))

    @staticmethod
    def keys(lookup: Lookup) -> Iterable[Hashable]:
        return lookup.operand  # type: ignore[return-value]

    def find(self, value: Any, found: list[int]) -> None:
        if numbers := self.groups.get(lookups.key(value, deep=self._has_containers)):
            found += numbers


class _NotEqual(Table):
    """By the set of the keys of all constants."""

    __slots__ = ("_has_containers",)

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._has_containers = any(lookups.is_of_container(key) for keys in self.groups for key in keys)

    def find(self, value: Any, found: list[int]) -> None:
        key = lookups.key(value, deep=self._has_containers)
        for constants, numbers in self.groups.items():
            if key not in constants:
                found += numbers


class _Ordered(Table):
    """By bounds, numbers and texts, each sorted; None is a bound that no value passes."""

    __slots__ = ("_numbers", "_texts")

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._numbers: list[Any] = sorted(bound for bound in self.groups if isinstance(bound, (int, float)))
        self._texts: list[Any] = sorted(bound for bound in self.groups if isinstance(bound, str))

    def _parts(self, value: Any) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Return the comparable bounds that ``value`` passes, those that it does not, and those of other types."""
        bound = lookups.bound_of(value)
        if bound is None or bound != bound:
            return (), (), (*self._numbers, *self._texts)
        bounds, others = (self._texts, self._numbers) if isinstance(bound, str) else (self._numbers, self._texts)
        if self.test == lookups.BELOW:
            place = bisect.bisect_right(bounds, value)
            return bounds[place:], bounds[:place], others
        place = bisect.bisect_left(bounds, value)
        return bounds[:place], bounds[place:], others

    def find(self, value: Any, found: list[int]) -> None:
        for bound in self._parts(value)[0]:
            found += self.groups[bound]


class _NotOrdered(_Ordered):
    __slots__ = ()

    def find(self, value: Any, found: list[int]) -> None:
        _, failed, others = self._parts(value)
        for bound in (*failed, *others, None):
            found += self.groups.get(bound, ())


class _Networks(Table):
    """By networks; of an address, only its network of each prefix length that occurs is looked up."""

    __slots__ = ("_lengths",)

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._lengths = {group[:2] for group in self.groups}

    @staticmethod
    def keys(lookup: Lookup) -> Iterable[Hashable]:
        network: Any = lookup.operand
        bits = (network.last - network.first).bit_length()
        return ((network.version, bits, network.first >> bits),)

    def _containing(self, value: Any) -> Iterator[Hashable]:
        address = parse_address(value) if isinstance(value, str) else None
        if address is not None:
            version, number = address
            for family, bits in self._lengths:
                if family == version and (group := (version, bits, number >> bits)) in self.groups:
                    yield group

    def find(self, value: Any, found: list[int]) -> None:
        for group in self._containing(value):
            found += self.groups[group]


class _NotNetworks(_Networks):
    __slots__ = ()

    def find(self, value: Any, found: list[int]) -> None:
        self._but(set(self._containing(value)), found)


class _Predicates(Table):
    __slots__ = ()

    def find(self, value: Any, found: list[int]) -> None:
        for predicate, numbers in self.groups.items():
            if predicate(value):
                found += numbers


class _NotPredicates(Table):
    __slots__ = ()

    def find(self, value: Any, found: list[int]) -> None:
        for predicate, numbers in self.groups.items():
            if not predicate(value):
                found += numbers


class _Patterns(Table):
    """By the texts of regular expressions, most of which are in sets."""

    __slots__ = ("_sets",)

    def __init__(self, test: str, groups: Groups | None = None, sets: PatternSets | None = None) -> None:
        super().__init__(test, groups)
        self._sets = PatternSets(full=test == lookups.FULL_MATCH) if sets is None else sets

    @staticmethod
    def keys(lookup: Lookup) -> Iterable[Hashable]:
        return (lookup.operand.text,)  # type: ignore[attr-defined]

    def changed(self, removed: Numbered, added: Numbered) -> Table:
        added = list(added)
        new: list[Any] = [lookup.operand for lookup, _ in added]
        return type(self)(self.test, self._regrouped(removed, added), self._sets.with_loose(new))

    def tidied(self) -> Table:
        """Return the table with all expressions in sets, which takes 10 us for each; this one if most of them are."""
        sets = self._sets.tidied(self.groups)
        return self if sets is self._sets else type(self)(self.test, self.groups, sets)

    def _matching(self, value: Any) -> Collection[str] | None:
        """Return the expressions that match, those of former rules included; None if the value is too long for them."""
        if self.test == lookups.FULL_MATCH:
            text = text_of(value)
            return self._sets.matching([] if text is None else [text])
        return self._sets.matching(searched_texts(value))

    def find(self, value: Any, found: list[int]) -> None:
        for pattern in self._matching(value) or ():
            found += self.groups.get(pattern, ())


class _NotPatterns(_Patterns):
    __slots__ = ()

    def find(self, value: Any, found: list[int]) -> None:
        matching = self._matching(value)
        if matching is not None:
            self._but(matching, found)


#: The class of the table of a test, and that of its inverse.
CLASSES: dict[str, tuple[type[Table], type[Table]]] = {
    lookups.EQUAL: (_Equal, _NotEqual),
    lookups.BELOW: (_Ordered, _NotOrdered),
    lookups.ABOVE: (_Ordered, _NotOrdered),
    lookups.NETWORK: (_Networks, _NotNetworks),
    lookups.PREDICATE: (_Predicates, _NotPredicates),
    lookups.FULL_MATCH: (_Patterns, _NotPatterns),
    lookups.SEARCH: (_Patterns, _NotPatterns),
}
