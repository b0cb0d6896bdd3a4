"""Explained runs: the arguments of conditions and actions, their values, and the reason of each condition's outcome.

A compiled rule has functions only. Its arguments are read once more here, from what they were compiled from, because
only there they have names, and values that no operator has converted; every outcome is that of the compiled rule.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.models import secrets
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.secrets import Concealment
from ironic_rules.models.task import Task
from ironic_rules.rules import reads, template, values
from ironic_rules.rules.base import ActiveRule
from ironic_rules.rules.compiled import CompiledAction, Condition
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import Getter, UnknownRoot, View, Views, message_getter
from ironic_rules.rules.limits import Limits
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.signatures import Operation, parse_address
from ironic_rules.rules.template import Groups
from ironic_rules.rules.values import ROOTS, Const, Scope, compile_value
from ironic_rules.text import printable


@dataclass(frozen=True, slots=True)
class ArgumentTrace:
    """An argument of a condition or an action; secrets are masked.

    :ivar name: the parameter, ``values/0`` for one of several values
    :ivar written: the argument as in the rule, if it has templates
    :ivar value: what it stands for; None too if that is too large to be shown, then ``size`` is set
    :ivar type: ``null``, ``boolean``, ``integer``, ``number``, ``string``, ``list``, ``object``; ``missing`` without a
        value, and ``unknown`` if it cannot be told
    :ivar missing: the part of the template's path that does not exist
    :ivar size: the number of bytes, as JSON, of a value that is not shown
    """

    name: str
    written: str | None
    value: Any
    type: str
    missing: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class ItemTrace:
    """A condition, evaluated for one item of its loop.

    :ivar outcome: None if it could not be evaluated; that counts as false
    :ivar needed: whether the outcome of the loop depended on this item; it was not evaluated otherwise
    """

    outcome: bool | None
    arguments: tuple[ArgumentTrace, ...]
    why: str
    detail: str | None = None
    needed: bool = True


@dataclass(frozen=True, slots=True)
class ConditionTrace:
    """``outcome`` is None if the condition could not be evaluated; ``note`` says why.

    :ivar short_circuited: an earlier condition was not true, so that an inspection does not evaluate this one
    :ivar why: the reason for the outcome in a word or two: ``missing``, ``type``, ``not in network``, ``no match``, …
    :ivar detail: the part of the path that is missing, or both types
    :ivar items: of a loop, at most the first hundred; ``count`` is the number of all
    """

    where: str
    op: str
    outcome: bool | None
    note: str | None = None
    short_circuited: bool = False
    arguments: tuple[ArgumentTrace, ...] = ()
    why: str | None = None
    detail: str | None = None
    multiple: str | None = None
    items: tuple[ItemTrace, ...] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ActionTrace:
    """An action that ran, ``times`` times; ``notes`` describes what it did not do in a dry run.

    :ivar runs: the arguments of each run, of at most the first hundred; only explained
    """

    where: str
    op: str
    times: int
    notes: tuple[str, ...] = ()
    runs: tuple[tuple[ArgumentTrace, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a rule. Conditions, actions and changes are set if explained, and never for a sensitive rule.

    A dry run that is not explained sets the actions of rules with an action that did not do what it does otherwise.

    :ivar changes: the changes by the rule, secrets masked: a patch (RFC 6902) of ``node``, of ``plugin_data``, and of
        ``ports``, by address; a port that was removed or added is one operation with an empty path
    :ivar limited: whether the rule runs on a limited number of nodes
    :ivar note: why a rule whose conditions hold does not match; only explained
    """

    uuid: str
    description: str | None
    matched: bool
    error: str | None = None
    conditions: tuple[ConditionTrace, ...] = ()
    actions: tuple[ActionTrace, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    sensitive: bool = False
    limited: bool = False
    note: str | None = None


#: The state of a task that an explained step compares: roots by name, ports by address.
State = Mapping[str, Any]
Patch = Sequence[JSONObject]


#: Items of a loop, and runs of an action, that a trace has.
MAX_ITEMS = 100
#: Bytes, as JSON, of a value that is shown.
MAX_VALUE = 2048
#: Approximate bytes of the values that one explanation shows.
MAX_SHOWN = 4 * 1024 * 1024

# The rule is compiled already: limits of the service are not to be applied again.
_LIMITS = Limits(loop_items=1_000_000, depth=100, text=16_777_216, result=16_777_216)
_NAMES = (*ROOTS, "item", template.ROOT_GROUPS)

#: Words for each operator, those of legacy rules too, when it is true and when it is false.
_WORDS = {
    "is-true": ("true", "not true"), "is-false": ("false", "not false"), "is-none": ("null", "not null"),
    "is-empty": ("empty", "not empty"), "in-net": ("in network", "not in network"),
    "contains": ("match", "no match"), "matches": ("match", "no match"),
    "one-of": ("among the values", "not among the values"), "eq": ("equal", "not equal"),
    "lt": ("less", "not less"), "gt": ("greater", "not greater"), "ne": ("not equal", "equal"),
    "ge": ("not less", "less"), "le": ("not greater", "greater"), "net": ("in network", "not in network"),
}
#: Words for an operator of another package.
_OTHER = ("true", "not true")
#: Arguments of actions that are the path or name of their target.
_PATHS = frozenset({"path", "name"})
_COMPARING = frozenset({"eq", "lt", "gt"})
_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "list",
          tuple: "list", dict: "object"}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a rule.

    :ivar written: as in the rule
    :ivar get: None for a literal
    :ivar fields: those of its templates
    :ivar alone: the field that it consists of
    """

    name: str
    written: Any
    get: Getter | None
    fields: tuple[template.Field, ...]
    alone: template.Field | None

    @property
    def is_secret(self) -> bool:
        return any(secrets.is_secret_key(step) for field in self.fields for step in field.steps)


@dataclass(frozen=True, slots=True)
class WrittenCondition:
    """A condition as in its rule.

    :ivar items: of its loop, if it has one
    :ivar call: the condition for one of its items
    """

    name: str
    inverted: bool
    arguments: tuple[Argument, ...]
    multiple: str
    items: values.Items | None = None
    call: Callable[[View], bool] | None = None

    def why(self, outcome: bool | None, arguments: Sequence[ArgumentTrace]) -> tuple[str, str | None]:
        """Return the reason for an outcome: a word, and what there is to say about it."""
        missing = next((argument.missing for argument in arguments if argument.missing), None)
        if missing is not None:
            return "missing", missing
        if outcome is None:
            return self.why_unknown(arguments)
        is_true = outcome is not self.inverted
        return (None if is_true else self.why_untrue(arguments)) or (_WORDS.get(self.name, _OTHER)[not is_true], None)

    def why_unknown(self, arguments: Sequence[ArgumentTrace]) -> tuple[str, str | None]:
        """Return why it could not be evaluated."""
        return "cannot be evaluated", None

    def why_untrue(self, arguments: Sequence[ArgumentTrace]) -> tuple[str, str | None] | None:
        """Return why it is not true; None if the operator says it."""
        if self.name in _COMPARING and not any(
                argument.name == "force_strings" and argument.value for argument in arguments):
            types = [argument.type for argument in arguments if argument.name != "force_strings"]
            # Integers and other numbers are compared with each other.
            if len({"number" if name == "integer" else name for name in types}) > 1:
                return "type", " and ".join(dict.fromkeys(types))
        if self.name == "in-net" and arguments and not (
                isinstance(arguments[0].value, str) and parse_address(arguments[0].value) is not None):
            return "not an address", arguments[0].type
        return None

    def why_no_items(self, *, is_empty: bool) -> tuple[str, str | None]:
        """Return why the loop has no items: it is empty, or cannot be evaluated."""
        return "empty loop" if is_empty else "no loop", None

    def item(self, explainer: Explainer, view: View, item: object) -> ItemTrace:
        """Return the trace of one item."""
        # The captured item is that of the engine: later conditions have their own.
        before, outcome = view.get("item"), None
        view["item"] = item
        try:
            with contextlib.suppress(CannotEvaluate):
                assert self.call is not None
                outcome = self.call(view)
            shown = explainer.shown(self.arguments, view)
        finally:
            view["item"] = before
        return ItemTrace(outcome, shown, *self.why(outcome, shown))


def _condition(condition: Condition) -> WrittenCondition:
    name, inverted, arguments = _read(condition.written)
    if condition.loop is None:
        return WrittenCondition(name, inverted, arguments, "any")
    return WrittenCondition(name, inverted, arguments, *condition.loop)


@functools.lru_cache(maxsize=8192)
def _read(text: bytes) -> tuple[str, bool, tuple[Argument, ...]]:
    """Return the name of a condition's operator, whether it is inverted, and its arguments."""
    item = orjson.loads(text)
    op: str = item["op"]
    name = op.removeprefix("!").removeprefix(" ") if op.startswith("!") else op
    return name, op.startswith("!"), tuple(_arguments(OPERATORS.get(name), item.get("args", {})))


@functools.lru_cache(maxsize=8192)
def _action(text: bytes, operation: Operation) -> tuple[Argument, ...]:
    return tuple(_arguments(operation, orjson.loads(text).get("args", {})))


def _arguments(operation: Operation, args: Any) -> Iterable[Argument]:
    """Yield the arguments as a rule has them, by position or by name."""
    places = [p for p in operation.parameters if not p.keyword_only and p.variadic != "keyword"]
    if isinstance(args, dict):
        named = list(args.items())
    else:
        named = []
        for place, parameter in enumerate(places):
            if parameter.variadic == "positional":
                rest = args[place:]
                named.append((parameter.name, rest[0] if len(rest) == 1 else rest))
            elif place < len(args):
                named.append((parameter.name, args[place]))
    for name, value in named:
        declared = operation.parameter(name)
        is_formatted = operation.formatted is None or name in operation.formatted
        is_regex = declared is not None and declared.kind.regex
        for_people = declared is not None and declared.kind.for_people
        if declared is not None and declared.variadic == "positional" and isinstance(value, list):
            for index, item in enumerate(value):
                yield written_argument(_scope(), f"{name}/{index}", item, formatted=is_formatted, regex=is_regex)
        else:
            yield written_argument(_scope(), name, value, formatted=is_formatted, regex=is_regex,
                                   for_people=for_people)


def _scope() -> Scope:
    return Scope(_NAMES, False, False, [], _LIMITS, groups=Groups(None))


def written_argument(scope: Scope, name: str, written: object, *, formatted: bool, regex: bool = False,
                     for_people: bool = False) -> Argument:
    """Return an argument as it is written.

    :param scope: of this argument alone
    :param for_people: it is a message
    """
    compiled = compile_value(scope, written, "", formatted=formatted, regex=regex)
    if isinstance(compiled, Const) or scope.problems:
        return Argument(name, written, None, (), None)
    if for_people and isinstance(written, str):
        return Argument(name, written, message_getter(template.parse(written), _LIMITS.result), tuple(scope.fields),
                        None)
    return Argument(name, written, compiled.get, tuple(scope.fields), compiled.path)


class Explainer:
    """Makes the traces of one inspection, which share what must not be shown, and the size of what is shown.

    :param conceal: what must not be shown
    :param tick: called often; may raise to end the run
    """

    def __init__(self, conceal: Concealment | None = None, tick: Callable[[], None] = lambda: None) -> None:
        self.conceal = conceal or Concealment()
        #: true if the current rule reads what must not be shown
        self.is_secretive = False
        self.tick = tick
        self._room = MAX_SHOWN

    def condition(self, condition: Condition, where: str, view: View, outcome: bool | None, note: str | None, *,
                  short_circuited: bool, read: Callable[[Condition], WrittenCondition] = _condition) -> ConditionTrace:
        """Return the trace of a condition that was evaluated.

        :param note: why it could not be
        :param read: returns the condition as it is written
        """
        self.tick()
        if note is not None and self.is_secretive:
            note = secrets.MASK
        trace = ConditionTrace(where, condition.op, outcome, note, short_circuited)
        if not condition.written:
            return trace
        written = read(condition)
        if written.items is not None:
            return self._loop(trace, written, written.items, view)
        shown = self.shown(written.arguments, view)
        why, detail = written.why(outcome, shown)
        return replace(trace, arguments=shown, why=why, detail=detail)

    def _loop(self, trace: ConditionTrace, written: WrittenCondition, items: values.Items,
              view: View) -> ConditionTrace:
        trace = replace(trace, multiple=written.multiple)
        try:
            looped = items(view)
        except CannotEvaluate:
            why, detail = written.why_no_items(is_empty=False)
            return replace(trace, why=why, detail=detail)
        if not looped:
            why, detail = written.why_no_items(is_empty=True)
            return replace(trace, why=why, detail=detail, count=0)
        traces = tuple(self._item(written, view, item) for item in looped[:MAX_ITEMS])
        return replace(trace, count=len(looped), items=_marked(traces, written.multiple, len(looped)))

    def _item(self, written: WrittenCondition, view: View, item: object) -> ItemTrace:
        self.tick()
        return written.item(self, view, item)

    def noted(self, actions: Sequence[CompiledAction]) -> tuple[NotedAction, ...]:
        """Return actions that note the arguments of each of their runs."""
        return tuple(NotedAction(action, self) for action in actions)

    def run_of(self, action: CompiledAction, view: View) -> tuple[ArgumentTrace, ...]:
        """Return the arguments of an action as they are now."""
        return self.run_with(_action(action.written, action.operation) if action.written else (), view)

    def run_with(self, arguments: Sequence[Argument], view: View) -> tuple[ArgumentTrace, ...]:
        """Return the given arguments of an action as they are now."""
        self.tick()
        return _masked_by_path(self.shown(arguments, view))

    def shown(self, arguments: Sequence[Argument], view: View) -> tuple[ArgumentTrace, ...]:
        """Return the arguments as they are now; none if too much is shown already."""
        return () if self._room <= 0 else tuple(self._value(argument, view) for argument in arguments)

    def _value(self, argument: Argument, view: View) -> ArgumentTrace:
        if argument.get is None:
            return self._fitted(argument.name, None, argument.written)
        written = argument.written if isinstance(argument.written, str) else orjson.dumps(argument.written).decode()
        written = secrets.mask_text(printable(written, MAX_VALUE))
        missing = next(filter(None, (_missing(field, view) for field in argument.fields)), None)
        try:
            value = argument.get(view)
        except IronicRulesError:
            return ArgumentTrace(argument.name, written, None, "missing" if missing else "unknown", missing)
        if missing is not None and value is None:
            return ArgumentTrace(argument.name, written, None, "missing", missing)
        if value is not None and self._is_secret(argument, view):
            return ArgumentTrace(argument.name, written, secrets.MASK, type_of(value), missing)
        return self._fitted(argument.name, written, value, missing)

    def found(self, name: str, value: object, *, is_secret: bool) -> tuple[ArgumentTrace, ...]:
        """Return one value of several that an argument stands for."""
        if self._room <= 0:
            return ()
        if is_secret and value is not None:
            return (ArgumentTrace(name, None, secrets.MASK, type_of(value)),)
        return (self._fitted(name, None, value),)

    def _is_secret(self, argument: Argument, view: View) -> bool:
        """Return whether an argument stands for what must not be shown as a whole."""
        if argument.is_secret:
            return True
        if argument.alone is not None and argument.alone.root not in reads.LOCAL:
            # Secrets under their keys are masked.
            return self.conceal.is_read((argument.alone.root, *argument.alone.steps))
        return any(self.is_secretive if field.root in reads.LOCAL
                   else reads.is_secret((field.root, *field.steps), view, self.conceal) for field in argument.fields)

    def _fitted(self, name: str, written: str | None, value: Any, missing: str | None = None) -> ArgumentTrace:
        shown = self.conceal.hide(value) if _is_small(value, MAX_VALUE) else value
        try:
            size = len(orjson.dumps(shown))
        except (orjson.JSONEncodeError, TypeError):
            return ArgumentTrace(name, written, None, "unknown", missing)
        if size > MAX_VALUE:
            return ArgumentTrace(name, written, None, type_of(value), missing, size)
        self._room -= size + len(written or "")
        return ArgumentTrace(name, written, shown, type_of(value), missing)


def _masked_by_path(traces: tuple[ArgumentTrace, ...]) -> tuple[ArgumentTrace, ...]:
    """Return the arguments of an action, of one that writes under a secret key without what it writes."""
    if not any(argument.name in _PATHS and isinstance(argument.value, str)
               and any(map(secrets.is_secret_key, re.split(r"[/.]", argument.value))) for argument in traces):
        return traces
    return tuple(argument if argument.name in _PATHS or argument.value is None
                 else replace(argument, value=secrets.MASK, written=None) for argument in traces)


class NotedAction:
    """An action of an explained rule, in place of the compiled one."""

    __slots__ = ("_action", "_explainer", "is_foreign", "op", "runs", "waits", "where")

    def __init__(self, action: CompiledAction, explainer: Explainer) -> None:
        self._action = action
        self._explainer = explainer
        self.where, self.op = action.where, action.op
        self.waits, self.is_foreign = action.waits, action.is_foreign
        self.runs: list[tuple[ArgumentTrace, ...]] = []

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        """Run the action as the compiled one does."""
        return self._action.run_noted(task, rule, view, views, self._note)

    def _note(self, view: View) -> None:
        if len(self.runs) < MAX_ITEMS:
            self.runs.append(self._explainer.run_of(self._action, view))
        else:
            self._explainer.tick()


def _marked(items: tuple[ItemTrace, ...], multiple: str, count: int) -> tuple[ItemTrace, ...]:
    """Return the items of a loop, with those marked on which its outcome did not depend."""
    if multiple == "first":
        needed = range(1)
    elif multiple == "last":
        needed = range(count - 1, count)
    else:
        sought = multiple == "any"
        deciding = next((place for place, item in enumerate(items) if bool(item.outcome) is sought), count)
        needed = range(deciding + 1)
    return tuple(item if place in needed else replace(item, needed=False) for place, item in enumerate(items))


def type_of(value: object) -> str:
    """Return the name of the type of a JSON value."""
    return _TYPES.get(type(value), "unknown")


def _missing(field: template.Field, view: View) -> str | None:
    """Return the part of a field's path that does not exist; None if all of it does."""
    if field.root not in view and field.root in ("item", template.ROOT_GROUPS):
        return field.root
    try:
        value = view[field.root]
    except UnknownRoot:
        return field.root
    for number, step in enumerate(field.steps):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, (list, tuple)) and step.isdecimal() and int(step[:9]) < len(value):
            value = value[int(step)]
        else:
            return field.root + "".join(f"[{key}]" for key in field.steps[:number + 1])
    return None


def _is_small(value: object, room: int) -> bool:
    """Return whether a value has at most about ``room`` characters; takes no longer for one that is much larger."""
    unchecked = [value]
    while unchecked:
        item = unchecked.pop()
        room -= len(item) if isinstance(item, str) else 4
        if room < 0:
            return False
        if isinstance(item, dict):
            if len(item) > room:
                return False
            unchecked += item.keys()
            unchecked += item.values()
        elif isinstance(item, (list, tuple)):
            if len(item) > room:
                return False
            unchecked += item
    return True
