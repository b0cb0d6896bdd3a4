"""Rules: the fields of inspection rules (document 000) and legacy ones (document 002), and facts about them.

The packages ``rules`` and ``legacy`` implement conditions and actions. Facts are the terms for the search in lists, the
writes of a rule, with other rules that write the same, and its statistics.

The terms are the operators and actions of a rule, and the paths that its actions write. They are stored beside the rule
as texts whose lines are the terms, with a line end before and after each. A sensitive rule has no terms, so that no
search reveals its conditions and actions.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ironic_rules.models import documents, secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, Filter, Text, Type, field, record

PHASES = ("early", "preprocess", "main")
#: The highest priority of a rule that users create; a built-in rule can have any integer.
MAX_PRIORITY = 9999
#: The highest number of nodes of ``max_nodes``: that of the column.
MAX_NODES = 2**31 - 1


@record
class Rule:
    """A rule as it is stored, or as it is in the operator's files (``built_in``).

    ``uuid`` is empty for a rule that is not stored yet. ``position`` is the order of creation; ``revision`` is that of
    the rule set at the last change of this rule. ``ops`` and ``writes`` are the terms for the search in lists; see
    :func:`search_texts`. ``name`` is unique within ``bundle``; rules without a bundle form one group. ``max_nodes`` is
    the number of distinct nodes on which the rule runs; None: no limit. ``nodes_counted`` is the number of those on
    which it has run; 0 without a limit.
    """

    position: int = field(shown=False, default=0)
    revision: int = field(shown=False, default=0)
    ops: str | None = field(shown=False, default=None)
    writes: str | None = field(shown=False, default=None)

    uuid: str = field(create=True, summary=True, default="")
    created_at: datetime.datetime | None = field(default=None)
    updated_at: datetime.datetime | None = field(default=None)
    name: str | None = field(patch=True, summary=True, filter=1, min_length=1, default=None)
    bundle: str | None = field(patch=True, summary=True, filter=1, min_length=1, default=None)
    description: str | None = field(patch=True, summary=True, default=None)
    enabled: bool = field(patch=True, summary=True, filter=1, default=True)
    priority: int = field(patch=True, summary=True, filter=1, default=0)
    phase: str = field(patch=True, summary=True, filter=1, choices=PHASES, default="main")
    scope: str | None = field(patch=True, summary=True, filter=1, default=None)
    max_nodes: int | None = field(patch=True, default=None)
    nodes_counted: int = field(default=0)
    sensitive: bool = field(patch=True, summary=True, filter=1, default=False)
    built_in: bool = field(column=False, summary=True, default=False)
    conditions: list[JSONObject] = field(patch=True, default_factory=list)
    actions: list[JSONObject] = field(patch=True, required=True, default_factory=list)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Rule:
        """Return the rule with these fields; null stands for the default, where a field cannot be null."""
        return cls(**{name: value for name, value in values.items()
                      if value is not None or name not in RULE or RULE[name].nullable})

    def said(self) -> JSONObject:
        """Return the user's specification of the rule: the fields that can be written."""
        return {name: getattr(self, name) for name in WRITABLE if name != "uuid" or self.uuid}


RULE = Fields.of(Rule, computed={"links": 1, "valid": 1, "problems": 1}, filters=(
    Filter("built_in", Type.BOOLEAN), Filter("valid", Type.BOOLEAN), Filter("description"), Filter("op"),
    Filter("writes", text=Text.POINTER)))
#: Fields of a list without ``detail`` and ``fields``.
SUMMARY = (*RULE.summary, "valid")
#: Fields that a user may set when a rule is created: the UUID, and those that PATCH may write.
WRITABLE = RULE.where(lambda entry: entry.create)
#: Fields of a sensitive rule that are never shown.
SEALED = ("conditions", "actions")


_END = "\n"


class WriteTarget(NamedTuple):
    """The place where an action writes: at ``below`` and its argument ``name``, the one at ``place`` in a list.

    :ivar name: None: the action always writes at ``below``
    :ivar dotted: the argument may have dots in place of slashes
    """

    below: str
    name: str | None = None
    place: int = 0
    dotted: bool = False


#: Targets of the built-in actions. Those of plug-ins are not known.
TARGETS = {
    "set-attribute": WriteTarget("", "path"),
    "extend-attribute": WriteTarget("", "path"),
    "del-attribute": WriteTarget("", "path"),
    "set-capability": WriteTarget("/properties/capabilities"),
    "unset-capability": WriteTarget("/properties/capabilities"),
    "add-trait": WriteTarget("/traits"),
    "remove-trait": WriteTarget("/traits"),
    "set-port-attribute": WriteTarget("/ports", "path", 1),
    "extend-port-attribute": WriteTarget("/ports", "path", 1),
    "del-port-attribute": WriteTarget("/ports", "path", 1),
    "set-plugin-data": WriteTarget("/plugin_data", "path", dotted=True),
    "extend-plugin-data": WriteTarget("/plugin_data", "path", dotted=True),
    "unset-plugin-data": WriteTarget("/plugin_data", "path", dotted=True),
}


def search_texts(rule: Mapping[str, Any]) -> dict[str, str | None]:
    """Return ``ops`` and ``writes`` of a rule with valid conditions and actions, as they are stored."""
    if rule["sensitive"]:
        return {"ops": None, "writes": None}
    return {"ops": _lines(_ops([*rule["conditions"], *rule["actions"]])), "writes": _lines(_writes(rule["actions"]))}


def terms_of_op(op: str) -> tuple[str, ...]:
    """Return the texts that ``ops`` of a rule contains if it has the operator or action.

    :param op: a name, which includes its inverse; with ``!`` only the inverse
    """
    return (f"{_END}{_normal(op)}{_END}",)


def terms_of_path(path: str) -> tuple[str, ...]:
    """Return the texts of which ``writes`` of a rule contains one if it writes at or below ``path``, a JSON pointer."""
    return (f"{_END}{path}{_END}", f"{_END}{path}/")


def _normal(op: str) -> str:
    return "!" + op[1:].lstrip(" ") if op.startswith("!") else op


def _ops(operations: Iterable[Any]) -> Iterator[str]:
    for operation in operations:
        op = _normal(operation["op"])
        yield op
        yield op.removeprefix("!")


def path_of_action(action: Mapping[str, Any]) -> str | None:
    """Return where a valid action writes, a JSON pointer that may have templates; None: that is not known."""
    target = TARGETS.get(action["op"])
    if target is None or target.name is None:
        return target and target.below
    arguments = action.get("args", {})
    argument = arguments.get(target.name) if isinstance(arguments, Mapping) else (
        arguments[target.place] if target.place < len(arguments) else None)
    tokens = _tokens(argument, target.dotted)
    # A path that begins with a template is only known at run time.
    if not tokens or (tokens[0].startswith("{") and not target.below):
        return None
    return target.below + documents.format_pointer(tokens)


def _writes(actions: Iterable[Any]) -> Iterator[str]:
    return (path for path in map(path_of_action, actions) if path is not None)


def _tokens(path: object, dotted: bool) -> tuple[str, ...]:
    if not isinstance(path, str):
        return ()
    if dotted and "/" not in path:
        return tuple(path.split("."))
    try:
        return documents.parse_pointer(path, relative=True)
    except documents.PointerError:
        return ()


def _lines(terms: Iterable[str]) -> str:
    unique = dict.fromkeys(term for term in terms if _END not in term)
    return _END + _END.join(unique) + _END if unique else ""


#: Rules that a conflict names at most; it counts all of them.
MOST_NAMED = 10
#: Actions with something else than a path that says what they write -> its argument.
_NAMED = {"add-trait": "name", "remove-trait": "name", "set-capability": "name", "unset-capability": "name"}
#: Effect of an action on the value that is there: two rules that both add, or both remove, are no conflict.
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
        path, op = path_of_action(action), action["op"]
        if path is None or _is_template(path):
            continue
        name = None
        if op in _NAMED:
            arguments = action.get("args", {})
            argument = arguments.get(_NAMED[op]) if isinstance(arguments, Mapping) else next(iter(arguments), None)
            if not isinstance(argument, str) or _is_template(argument):
                continue
            name = argument
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
    by_rule = {}
    for _, writer, effects in ordered:
        of_rule = [conflict for place, kinds in effects.items()
                   if (conflict := _conflict(place, kinds, writer, groups[place]))]
        if of_rule:
            by_rule[writer.uuid] = of_rule
    return by_rule


def _effects(writes: Iterable[Write]) -> dict[_Place, frozenset[str]]:
    by_place: dict[_Place, frozenset[str]] = {}
    for path, name, effect in writes:
        by_place[path, name] = by_place.get((path, name), frozenset()) | {effect}
    return by_place


def _conflict(place: _Place, kinds: frozenset[str], writer: RuleWriter,
              groups: Mapping[tuple[str | None, ...], Mapping[frozenset[str], Sequence[_Numbered]]]
              ) -> WriteConflict | None:
    count = 0
    first: list[_Numbered] = []
    scopes: tuple[tuple[str | None, ...], ...] = ((),) if writer.scope is None else ((writer.scope,), (None,))
    for number, scope in enumerate(scopes):
        for other_kinds, rules in groups.get(scope, {}).items():
            if other_kinds == kinds and len(kinds) == 1 and "set" not in kinds:
                continue
            # The rule is in one of the groups itself.
            count += len(rules) - (number == 0 and other_kinds == kinds)
            first += [rule for rule in rules[:MOST_NAMED + 1] if rule[1] != writer.uuid]
    return WriteConflict(*place, count, [uuid for _, uuid in sorted(first)[:MOST_NAMED]]) if count else None


class CountedRule(Protocol):
    """A rule with what has become of it; without statistics its numbers are 0."""

    uuid: str
    name: str | None
    phase: str
    enabled: bool
    sensitive: bool
    built_in: bool
    considered: int
    evaluated: int
    matched: int
    failed: int
    last_matched_at: datetime.datetime | None
    last_node: str | None
    nodes_changed: int


@dataclasses.dataclass(slots=True)
class Counts:
    """Numbers to add to the statistics of a rule.

    :ivar last: when it matched last, and the UUID of that node; None for a machine that no node is known of
    :ivar changed: the ids of nodes that it changed
    """

    considered: int = 0
    evaluated: int = 0
    matched: int = 0
    failed: int = 0
    last: tuple[datetime.datetime, str | None] | None = None
    changed: set[int] = dataclasses.field(default_factory=set)

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """All that is added up."""
        return self.considered, self.evaluated, self.matched, self.failed

    def add(self, earlier: Counts) -> None:
        """Add earlier counts."""
        self.considered += earlier.considered
        self.evaluated += earlier.evaluated
        self.matched += earlier.matched
        self.failed += earlier.failed
        self.last = self.last or earlier.last
        self.changed |= earlier.changed


#: Treatments of values of rules that do not match: ``[legacy_rules]cleanup``.
CLEANUPS = ("own", "any", "off")
#: The kinds of owned values, see :class:`OwnedValue`.
PATH, CAPABILITY, ITEM, TRAIT, PORT = KINDS = ("path", "capability", "item", "trait", "port")
#: ``made`` of the first capability that was written to capabilities whose pairs do not say how they were written: null,
#: or a text with blanks, with a name without a value, or with a name twice.
AS_WRITTEN = -1


@record
class LegacyRule:
    """A rule as it is stored.

    ``uuid`` is empty for a rule that is not stored yet. ``position`` is the order of creation, in which rules run;
    ``revision`` is that of the set of legacy rules at the last change of this rule. Conditions have ``invert`` and
    ``multiple``; all else in conditions and actions is as the user has written it.
    """

    position: int = field(shown=False, default=0)
    revision: int = field(shown=False, default=0)

    uuid: str = field(create=True, summary=True, default="")
    created_at: datetime.datetime | None = field(default=None)
    updated_at: datetime.datetime | None = field(default=None)
    description: str | None = field(patch=True, summary=True, default=None)
    scope: str | None = field(patch=True, summary=True, default=None)
    conditions: list[JSONObject] = field(patch=True, default_factory=list)
    actions: list[JSONObject] = field(patch=True, required=True, default_factory=list)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> LegacyRule:
        """Return the rule with these fields; null stands for the default, where a field cannot be null."""
        return cls(**{name: value for name, value in values.items()
                      if value is not None or name not in LEGACY_RULE or LEGACY_RULE[name].nullable})

    def said(self) -> JSONObject:
        """Return the user's specification of the rule."""
        return {name: getattr(self, name) for name in LEGACY_WRITABLE if name != "uuid" or self.uuid}


LEGACY_RULE = Fields.of(LegacyRule, computed={"links": 1})
#: Fields that a user may set.
LEGACY_WRITABLE = LEGACY_RULE.where(lambda entry: entry.create)


@dataclass(frozen=True, slots=True)
class OwnedValue:
    """A value that one action of a legacy rule has written to a node, and the value before it.

    A node's values are in the order of writing and are reverted in the reverse order.

    :ivar rule_uuid: the rule; ``action``: the index of its action
    :ivar kind: ``path``: the value at a path; ``capability``; ``item``: of a list; ``trait``; ``port``: the value at a
        path of a port
    :ivar place: the JSON pointer below the node; of an item that of the list and the item's index, or ``-`` for an
        appended one; the name of a capability or trait; the UUID of a port and the path below it
    :ivar is_set: whether ``written`` was written; otherwise the action removed what was there
    :ivar had_before: whether there was a value, for an item: a list, at the place
    :ivar before: that value; for an item the number of items of the list that were equal to it; for a capability with
        ``AS_WRITTEN`` all capabilities
    :ivar made: how many objects along the path did not exist before; of a capability 1 if there were none at all,
        and of a removed one its place among the others, or ``AS_WRITTEN``
    """

    rule_uuid: str
    action: int
    kind: str
    place: str
    is_set: bool = True
    written: Any = None
    had_before: bool = False
    before: Any = None
    made: int = 0


#: The parameters of an action with what it writes at its path.
_WRITTEN = ("value", "cleanup")


def masked_actions(actions: Sequence[JSONObject]) -> list[JSONObject]:
    """Return actions with ``******`` for what they write under a secret key, and for secrets within other values."""
    return [{name: secrets.MASK if name in _WRITTEN and value is not None and _writes_secret(action)
             else secrets.mask({name: value})[name] for name, value in action.items()} for action in actions]


def masks_in_actions(actions: Sequence[JSONObject]) -> Iterator[str]:
    """Yield the JSON pointers of what :func:`masked` has hidden in actions that a client sends back."""
    for number, action in enumerate(actions):
        if not isinstance(action, dict):
            continue
        place = ("actions", str(number))
        for name in _WRITTEN:
            if action.get(name) == secrets.MASK and _writes_secret(action):
                yield documents.format_pointer((*place, name))
        yield from map(documents.format_pointer, secrets.masks_in(action, place))


def _writes_secret(action: JSONObject) -> bool:
    path = action.get("path", action.get("key"))
    return isinstance(path, str) and any(map(secrets.is_secret_key, re.split(r"[/.]", path)))
