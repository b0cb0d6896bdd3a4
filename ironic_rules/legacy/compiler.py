"""The compiler of legacy rules: a rule as a user writes it, to conditions of inspection rules and actions on drafts.

The form of a rule is the document's and ironic-inspector's: ``net`` and ``in-net`` are one operator,
``append-attribute`` and ``extend-attribute`` one action, ``key`` and ``path`` one parameter. One pass finds every
problem and compiles, so that every valid rule compiles. Calls of plug-ins have a deadline, and their writes are
checked.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ironic_rules.exceptions import InvalidRule, IronicRulesError, Problem, RuleFailed, legacy_rule_failed
from ironic_rules.legacy import conditions as conditions_legacy
from ironic_rules.legacy import paths
from ironic_rules.legacy import plugins as plugin_module
from ironic_rules.legacy.actions import ACTIONS, Given, LegacyAction
from ironic_rules.legacy.conditions import MULTIPLE, Tested, compile_condition
from ironic_rules.legacy.node_info import NodeInfo
from ironic_rules.legacy.ownership import Ledger
from ironic_rules.legacy.plugins import Plugins
from ironic_rules.legacy.values import scope_of
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.kept import Kept
from ironic_rules.models.rules import LEGACY_WRITABLE, LegacyRule
from ironic_rules.models.task import ACTION, Abandoned, Task, is_signal
from ironic_rules.rules import template
from ironic_rules.rules.compiled import INVALID, Condition
from ironic_rules.rules.errors import ActionError, CannotEvaluate
from ironic_rules.rules.getters import View, Views
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.values import Compiled, Warnings, compile_value
from ironic_rules.text import MAX_MESSAGE, is_storable, is_uuid, nearest, pointer_token, printable

Complain = Callable[[str, str], None]

#: Maximum number of bytes of a rule as JSON: checking takes time for each of them.
MAX_SIZE = 256 * 1024
MAX_SCOPE = 255
MAX_DESCRIPTION = 65535
#: Fields of replies, which a body that was copied from one has, too.
_REPLIED = frozenset({"links", "created_at", "updated_at"})
_OF_CONDITION = frozenset({"field", "op", "multiple", "invert"})
_OF_ACTION = frozenset({"action"})


@dataclass(frozen=True, slots=True)
class LegacyCondition:
    """A condition as it is written, with defaults; ``params`` is the rest of it."""

    where: str
    field: str
    op: str
    multiple: str
    invert: bool
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """An action as it is written; ``params`` is the rest of it, with ``path`` for ``key``."""

    where: str
    action: str
    params: Mapping[str, Any]


def is_readable(body: Any, complain: Complain) -> bool:
    """Return whether a body is an object of a size that can be checked; complain if it is not."""
    if not isinstance(body, Mapping):
        complain("", "a rule is an object")
        return False
    if (unstorable := documents.unstorable(dict(body))) is not None:
        path, reason = unstorable
        complain("".join(f"/{pointer_token(part)}" for part in path), reason)
        return False
    if len(orjson.dumps(body)) > MAX_SIZE:
        complain("", f"a rule has at most {MAX_SIZE} bytes")
        return False
    return True


def check_fields(body: Mapping[str, Any], complain: Complain) -> None:
    """Complain of the fields of a body other than conditions and actions."""
    for key in body:
        if key not in LEGACY_WRITABLE and key not in _REPLIED:
            complain(f"/{pointer_token(key)}", _unknown("field", key, LEGACY_WRITABLE))
    uuid = body.get("uuid")
    if uuid is not None and not is_uuid(uuid):
        complain("/uuid", "must be a UUID")
    for name, most in (("description", MAX_DESCRIPTION), ("scope", MAX_SCOPE)):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            complain(f"/{name}", "must be a string or null")
        elif len(value.encode()) > most:
            complain(f"/{name}", f"must have at most {most} bytes")
        elif not is_storable(value):
            complain(f"/{name}", "must not contain NUL and lone surrogate characters")


def conditions(body: Mapping[str, Any], limits: Limits, complain: Complain) -> Iterator[LegacyCondition]:
    """Yield the conditions that are well-formed."""
    for where, item in _items(body.get("conditions"), "/conditions", limits.conditions, complain):
        if not isinstance(item, Mapping):
            complain(where, "must be an object with 'field' and 'op'")
            continue
        is_right = [_is_text(item, name, where, complain) for name in ("field", "op")]
        multiple, invert = item.get("multiple", "any"), item.get("invert", False)
        if multiple not in MULTIPLE:
            complain(f"{where}/multiple", f"must be one of {', '.join(MULTIPLE)}")
            is_right.append(False)
        if not isinstance(invert, bool):
            complain(f"{where}/invert", "must be true or false")
            is_right.append(False)
        if all(is_right):
            yield LegacyCondition(where, item["field"], item["op"], multiple, invert,
                                  {name: value for name, value in item.items() if name not in _OF_CONDITION})


def actions(body: Mapping[str, Any], limits: Limits, complain: Complain) -> Iterator[Action]:
    """Yield the actions that are well-formed."""
    if not body.get("actions"):
        complain("/actions", "must be a list of at least one action")
        return
    for where, item in _items(body["actions"], "/actions", limits.actions, complain):
        if not isinstance(item, Mapping):
            complain(where, "must be an object with 'action'")
        elif _is_text(item, "action", where, complain):
            params = {name: value for name, value in item.items() if name not in _OF_ACTION}
            yield Action(where, item["action"], params)


def check_names(params: Mapping[str, Any], required: frozenset[str], optional: frozenset[str], where: str,
                complain: Complain) -> bool:
    """Return whether parameters are those that there are; complain of others, and of those that are missing."""
    before = True
    for name in sorted(required - params.keys()):
        complain(f"{where}/{name}", "is required")
        before = False
    for name in params:
        if name not in required and name not in optional:
            complain(f"{where}/{pointer_token(name)}", _unknown("parameter", name, required | optional))
            before = False
    return before


def with_defaults(body: Mapping[str, Any]) -> JSONObject:
    """Return the fields of a valid body, with ``invert`` and ``multiple`` filled in."""
    return {
        "uuid": body.get("uuid") or "", "description": body.get("description"), "scope": body.get("scope"),
        "conditions": [{**item, "invert": item.get("invert", False), "multiple": item.get("multiple", "any")}
                       for item in body.get("conditions") or ()],
        "actions": [dict(item) for item in body["actions"]],
    }


def _items(items: Any, where: str, most: int, complain: Complain) -> Iterator[tuple[str, Any]]:
    if items is None:
        return
    if not isinstance(items, (list, tuple)):
        complain(where, "must be a list")
    elif len(items) > most:
        complain(where, f"more than {most} items")
    else:
        for index, item in enumerate(items):
            yield f"{where}/{index}", item


def _is_text(item: Mapping[str, Any], name: str, where: str, complain: Complain) -> bool:
    if isinstance(item.get(name), str):
        return True
    complain(f"{where}/{name}", "must be a string" if name in item else "is required")
    return False


def _unknown(noun: str, name: str, valid: Any) -> str:
    near = nearest(name, valid)
    names = ", ".join(sorted(valid))
    return f"unknown {noun}; did you mean {near!r}?" if near else f"unknown {noun}; known: {names or 'none'}"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CompiledLegacyRule:
    """A rule ready to be evaluated; immutable, shared by threads and rule sets.

    :ivar disabled: why it does nothing: a plug-in that it uses cannot be loaded; None if it works
    """

    uuid: str
    description: str | None
    scope: str | None
    position: int
    conditions: tuple[Condition, ...]
    actions: tuple[LegacyAction, ...]
    disabled: str | None = None

    @property
    def sensitive(self) -> bool:
        """True if nothing of the rule may be shown: ironic-inspector has no such rules."""
        return False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class BrokenLegacyRule:
    """A stored rule that cannot be compiled: it would be wrong to inspect a node in its scope without it."""

    uuid: str
    scope: str | None
    position: int
    problems: tuple[Problem, ...]

    def failure(self) -> RuleFailed:
        """Return the error that an inspection ends with."""
        first = self.problems[0]
        return legacy_rule_failed(rule=self.uuid, called="", where=first.where or "/",
                                  reason=f"{INVALID}: {first.text}")


class _Pass:
    """One pass over a rule."""

    def __init__(self, rule: str, limits: Limits, plugins: Plugins, warnings: Warnings | None = None) -> None:
        self._rule = rule
        self._scope = scope_of(limits, warnings)
        self._limits = limits
        self._plugins = plugins
        #: reasons why plug-ins that the rule uses are missing
        self.missing: list[Problem] = []
        self.conditions: list[Condition] = []
        self.actions: list[LegacyAction] = []

    @property
    def problems(self) -> list[Problem]:
        return self._scope.problems

    def read(self, body: Any) -> None:
        """Check and compile a rule as a user writes it."""
        if not is_readable(body, self._scope.complain):
            return
        check_fields(body, self._scope.complain)
        for condition in conditions(body, self._limits, self._scope.complain):
            compiled = self._condition(condition)
            if compiled is not None:
                self.conditions.append(compiled)
        for action in actions(body, self._limits, self._scope.complain):
            compiled_action = self._action(action)
            if compiled_action is not None:
                self.actions.append(compiled_action)

    def _condition(self, condition: LegacyCondition) -> Condition | None:
        before = len(self.problems)
        field = None
        try:
            field = paths.parse(condition.field, self._limits.loop_items)
        except paths.PathProblem as exc:
            self._scope.complain(f"{condition.where}/field", str(exc))
        if condition.op not in conditions_legacy.OPERATORS:
            return self._foreign_condition(condition, field)
        required = frozenset() if condition.op in conditions_legacy.ALLOW_NONE else frozenset({"value"})
        if check_names(condition.params, required, frozenset(), condition.where, self._scope.complain) and required:
            value = condition.params["value"]
            problem = "is required" if value is None else conditions_legacy.problem(condition.op, value, self._limits)
            if problem is not None:
                self._scope.complain(f"{condition.where}/value", problem)
        if len(self.problems) > before or field is None:
            return None
        self._warn(condition)
        return conditions_legacy.shared(_condition_text(condition), self._limits)

    def _warn(self, condition: LegacyCondition) -> None:
        """Warn of a valid condition that holds for no machine, or whose inverse does."""
        if self._scope.warnings is None:
            return
        if conditions_legacy.is_without_order(condition.op, condition.params.get("value")):
            self._scope.warn(f"{condition.where}/value", "an object has no order, so that this condition never holds")
        root, parts = paths.split(condition.field)
        steps = tuple(filter(None, itertools.takewhile(lambda name: name is not None, map(paths.step, parts))))
        if root == "node" and (problem := template.record_problem(root, steps)) is not None:
            self._scope.warn(f"{condition.where}/field", f"part {problem[0] + 1} of the path below node: {problem[1]}")

    def _foreign_condition(self, condition: LegacyCondition, field: paths.FieldPath | None) -> Condition | None:
        plugin = self._plugins.conditions.get(condition.op)
        if plugin is None:
            self._miss(plugin_module.CONDITIONS, condition.op, f"{condition.where}/op",
                       [*conditions_legacy.OPERATORS, *self._plugins.conditions])
            return None
        complain_of_params(plugin, condition.params, condition.where, self._scope.complain, frozenset({"value"}))
        if field is None:
            return None
        compiled = foreign_condition(self._rule, condition, plugin, field)
        return replace(compiled, written=_condition_text(condition))

    def _action(self, action: Action) -> LegacyAction | None:
        compiled = self._compiled_action(action)
        if compiled is not None:
            compiled.written = _text(action.params)
        return compiled

    def _compiled_action(self, action: Action) -> LegacyAction | None:
        kind = ACTIONS.get(action.action)
        if kind is None:
            plugin = self._plugins.actions.get(action.action)
            if plugin is None:
                self._miss(plugin_module.ACTIONS, action.action, f"{action.where}/action",
                           [*ACTIONS, *self._plugins.actions])
                return None
            return PluginAction(action.action, Given(action.where, action.params, self._scope), plugin)
        params, path = dict(action.params), "path"
        if "path" in kind.required and "key" in params:
            if "path" in params:
                self._scope.complain(f"{action.where}/key", "is another name of path; write one of them")
            params["path"], path = params.pop("key"), "key"
        if not check_names(params, kind.required, kind.optional, action.where, self._scope.complain):
            return None
        return kind(action.action, Given(action.where, params, self._scope, path))

    def _miss(self, group: str, name: str, where: str, valid: list[str]) -> None:
        reason = self._plugins.broken.get((group, name))
        if reason is not None:
            self.missing.append(Problem(where, f"the plug-in cannot be loaded: {reason}"))
            return
        near = nearest(name, valid)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(sorted(valid))}"
        self.missing.append(Problem(where, f"there is no such name; {hint}"))


def _condition_text(condition: LegacyCondition) -> bytes:
    return _text([condition.field, condition.op, condition.params, condition.multiple, condition.invert])


def _text(document: Any) -> bytes:
    # A copy, see rules.compiler.
    return bytes(memoryview(orjson.dumps(document)))


def parse(body: Any, *, limits: Limits = DEFAULT, plugins: Plugins = plugin_module.NONE,
          warnings: Warnings | None = None) -> LegacyRule:
    """Return the rule that a request body describes, in the document's or ironic-inspector's form.

    :param body: any JSON value
    :param warnings: to which those about the rule are added
    :returns: the rule, not stored yet (no times, position and revision), with ``invert`` and ``multiple`` filled in
    :raises InvalidRule: with every problem and its JSON pointer
    """
    reading = _Pass("", limits, plugins, warnings)
    reading.read(body)
    if problems := [*reading.problems, *reading.missing]:
        raise InvalidRule(problems=problems)
    return LegacyRule.of(with_defaults(body))


def compile_rule(rule: LegacyRule, *, limits: Limits = DEFAULT,
                 plugins: Plugins = plugin_module.NONE) -> CompiledLegacyRule:
    """Compile a rule.

    :raises InvalidRule: with every problem
    """
    reading = _Pass(rule.uuid, limits, plugins)
    reading.read(rule.said())
    if problems := [*reading.problems, *reading.missing]:
        raise InvalidRule(problems=problems)
    return _compiled(rule, reading)


def compile_stored(rule: LegacyRule, *, limits: Limits = DEFAULT,
                   plugins: Plugins = plugin_module.NONE) -> CompiledLegacyRule | BrokenLegacyRule:
    """Compile a rule that was valid when it was stored. If only plug-ins are missing, it is disabled."""
    try:
        reading = _Pass(rule.uuid, limits, plugins)
        reading.read(rule.said())
    except BaseException as exc:  # whatever is wrong with one rule must not stop the others
        if is_signal(exc):
            raise
        problem = Problem("", f"it cannot be compiled: {type(exc).__name__}")
        return BrokenLegacyRule(rule.uuid, rule.scope, rule.position, (problem,))
    if reading.problems:
        return BrokenLegacyRule(rule.uuid, rule.scope, rule.position, tuple(reading.problems))
    return _compiled(rule, reading)


def _compiled(rule: LegacyRule, reading: _Pass) -> CompiledLegacyRule:
    disabled = "; ".join(map(str, reading.missing)) or None
    return CompiledLegacyRule(rule.uuid, rule.description, rule.scope, rule.position, tuple(reading.conditions),
                              tuple(reading.actions), disabled)


#: The key of a view with the task: a condition of a plug-in needs more than data.
TASK = "task"

_EMPTY: tuple[Any, ...] = (None, "", [], {})


def complain_of_params(plugin: Any, params: Mapping[str, Any], where: str, complain: Callable[[str, str], None],
                       default: frozenset[str]) -> None:
    """Check the parameters of a plug-in, by its sets of names and its own method.

    :param default: the required parameters of a plug-in that says nothing
    """
    says = getattr(plugin, "REQUIRED_PARAMS", None), getattr(plugin, "OPTIONAL_PARAMS", None)
    validate = getattr(plugin, "validate", None)
    if any(names is not None for names in says) or validate is None:
        required = set(default if says[0] is None else says[0])
        optional = set(says[1] or ())
        for name in sorted(required):
            if params.get(name) is None or (says[0] is None and params[name] in _EMPTY):
                complain(f"{where}/{printable(name, 64)}", "is required")
        for name in params:
            if name not in required | optional:
                complain(f"{where}/{printable(name, 64)}", "unknown parameter")
    if validate is None:
        return
    try:
        validate(copy.deepcopy(dict(params)))
    except ValueError as exc:
        complain(where, printable(exc, MAX_MESSAGE))
    except BaseException as exc:  # third-party code can raise anything
        if is_signal(exc):
            raise
        # Without its text, which may quote the parameters.
        complain(where, f"the plug-in cannot check the parameters: {type(exc).__name__}")


def foreign_condition(rule: str, condition: LegacyCondition, plugin: Any, field: paths.FieldPath) -> Condition:
    """Return a condition of a plug-in."""
    where, params = condition.where, condition.params
    call = plugin.check

    def test_in(view: View) -> Callable[[Any], bool]:
        task: Task = view[TASK]

        def test(value: Any) -> bool:
            task.watch.begin(ACTION, _overdue, rule, where)
            try:
                return bool(call(NodeInfo(task), copy.deepcopy(value), copy.deepcopy(dict(params))))
            except Abandoned:
                raise
            except BaseException as exc:  # third-party code: whatever it raises, it tests nothing
                if is_signal(exc):
                    raise
                raise CannotEvaluate(f"the plug-in failed: {type(exc).__name__}") from exc
            finally:
                task.watch.end()

        return test

    allow_none = bool(getattr(plugin, "ALLOW_NONE", False))

    def whole(view: View) -> bool:
        tested = Tested(test_in(view))
        return compile_condition(
            condition.op, field, tested, condition.multiple, condition.invert, allow_none=allow_none).call(view)

    return Condition(condition.op, whole, False)


class PluginAction(LegacyAction):
    """An action of another package."""

    __slots__ = ("_params", "_plugin", "_said")

    is_foreign = True

    def __init__(self, op: str, arguments: Given, plugin: Any) -> None:
        super().__init__(op, arguments)
        self._plugin = plugin
        self._said = arguments.params
        complain_of_params(plugin, arguments.params, arguments.where, arguments.scope.complain, frozenset())
        formatted = self.formatted
        self._params: dict[str, Compiled] = {
            name: compile_value(arguments.scope, value, f"{arguments.where}/{printable(name, 64)}",
                                formatted=name in formatted)
            for name, value in arguments.params.items()}

    @property
    def formatted(self) -> frozenset[str]:
        return frozenset(getattr(self._plugin, "FORMATTED_PARAMS", None) or ())

    @property
    def has_cleanup(self) -> bool:
        return callable(getattr(self._plugin, "cleanup", None))

    def apply(self, ledger: Ledger, view: View, views: Views) -> None:
        self._call(self._plugin.apply, ledger, {
            name: self._filled(value, view, views) for name, value in self._params.items()})

    def cleanup(self, ledger: Ledger, view: View, views: Views) -> None:
        if not self.has_cleanup:
            return
        params = {}
        for name, value in self._params.items():
            try:
                params[name] = self._filled(value, view, views)
            except CannotEvaluate:
                # Data that the rule reads may be missing on hardware that it does not match.
                params[name] = self._said[name]
        self._call(self._plugin.cleanup, ledger, params)

    def _call(self, call: Callable[..., Any], ledger: Ledger, params: JSONObject) -> None:
        task = ledger.task
        check = Kept(task, "rules")
        task.watch.begin(ACTION, _overdue, ledger.rule, self.where)
        try:
            call(NodeInfo(task, ledger), copy.deepcopy(params))
        finally:
            task.watch.end()
        if problem := check.problem():
            raise ActionError(problem)
        task.check_secrets()


def _overdue(rule: str, where: str, reason: str) -> IronicRulesError:
    return RuleFailed(rule=rule, called="", where=where, reason=reason)
