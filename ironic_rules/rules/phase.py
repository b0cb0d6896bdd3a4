"""The rules of a phase, prepared for the nodes of every scope, and changed without preparing them all again.

Statistics are noted once for a run and not once for a rule: nothing is counted in it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ironic_rules.exceptions import RuleFailed
from ironic_rules.rules.compiled import BrokenRule, CompiledAction, CompiledRule, Condition
from ironic_rules.rules.explaining import Trace
from ironic_rules.rules.getters import View
from ironic_rules.rules.index import Chooser, Index, Lookup

#: A rule's number consists of its priority, its position, and its place among the rules with the same of both, each
#: smaller than these. Stored rules have distinct positions.
_POSITIONS = 1 << 64
_PLACES = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The precomputed attributes of a rule that the loop over the rules reads.

    :ivar number: its place in the order of the phase, where numbers increase
    :ivar chosen: the lookup by which the index finds it; None: it is always found
    :ivar undecided: those of its conditions that the index does not decide
    :ivar only: the only one of them, if it is evaluated for this rule alone, and always
    :ivar data_key: the first key of the plugin data that ``chosen`` tests; if it was written since the rule was found,
        all of the rule's conditions are undecided
    :ivar limited: whether it runs on a limited number of nodes
    :ivar keeps_node: whether its actions change the node, but nothing else of the task
    :ivar keeps_task: whether they change other parts of the task
    :ivar keeps_data: whether they change plugin data
    :ivar moves: whether they may change the node's scope
    """

    rule: CompiledRule
    number: int
    chosen: Lookup | None
    actions: tuple[CompiledAction, ...]
    undecided: tuple[Condition, ...]
    only: Condition | None
    data_key: str | None
    sensitive: bool
    limited: bool
    keeps_node: bool
    keeps_task: bool
    keeps_data: bool
    moves: bool
    matched: Trace


#: The tests of what a rule has just written are repeated for at most so many paths; then its rules are all evaluated.
MAX_PATHS = 64


@dataclass(slots=True)
class _Change:
    """A change of the rules of one scope.

    :ivar added: with their numbers
    :ivar mended: broken rules that are removed, or mended
    """

    removed: list[Entry] = field(default_factory=list)
    added: list[tuple[int, CompiledRule]] = field(default_factory=list)
    mended: set[BrokenRule] = field(default_factory=set)
    broken: list[BrokenRule] = field(default_factory=list)


class _Part:
    """The rules of one scope, or those without a scope."""

    __slots__ = ("_always", "_data", "_index", "_inventory", "broken")

    def __init__(self, index: Index, always: tuple[int, ...], broken: tuple[BrokenRule, ...]) -> None:
        self._index = index
        self._always = always
        self.broken = broken
        self._inventory = tuple(tables for place, tables in index.places.items() if place[0] == "inventory")
        self._data = tuple((data_key(place[1]), tables) for place, tables in index.places.items()
                           if place[0] == "plugin_data")

    def changed(self, change: _Change) -> tuple[_Part, list[Entry]]:
        """Return the part with other rules, and the entries of those that were added."""
        chooser = Chooser(self._index)
        entries = [_entry(number, rule, chooser) for number, rule in change.added]
        gone = {entry.number for entry in change.removed}
        always = sorted([*(number for number in self._always if number not in gone),
                         *(entry.number for entry in entries if entry.chosen is None)])
        broken = (*(rule for rule in self.broken if rule not in change.mended), *change.broken)
        return _Part(self._index.changed(_lookups(change.removed), _lookups(entries)), tuple(always), broken), entries

    def tidied(self) -> _Part:
        index = self._index.tidied()
        return self if index is self._index else _Part(index, self._always, self.broken)

    def find(self, view: View, sensitive_view: View, candidates: list[int]) -> None:
        candidates += self._always
        for tables in self._inventory:
            tables.find(view, sensitive_view, candidates)
        for _, tables in self._data:
            tables.find(view, sensitive_view, candidates)

    def find_again(self, keys: frozenset[str] | None, view: View, sensitive_view: View, candidates: list[int]) -> None:
        paths = [tables for key, tables in self._data if keys is None or not key or key in keys]
        for tables in paths:
            if len(paths) > MAX_PATHS:
                tables.all(candidates)
            else:
                tables.find(view, sensitive_view, candidates)

    @property
    def reads_data(self) -> bool:
        return bool(self._data)

    def __bool__(self) -> bool:
        return bool(self._always or self._index.places or self.broken)


class Phase:
    """The rules of a phase. Immutable, shared by threads.

    :ivar entries: by number
    :ivar reads_previous: the numbers of the rules that read the inventory of the inspection before
    """

    def __init__(self, entries: Mapping[int, Entry] | None = None, parts: Mapping[str | None, _Part] | None = None,
                 reads_previous: frozenset[int] = frozenset()) -> None:
        self.entries = entries or {}
        self.reads_previous = reads_previous
        self._parts = parts or {}
        #: true if the rules that run depend on the scope of a node
        self.is_scoped = any(scope is not None for scope in self._parts)

    def __bool__(self) -> bool:
        return bool(self.entries or self._parts)

    @property
    def rules(self) -> list[CompiledRule]:
        """The rules in the order in which they run."""
        return [self.entries[number].rule for number in sorted(self.entries)]

    def changed(self, removed: Iterable[CompiledRule | BrokenRule],
                added: Iterable[CompiledRule | BrokenRule]) -> Phase:
        """Return the phase without some rules and with others; only these are indexed again."""
        changes: defaultdict[str | None, _Change] = defaultdict(_Change)
        entries, reading = dict(self.entries), set(self.reads_previous)
        for rule in removed:
            change = changes[rule.scope]
            if isinstance(rule, BrokenRule):
                change.mended.add(rule)
            else:
                numbers = itertools.count(_first_number(rule))
                gone = entries.pop(next(place for place in numbers if entries[place].rule is rule))
                change.removed.append(gone)
                reading.discard(gone.number)
        used: set[int] = set()
        for rule in added:
            change = changes[rule.scope]
            if isinstance(rule, BrokenRule):
                change.broken.append(rule)
            else:
                number = next(place for place in itertools.count(_first_number(rule))
                              if place not in entries and place not in used)
                used.add(number)
                change.added.append((number, rule))
                if rule.reads_previous:
                    reading.add(number)
        parts = dict(self._parts)
        for scope, change in changes.items():
            part, changed_entries = (parts.pop(scope, None) or _Part(Index(), (), ())).changed(change)
            entries.update((entry.number, entry) for entry in changed_entries)
            if part:
                parts[scope] = part
        return Phase(entries, parts, frozenset(reading))

    def tidied(self) -> Phase:
        """Return the phase with its regular expressions in sets; itself if most of them are."""
        parts = {scope: part.tidied() for scope, part in self._parts.items()}
        return self if parts == self._parts else Phase(self.entries, parts, self.reads_previous)

    def broken_for(self, scope: str | None) -> BrokenRule | None:
        """Return a rule that applies to the nodes of a scope and cannot run."""
        return next((rule for part in self._of(scope) for rule in part.broken), None)

    def has_scope(self, scope: str | None) -> bool:
        """Return whether there are rules for the nodes of a scope only."""
        return scope in self._parts

    def of_scope(self, scope: str | None) -> list[int]:
        """Return the numbers of the rules that apply to the nodes of a scope, in order."""
        return sorted(number for number, entry in self.entries.items() if entry.rule.scope in (None, scope))

    def candidates(self, scope: str | None, view: View, sensitive_view: View) -> list[int]:
        """Return the numbers of those that may match, in order; others have a condition known to be false.

        :param view: the view of rules that are not sensitive
        :param sensitive_view: the view of those that are
        """
        candidates: list[int] = []
        for part in self._of(scope):
            part.find(view, sensitive_view, candidates)
        # Sorting a concatenation of sorted sequences merges them.
        candidates.sort()
        return candidates

    def found_again(self, scope: str | None, keys: frozenset[str] | None, view: View, sensitive_view: View) -> set[int]:
        """Return the numbers of the rules that may match now that a rule has written plugin data.

        :param keys: the first keys that it wrote; None: any
        """
        candidates: list[int] = []
        for part in self._of(scope):
            part.find_again(keys, view, sensitive_view, candidates)
        return set(candidates)

    def reads_data(self, scope: str | None) -> bool:
        """Return whether rules are found by plugin data."""
        return any(part.reads_data for part in self._of(scope))

    def _of(self, scope: str | None) -> Iterator[_Part]:
        for key in (None,) if scope is None else (None, scope):
            if key in self._parts:
                yield self._parts[key]


def data_key(steps: tuple[str, ...]) -> str:
    """Return the first key of a path in the plugin data; "" for all of them."""
    return steps[0] if steps else ""


def _first_number(rule: CompiledRule) -> int:
    return (rule.position - rule.priority * _POSITIONS) * _PLACES


def _entry(number: int, rule: CompiledRule, chooser: Chooser) -> Entry:
    conditions = rule.conditions
    place = chooser.choose([condition.lookup for condition in conditions], rule.sensitive)
    chosen = None if place is None else conditions[place].lookup
    undecided = conditions
    if place is not None and not conditions[place].captures:
        # The index finds rules that read groups too, but the condition that stores them is still called.
        undecided = conditions[:place] + conditions[place + 1:]
    keeps_task = not rule.touches <= {"node", "plugin_data"}
    limited = rule.max_nodes is not None
    key = data_key(chosen.steps) if chosen is not None and chosen.root == "plugin_data" else None
    only = undecided[0] if len(undecided) == 1 and not undecided[0].is_shared and key is None else None
    return Entry(
        rule, number, chosen, rule.actions, undecided, only, key, rule.sensitive, limited,
        "node" in rule.touches and not keeps_task, keeps_task, "plugin_data" in rule.touches,
        any(action.moves for action in rule.actions),
        Trace(rule.uuid, rule.description, True, sensitive=rule.sensitive, limited=limited))


def _lookups(entries: Iterable[Entry]) -> Iterator[tuple[Lookup, bool, int]]:
    return ((entry.chosen, entry.sensitive, entry.number) for entry in entries if entry.chosen is not None)


@dataclass(slots=True, eq=False)
class Part:
    """A part of a run, in which neither the node's scope nor what the index found has changed.

    :ivar found: the numbers of the rules that the index did not exclude, in order
    :ivar after: the number of the last rule of the part before; None: this is the first one
    :ivar until: the number of its last rule; None: that of the last rule of all
    """

    phase: Phase
    scope: str | None
    found: list[int]
    after: int | None = None
    until: int | None = None

    def evaluated(self) -> list[int]:
        """Return the numbers of the rules that were evaluated."""
        return self.found if self.until is None else [number for number in self.found if number <= self.until]


@dataclass(slots=True)
class RuleRuns:
    """The results of the runs of an inspection, of all phases.

    :ivar matched: UUIDs, one for each time that a rule matched
    :ivar failure: the UUID of the rule that failed
    """

    parts: list[Part] = field(default_factory=list)
    matched: list[str] = field(default_factory=list)
    failure: str | None = None

    def ended(self, traces: Iterable[Trace], parts: list[Part]) -> None:
        """Add a run."""
        self.parts += parts
        self.matched += [trace.uuid for trace in traces if trace.matched]

    def failed(self, error: RuleFailed, parts: list[Part]) -> None:
        """Add a run that a rule has ended."""
        self.failure = error.facts["rule"]
        self.ended(error.traces, parts)  # type: ignore[attr-defined]
        if parts:
            last = parts[-1]
            last.until = next((number for number in last.found
                               if last.phase.entries[number].rule.uuid == self.failure), None)


def considered(phase: Phase, scope: str | None, after: int | None, until: int | None) -> Iterator[int]:
    """Yield the numbers of the rules that a part of a run has reached, evaluated or excluded by the index."""
    for number in phase.of_scope(scope):
        if (after is None or number > after) and (until is None or number <= until):
            yield number
