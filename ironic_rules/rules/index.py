"""An index of rules: finds the rules that can match a machine's data without evaluating the others.

A condition has a lookup, a form that the index can answer, if and only if it compares the value at one path with a
constant: ``{inventory[a]}``, optionally inverted. Loops, several templates and text around a template have none, and
are evaluated for each rule. The index contains at most one condition of each rule: one that is expected to be true
seldom. The rules are numbers, their places in the order of a phase.

A table groups rules by the constants with which their conditions compare the same value. There is a class for each way
of comparing, and one for its inverse. Each finds the groups whose conditions are true for a value without going through
the others, and then gives the numbers of their rules.

Indexes and tables are immutable. A changed one shares with the old one all that is not affected.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironic_rules.rules.getters import Getter, View
from ironic_rules.rules.regex import PatternSets, searched_texts, text_of
from ironic_rules.rules.signatures import parse_address

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


def hash_key(value: object, *, deep: bool = True) -> Hashable:
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
        return dict, frozenset((name, hash_key(item)) for name, item in value.items())
    if deep and isinstance(value, (list, tuple)):
        return list, tuple(map(hash_key, value))
    return value if isinstance(value, str) else ()


def is_of_container(key: Hashable) -> bool:
    """Return whether a key is that of a list or an object."""
    return isinstance(key, tuple) and len(key) == 2 and key[0] in (dict, list)


def bound_of(value: object) -> Hashable:
    """Return a number or text with which values can be compared; None for other values."""
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


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

    def find(self, value: Any, candidates: list[int]) -> None:
        """Add the numbers of the rules whose condition is true for ``value``."""
        raise NotImplementedError

    def _but(self, passed: Collection[object], candidates: list[int]) -> None:
        """Add the numbers of all groups but those."""
        for group, numbers in self.groups.items():
            if group not in passed:
                candidates += numbers


class _Equal(Table):
    """By the keys of constants: a rule with several constants belongs to several groups."""

    __slots__ = ("_has_containers",)

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._has_containers = any(map(is_of_container, self.groups))

    @staticmethod
    def keys(lookup: Lookup) -> Iterable[Hashable]:
        return lookup.operand  # type: ignore[return-value]

    def find(self, value: Any, candidates: list[int]) -> None:
        if numbers := self.groups.get(hash_key(value, deep=self._has_containers)):
            candidates += numbers


class _NotEqual(Table):
    """By the set of the keys of all constants."""

    __slots__ = ("_has_containers",)

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._has_containers = any(is_of_container(key) for keys in self.groups for key in keys)

    def find(self, value: Any, candidates: list[int]) -> None:
        key = hash_key(value, deep=self._has_containers)
        for constants, numbers in self.groups.items():
            if key not in constants:
                candidates += numbers


class _Ordered(Table):
    """By bounds, numbers and texts, each sorted; None is a bound that no value passes."""

    __slots__ = ("_numbers", "_texts")

    def __init__(self, test: str, groups: Groups | None = None) -> None:
        super().__init__(test, groups)
        self._numbers: list[Any] = sorted(bound for bound in self.groups if isinstance(bound, (int, float)))
        self._texts: list[Any] = sorted(bound for bound in self.groups if isinstance(bound, str))

    def _parts(self, value: object) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Return the comparable bounds that ``value`` passes, those that it does not, and those of other types."""
        bound = bound_of(value)
        if bound is None or bound != bound:
            return (), (), (*self._numbers, *self._texts)
        bounds, others = (self._texts, self._numbers) if isinstance(bound, str) else (self._numbers, self._texts)
        if self.test == BELOW:
            place = bisect.bisect_right(bounds, value)
            return bounds[place:], bounds[:place], others
        place = bisect.bisect_left(bounds, value)
        return bounds[:place], bounds[place:], others

    def find(self, value: Any, candidates: list[int]) -> None:
        for bound in self._parts(value)[0]:
            candidates += self.groups[bound]


class _NotOrdered(_Ordered):
    __slots__ = ()

    def find(self, value: Any, candidates: list[int]) -> None:
        _, failed, others = self._parts(value)
        for bound in (*failed, *others, None):
            candidates += self.groups.get(bound, ())


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

    def _containing(self, value: object) -> Iterator[Hashable]:
        address = parse_address(value) if isinstance(value, str) else None
        if address is not None:
            version, number = address
            for family, bits in self._lengths:
                if family == version and (group := (version, bits, number >> bits)) in self.groups:
                    yield group

    def find(self, value: Any, candidates: list[int]) -> None:
        for group in self._containing(value):
            candidates += self.groups[group]


class _NotNetworks(_Networks):
    __slots__ = ()

    def find(self, value: Any, candidates: list[int]) -> None:
        self._but(set(self._containing(value)), candidates)


class _Predicates(Table):
    __slots__ = ()

    def find(self, value: Any, candidates: list[int]) -> None:
        for predicate, numbers in self.groups.items():
            if predicate(value):
                candidates += numbers


class _NotPredicates(Table):
    __slots__ = ()

    def find(self, value: Any, candidates: list[int]) -> None:
        for predicate, numbers in self.groups.items():
            if not predicate(value):
                candidates += numbers


class _Patterns(Table):
    """By the texts of regular expressions, most of which are in sets."""

    __slots__ = ("_sets",)

    def __init__(self, test: str, groups: Groups | None = None, sets: PatternSets | None = None) -> None:
        super().__init__(test, groups)
        self._sets = PatternSets(full=test == FULL_MATCH) if sets is None else sets

    @staticmethod
    def keys(lookup: Lookup) -> Iterable[Hashable]:
        return (lookup.operand.text,)  # type: ignore[attr-defined]

    def changed(self, removed: Numbered, added: Numbered) -> Table:
        added = list(added)
        new: list[Any] = [lookup.operand for lookup, _ in added]
        return type(self)(self.test, self._regrouped(removed, added), self._sets.with_loose(new))

    def tidied(self) -> Table:
        """Return the table with all expressions in sets; this one if most of them are."""
        sets = self._sets.tidied(self.groups)
        return self if sets is self._sets else type(self)(self.test, self.groups, sets)

    def _matching(self, value: object) -> Collection[str] | None:
        """Return the expressions that match, those of former rules included; None if the value is too long for them."""
        if self.test == FULL_MATCH:
            text = text_of(value)
            return self._sets.matching([] if text is None else [text])
        return self._sets.matching(searched_texts(value))

    def find(self, value: Any, candidates: list[int]) -> None:
        for pattern in self._matching(value) or ():
            candidates += self.groups.get(pattern, ())


class _NotPatterns(_Patterns):
    __slots__ = ()

    def find(self, value: Any, candidates: list[int]) -> None:
        matching = self._matching(value)
        if matching is not None:
            self._but(matching, candidates)


#: The class of the table of a test, and that of its inverse.
CLASSES: dict[str, tuple[type[Table], type[Table]]] = {
    EQUAL: (_Equal, _NotEqual),
    BELOW: (_Ordered, _NotOrdered),
    ABOVE: (_Ordered, _NotOrdered),
    NETWORK: (_Networks, _NotNetworks),
    PREDICATE: (_Predicates, _NotPredicates),
    FULL_MATCH: (_Patterns, _NotPatterns),
    SEARCH: (_Patterns, _NotPatterns),
}


#: Place that a lookup tests: a root, the path to the value there, and whether the rule is sensitive.
_Place = tuple[str, tuple[str, ...], bool]
_Kind = tuple[str, bool]
#: Lookups of rules, with their numbers: first of those that are removed, then of those that are added.
_Changes = tuple[list[tuple[Lookup, int]], list[tuple[Lookup, int]]]


class Tables:
    """The tables of all tests of one value."""

    __slots__ = ("_by_kind", "_get", "_sensitive")

    def __init__(self, get: Getter, sensitive: bool, by_kind: Mapping[_Kind, Table]) -> None:
        self._get = get
        self._sensitive = sensitive
        self._by_kind = by_kind

    def __len__(self) -> int:
        return len(self._by_kind)

    def get(self, kind: _Kind) -> Table | None:
        """Return the table of a test or of its inverse."""
        return self._by_kind.get(kind)

    def find(self, view: View, sensitive_view: View, candidates: list[int]) -> None:
        """Add the numbers of the rules whose condition is true."""
        value = self._get(sensitive_view if self._sensitive else view)
        for table in self._by_kind.values():
            table.find(value, candidates)

    def all(self, candidates: list[int]) -> None:
        """Add the numbers of all rules."""
        for table in self._by_kind.values():
            candidates += itertools.chain.from_iterable(table.groups.values())

    def changed(self, changes: Mapping[_Kind, _Changes]) -> Tables:
        """Return the tables with other rules, without those that are empty."""
        by_kind = dict(self._by_kind)
        for kind, (removed, added) in changes.items():
            test, inverted = kind
            table = by_kind.pop(kind, None) or CLASSES[test][inverted](test)
            if (table := table.changed(removed, added)).groups:
                by_kind[kind] = table
        return Tables(self._get, self._sensitive, by_kind)

    def tidied(self) -> Tables:
        """Return the tables with their regular expressions in sets; these if most of them are."""
        tidied = {kind: table.tidied() for kind, table in self._by_kind.items()}
        return self if tidied == self._by_kind else Tables(self._get, self._sensitive, tidied)


class Index:
    """Rules by one lookup of each.

    :ivar places: the tables by what they test
    """

    __slots__ = ("places",)

    def __init__(self, places: Mapping[_Place, Tables] | None = None) -> None:
        self.places = places or {}

    def changed(self, removed: Iterable[tuple[Lookup, bool, int]], added: Iterable[tuple[Lookup, bool, int]]) -> Index:
        """Return the index with other rules.

        :param removed: the lookup of each, whether the rule is sensitive, and its number; so ``added``
        """
        changes: defaultdict[_Place, defaultdict[_Kind, _Changes]] = defaultdict(
            lambda: defaultdict(lambda: ([], [])))
        getters: dict[_Place, Getter] = {}
        for side, lookups in enumerate((removed, added)):
            for lookup, sensitive, number in lookups:
                place = _place(lookup, sensitive)
                getters[place] = lookup.get
                changes[place][lookup.test, lookup.inverted][side].append((lookup, number))
        places = dict(self.places)
        for place, by_kind in changes.items():
            tables = places.pop(place, None) or Tables(getters[place], place[2], {})
            if tables := tables.changed(by_kind):
                places[place] = tables
        return Index(places)

    def tidied(self) -> Index:
        """Return the index with its regular expressions in sets; this one if most of them are."""
        tidied = {place: tables.tidied() for place, tables in self.places.items()}
        return self if tidied == self.places else Index(tidied)


class Chooser:
    """Chooses the lookups by which rules are added to an index: those that are true for the fewest machines.

    It does not know the machines. A rule is skipped most often by a constant that few other rules have.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._groups: Counter[Hashable] = Counter()
        self._tables: Counter[Hashable] = Counter()

    def choose(self, candidates: Sequence[Lookup | None], sensitive: bool) -> int | None:
        """Return the position of the best lookup of a rule, None if it has none; the rule counts from then on."""
        usable = [(self._expected(lookup, sensitive), place) for place, lookup in enumerate(candidates) if lookup]
        if not usable:
            return None
        best = min(usable)[1]
        lookup = candidates[best]
        assert lookup is not None
        kind = _place(lookup, sensitive), lookup.test, lookup.inverted
        self._tables[kind] += 1
        self._groups.update((kind, group) for group in CLASSES[lookup.test][lookup.inverted].keys(lookup))
        return best

    def _expected(self, lookup: Lookup, sensitive: bool) -> float:
        """Return how many rules this lookup is expected to find together with its own."""
        place = _place(lookup, sensitive)
        tables = self._index.places.get(place)
        table = None if tables is None else tables.get((lookup.test, lookup.inverted))
        groups = {} if table is None else table.groups
        kind = place, lookup.test, lookup.inverted
        if lookup.test in SELECTIVE and not lookup.inverted:
            return sum(len(groups.get(group, ())) + self._groups[kind, group]
                       for group in CLASSES[lookup.test][False].keys(lookup))
        return (len(groups) + self._tables[kind]) / 2 + 1


def _place(lookup: Lookup, sensitive: bool) -> _Place:
    return lookup.root, lookup.steps, sensitive
