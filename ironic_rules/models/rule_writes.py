"""What rules write, and which of them write the same: what a person wants to know who looks for a value's origin."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ironic_rules.models.json_values import JSONObject
from ironic_rules.models.rule_search import path_of

#: Rules that a conflict names at most; it counts all of them.
MOST_NAMED = 10
#: Actions with something else than a path that says what they write -> its argument.
_NAMED = {"add-trait": "name", "remove-trait": "name", "set-capability": "name", "unset-capability": "name"}
#: What an action does with what is there: what two rules both add, or both remove, is no conflict.
_EFFECTS = {"set": "set", "add": "add", "extend": "add", "remove": "remove", "del": "remove", "unset": "remove"}


class Write(NamedTuple):
    """A place that a rule writes.

    :ivar path: a JSON pointer as the filter ``writes`` has it
    :ivar name: of the trait or the capability; None: what is written is the whole of ``path``
    :ivar effect: ``set``, ``add`` or ``remove``
    """

    path: str
    name: str | None
    effect: str


_Place = tuple[str, str | None]
#: The number and the UUID of a rule.
_Numbered = tuple[int, str]


class RuleWriter(NamedTuple):
    """A rule that takes part.

    :ivar scope: None: it runs for all nodes
    :ivar writes: of a disabled or a sensitive rule, none: it has no conflicts
    """

    uuid: str
    scope: str | None
    writes: Sequence[Write]


@dataclass(frozen=True, slots=True)
class WriteConflict:
    """A place that other rules write, too.

    :ivar count: the number of these other rules
    :ivar rules: the UUIDs of the first of them, at most ``MOST_NAMED``, in the order in which they run
    """

    path: str
    name: str | None
    count: int
    rules: list[str]


def written(actions: Iterable[JSONObject]) -> list[Write]:
    """Return what actions write, each once, as far as they themselves say it: nothing that depends on a template."""
    return list(dict.fromkeys(_written(actions)))


def _written(actions: Iterable[JSONObject]) -> Iterator[Write]:
    for action in actions:
        path, op = path_of(action), action["op"]
        if path is None or _is_template(path):
            continue
        name = None
        if op in _NAMED:
            arguments = action.get("args", {})
            given = arguments.get(_NAMED[op]) if isinstance(arguments, Mapping) else next(iter(arguments), None)
            if not isinstance(given, str) or _is_template(given):
                continue
            name = given
        yield Write(path, name, _EFFECTS[op.partition("-")[0]])


def _is_template(text: str) -> bool:
    return "{" in text.replace("{{", "")


def conflicts(writers: Iterable[RuleWriter]) -> dict[str, list[WriteConflict]]:
    """Return the conflicts of rules by UUID; rules without any are left out.

    Two rules of different scopes never run for the same node, so they have none. The time is linear in what is written.

    :param writers: in the order in which the rules run
    """
    ordered = [(number, writer, _effects(writer.writes)) for number, writer in enumerate(writers)]
    # By place, and by scope (no scope: all of them together), the rules with the same effects there.
    groups: dict[_Place, dict[tuple[str | None, ...], dict[frozenset[str], list[_Numbered]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list)))
    for number, writer, effects in ordered:
        for place, kinds in effects.items():
            for scope in ((writer.scope,), ()):
                groups[place][scope][kinds].append((number, writer.uuid))
    found = {}
    for _, writer, effects in ordered:
        told = [conflict for place, kinds in effects.items()
                if (conflict := _conflict(place, kinds, writer, groups[place]))]
        if told:
            found[writer.uuid] = told
    return found


def _effects(writes: Iterable[Write]) -> dict[_Place, frozenset[str]]:
    found: dict[_Place, frozenset[str]] = {}
    for path, name, effect in writes:
        found[path, name] = found.get((path, name), frozenset()) | {effect}
    return found


def _conflict(place: _Place, kinds: frozenset[str], writer: RuleWriter,
              groups: Mapping[tuple[str | None, ...], Mapping[frozenset[str], Sequence[_Numbered]]]
              ) -> WriteConflict | None:
    count = 0
    first: list[_Numbered] = []
    scopes: tuple[tuple[str | None, ...], ...] = ((),) if writer.scope is None else ((writer.scope,), (None,))
    for number, scope in enumerate(scopes):
        for others, rules in groups.get(scope, {}).items():
            if others == kinds and len(kinds) == 1 and "set" not in kinds:
                continue
            # The rule is in one of the groups itself.
            count += len(rules) - (number == 0 and others == kinds)
            first += [rule for rule in rules[:MOST_NAMED + 1] if rule[1] != writer.uuid]
    return WriteConflict(*place, count, [uuid for _, uuid in sorted(first)[:MOST_NAMED]]) if count else None
