"""Rules that run together, because each of them only sets keys of the node, and none of them affects another.

What is true of each run with the same candidates is prepared once: which rules follow each other, whose conditions are
the same, and which keys they write. A run that is not as usual, such as a missing value, is left to the loop over the
rules, before anything has changed: only that decides what fails, and how.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ironic_rules.models.draft import NodeDraft
from ironic_rules.models.joint_writes import JointWrites, KeyWrite
from ironic_rules.models.secrets import MASK
from ironic_rules.rules.compiled_actions import PER_VALUE
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import Getter
from ironic_rules.rules.mask import View, Views
from ironic_rules.rules.traces import Trace

if TYPE_CHECKING:
    from ironic_rules.rules.phase import Entry

#: For fewer rules it is not worth while.
_FEWEST = 4
#: Maximum number of rules of all that is prepared for a phase: at most 0.5 KB each, for each combination.
_MOST = 5000
#: When that many are prepared, others take their place after so many runs, for each combination, that found none.
_RARELY = 16
#: Maximum number of the candidates of a run for which something is prepared.
_MOST_CANDIDATES = 1000
#: Maximum number of candidates that are remembered to have come once.
_MOST_SEEN = 1000
#: Maximum number of combinations of rules of a stretch whose conditions hold.
_MOST_OUTCOMES = 4
#: After so many runs in a row with other outcomes, the rules of a stretch always run one after the other.
_MOST_MISSES = 16
_SCALARS = frozenset({int, float, bool, type(None)})


class Stretch:
    """Rules that follow each other among the candidates of a run.

    :ivar start: the place of the first one of them among the candidates
    :ivar end: the place after the last one
    """

    __slots__ = ("_by_outcome", "_calls", "_entries", "_misses", "_plans", "end", "start")

    def __init__(self, plans: Plans, entries: Sequence[Entry], end: int) -> None:
        self.start, self.end = end - len(entries), end
        self._plans = plans
        self._entries = tuple(entries)
        #: what is undecided of their conditions
        self._calls = tuple(dict.fromkeys(call for entry in entries for call, _ in entry.steps))
        self._by_outcome: dict[tuple[bool, ...], _Matching] = {}
        #: how many of the last runs had another outcome
        self._misses = 0

    def run(self, node: NodeDraft, view: View, views: Views) -> tuple[Trace, ...] | None:
        """Run the rules; return the traces of those that match, None if nothing was done."""
        if self._misses >= _MOST_MISSES:
            return None
        known = view.stable
        try:
            for call in self._calls:
                if call not in known:
                    known[call] = _holds(call, view)
            matching = self._matching(tuple([known[call] for call in self._calls]))
            values = None if matching is None else matching.values(view, views)
        except Exception:  # noqa: BLE001  (whatever it is, the loop over the rules meets it again, and tells whose it is)
            return None
        if matching is None or values is None or not matching.write(node, values, views):
            return None
        return matching.traces

    def _matching(self, outcome: tuple[bool, ...]) -> _Matching | None:
        """Return the rules that match if this is the outcome of the conditions; None if too many others are known."""
        found = self._by_outcome.get(outcome)
        # Each miss has evaluated the conditions, which is then done again.
        self._misses = 0 if found is not None else self._misses + 1
        if found is None and len(self._by_outcome) < _MOST_OUTCOMES:
            holding = {call for call, holds in zip(self._calls, outcome, strict=True) if holds}
            found = self._by_outcome[outcome] = _Matching(
                self._plans, [entry for entry in self._entries if all(call in holding for call, _ in entry.steps)])
        return found


def _holds(call: Callable[[View], bool], view: View) -> bool:
    try:
        return call(view)
    except CannotEvaluate:
        return False


class _Matching:
    """The rules of a stretch whose conditions hold."""

    __slots__ = ("_gets", "_joint", "_most", "_numbers", "_plans", "_times", "traces")

    def __init__(self, plans: Plans, entries: Sequence[Entry]) -> None:
        self._plans = plans
        self.traces = tuple(entry.matched for entry in entries)
        places: dict[Getter, int] = {}
        numbers: list[list[int]] = []
        authors = []
        for entry in entries:
            writes = []
            for action, (name, key), get in _keys_of(entry):
                place = places.setdefault(get, len(places))
                if place == len(numbers):
                    numbers.append([])
                numbers[place].append(entry.number)
                writes.append(KeyWrite(action, name, key, place))
            authors.append((entry.rule, writes))
        self._joint = JointWrites(authors)
        self._gets = tuple(places)
        #: of the rules that write each value
        self._numbers = numbers
        self._times = tuple(map(len, numbers))
        self._most = min((action.most for entry in entries for action in entry.actions), default=sys.maxsize)

    def values(self, view: View, views: Views) -> list[Any] | None:
        """Return all values; None if one of them is not to be written as it is, or they are too large."""
        values = [get(view) for get in self._gets]
        written = views.written
        for place, value in enumerate(values):
            if value.__class__ is str:
                if MASK in value:
                    break
                written += self._times[place] * (len(value) + PER_VALUE)
            elif value.__class__ not in _SCALARS:
                break
        else:
            return values if written <= self._most else None
        # It has to be copied, or checked. Perhaps it is so for other nodes, too.
        self._plans.set_apart(self._numbers[place])
        return None

    def write(self, node: NodeDraft, values: list[Any], views: Views) -> bool:
        """Write all values; return whether that was done."""
        if not self.traces:
            return True
        if not node.write_jointly(self._joint, values):
            return False
        views.written += sum(times * (len(value) + PER_VALUE) for value, times in zip(values, self._times, strict=True)
                             if value.__class__ is str)
        if "node" in views.made:
            views.forget(("node",))
        return True


def _keys_of(entry: Entry) -> list[tuple[object, tuple[str, str], Getter]]:
    """Return the actions of a rule, the keys of the node that they set, and the getters of the values.

    :returns: an empty list if they do anything else, or set keys of several fields, or one of them twice
    """
    found: list[tuple[object, tuple[str, str], Getter]] = []
    for action in entry.actions:
        known = action.key_set
        if known is None:
            return []
        name, key = known[0].tokens
        found.append((action, (name, key), known[1]))
    keys = {key for _, key, _ in found}
    return found if len(keys) == len(found) and len({name for name, _ in keys}) == 1 else []


def _is_steady(entry: Entry) -> bool:
    """Return whether rules before it cannot affect whether a rule matches, and all may see what it does."""
    return not entry.sensitive and not entry.limited and entry.data_key is None and all(
        condition.check.stable and not condition.check.captures for condition in entry.rule.conditions)


class Plans:
    """The stretches among the candidates of runs, prepared when these come for the second time. Shared by threads.

    :param entries: the rules of a phase by number
    """

    __slots__ = ("_apart", "_entries", "_known", "_left_out", "_rules", "_seen")

    def __init__(self, entries: Mapping[int, Entry]) -> None:
        self._entries = entries
        self._known: dict[tuple[int, ...], tuple[Stretch, ...]] = {}
        #: how many rules are in them
        self._rules = 0
        #: how many runs have found nothing since there is no room for others
        self._left_out = 0
        #: the hashes of candidates that have come once
        self._seen: set[int] = set()
        #: the numbers of rules that have written other values
        self._apart: set[int] = set()

    def of(self, numbers: list[int]) -> tuple[Stretch, ...]:
        """Return the stretches, in order. What is not in them runs rule by rule."""
        if not _FEWEST <= len(numbers) <= _MOST_CANDIDATES:
            return ()
        key = tuple(numbers)
        found = self._known.get(key)
        if found is None:
            if hash(key) not in self._seen:
                if len(self._seen) >= _MOST_SEEN:
                    self._seen.clear()
                self._seen.add(hash(key))
                return ()
            if self._rules + len(key) > _MOST:
                # To prepare something for one run takes longer than the rules one after the other.
                self._left_out += 1
                if self._left_out < _RARELY * len(self._known):
                    return ()
                self._known.clear()
                self._rules = self._left_out = 0
            found = self._known[key] = tuple(self._stretches(key))
            self._rules += len(key)
        return found

    def set_apart(self, numbers: Iterable[int]) -> None:
        """Leave rules out of all stretches."""
        self._apart.update(numbers)
        self._known.clear()
        self._rules = 0

    def _stretches(self, numbers: tuple[int, ...]) -> Iterator[Stretch]:
        entries: list[Entry] = []
        keys: set[tuple[str, str]] = set()
        for place, number in enumerate((*numbers, None)):
            entry = None if number is None else self._entries[number]
            sets = [] if entry is None or number in self._apart or not _is_steady(entry) else [
                key for _, key, _ in _keys_of(entry)]
            # A key that is written again begins another stretch.
            if entries and (not sets or not keys.isdisjoint(sets)):
                if len(entries) >= _FEWEST:
                    yield Stretch(self, entries, place)
                entries, keys = [], set()
            if entry is not None and sets:
                entries.append(entry)
                keys.update(sets)
