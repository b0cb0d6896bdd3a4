"""An index of rules: finds the rules that can match a machine's data without evaluating the others.

Of each rule, at most one condition is in the index: one that is expected to be true seldom. The rules are numbers,
their places in the order of a phase. There is a table for each way in which conditions test the same value
(:mod:`ironic_rules.rules.index_tables`).

Indexes are immutable. A changed one shares with the old one all that is not affected.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from ironic_rules.rules import lookups
from ironic_rules.rules.index_tables import CLASSES, Table
from ironic_rules.rules.lookups import Lookup
from ironic_rules.rules.mask import Getter, View

#: What a lookup tests: a root, the path to the value there, and whether the rule is sensitive.
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

    def find(self, view: View, sensitive_view: View, found: list[int]) -> None:
        """Add the numbers of the rules whose condition is true."""
        value = self._get(sensitive_view if self._sensitive else view)
        for table in self._by_kind.values():
            table.find(value, found)

    def all(self, found: list[int]) -> None:
        """Add the numbers of all rules."""
        for table in self._by_kind.values():
            found += itertools.chain.from_iterable(table.groups.values())

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
        for side, given in enumerate((removed, added)):
            for found, sensitive, number in given:
                place = _place(found, sensitive)
                getters[place] = found.get
                changes[place][found.test, found.inverted][side].append((found, number))
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
        usable = [(self._expected(found, sensitive), place) for place, found in enumerate(candidates) if found]
        if not usable:
            return None
        best = min(usable)[1]
        found = candidates[best]
        assert found is not None
        kind = _place(found, sensitive), found.test, found.inverted
        self._tables[kind] += 1
        self._groups.update((kind, group) for group in CLASSES[found.test][found.inverted].keys(found))
        return best

    def _expected(self, found: Lookup, sensitive: bool) -> float:
        """Return how many rules this lookup is expected to find together with its own."""
        place = _place(found, sensitive)
        tables = self._index.places.get(place)
        table = None if tables is None else tables.get((found.test, found.inverted))
        groups = {} if table is None else table.groups
        kind = place, found.test, found.inverted
        if found.test in lookups.SELECTIVE and not found.inverted:
            return sum(len(groups.get(group, ())) + self._groups[kind, group]
                       for group in CLASSES[found.test][False].keys(found))
        return (len(groups) + self._tables[kind]) / 2 + 1


def _place(found: Lookup, sensitive: bool) -> _Place:
    return found.root, found.steps, sensitive
