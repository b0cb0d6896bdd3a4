"""Compile legacy rules to the conditions that inspection rules have, and to actions on the same drafts.

One pass finds every problem and compiles, so that every valid rule compiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import orjson

from ironic_rules.exceptions import InvalidRule, LegacyRuleFailed, Problem, RuleFailed
from ironic_rules.legacy import conditions, foreign, form, paths
from ironic_rules.legacy import plugins as plugin_module
from ironic_rules.legacy.actions import ACTIONS, Given, LegacyAction
from ironic_rules.legacy.plugins import Plugins
from ironic_rules.legacy.values import scope_of
from ironic_rules.models.rules import LegacyRule
from ironic_rules.models.task import is_signal
from ironic_rules.rules.compiled import INVALID, Condition
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.text import nearest


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
        """Whether nothing of the rule may be shown: ironic-inspector has no such rules."""
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
        return LegacyRuleFailed(rule=self.uuid, where=first.where or "/", reason=f"{INVALID}: {first.text}")


class _Pass:
    """One pass over a rule."""

    def __init__(self, rule: str, limits: Limits, plugins: Plugins) -> None:
        self._rule = rule
        self._scope = scope_of(limits)
        self._limits = limits
        self._plugins = plugins
        #: why plug-ins that the rule uses are missing
        self.missing: list[Problem] = []
        self.conditions: list[Condition] = []
        self.actions: list[LegacyAction] = []

    @property
    def problems(self) -> list[Problem]:
        return self._scope.problems

    def read(self, body: Any) -> None:
        """Check and compile a rule as a user writes it."""
        if not form.is_readable(body, self._scope.complain):
            return
        form.check_fields(body, self._scope.complain)
        for condition in form.conditions(body, self._limits, self._scope.complain):
            compiled = self._condition(condition)
            if compiled is not None:
                self.conditions.append(compiled)
        for action in form.actions(body, self._limits, self._scope.complain):
            made = self._action(action)
            if made is not None:
                self.actions.append(made)

    def _condition(self, said: form.Condition) -> Condition | None:
        before = len(self.problems)
        field = None
        try:
            field = paths.parse(said.field, self._limits.loop_items)
        except paths.PathProblem as exc:
            self._scope.complain(f"{said.where}/field", str(exc))
        if said.op not in conditions.OPERATORS:
            return self._foreign_condition(said, field)
        required = frozenset() if said.op in conditions.ALLOW_NONE else frozenset({"value"})
        if form.check_names(said.params, required, frozenset(), said.where, self._scope.complain) and required:
            value = said.params["value"]
            problem = "is required" if value is None else conditions.problem(said.op, value, self._limits)
            if problem is not None:
                self._scope.complain(f"{said.where}/value", problem)
        if len(self.problems) > before or field is None:
            return None
        return conditions.shared(_text([said.field, said.op, said.params, said.multiple, said.invert]), self._limits)

    def _foreign_condition(self, said: form.Condition, field: paths.FieldPath | None) -> Condition | None:
        plugin = self._plugins.conditions.get(said.op)
        if plugin is None:
            self._miss(plugin_module.CONDITIONS, said.op, f"{said.where}/op",
                       [*conditions.OPERATORS, *self._plugins.conditions])
            return None
        foreign.complain_of_params(plugin, said.params, said.where, self._scope.complain, frozenset({"value"}))
        if field is None:
            return None
        made = foreign.condition(self._rule, said, plugin, field)
        return replace(made, written=_text([said.field, said.op, said.params, said.multiple, said.invert]))

    def _action(self, said: form.Action) -> LegacyAction | None:
        made = self._compiled_action(said)
        if made is not None:
            made.written = _text(said.params)
        return made

    def _compiled_action(self, said: form.Action) -> LegacyAction | None:
        kind = ACTIONS.get(said.action)
        if kind is None:
            plugin = self._plugins.actions.get(said.action)
            if plugin is None:
                self._miss(plugin_module.ACTIONS, said.action, f"{said.where}/action",
                           [*ACTIONS, *self._plugins.actions])
                return None
            return foreign.PluginAction(
                said.action, Given(said.where, said.params, self._scope), plugin)
        params, path = dict(said.params), "path"
        if "path" in kind.required and "key" in params:
            if "path" in params:
                self._scope.complain(f"{said.where}/key", "is another name of path; write one of them")
            params["path"], path = params.pop("key"), "key"
        if not form.check_names(params, kind.required, kind.optional, said.where, self._scope.complain):
            return None
        return kind(said.action, Given(said.where, params, self._scope, path))

    def _miss(self, group: str, name: str, where: str, known: list[str]) -> None:
        reason = self._plugins.broken.get((group, name))
        if reason is not None:
            self.missing.append(Problem(where, f"the plug-in cannot be loaded: {reason}"))
            return
        near = nearest(name, known)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(sorted(known))}"
        self.missing.append(Problem(where, f"there is no such name; {hint}"))


def _text(said: Any) -> bytes:
    # A copy, see rules.compiler.
    return bytes(memoryview(orjson.dumps(said)))


def parse(body: Any, *, limits: Limits = DEFAULT, plugins: Plugins = plugin_module.NONE) -> LegacyRule:
    """Return the rule that a request body describes, in the document's or ironic-inspector's form.

    :param body: any JSON value
    :returns: the rule, not stored yet (no times, position and revision), with ``invert`` and ``multiple`` filled in
    :raises InvalidRule: with every problem and its JSON pointer
    """
    found = _Pass("", limits, plugins)
    found.read(body)
    if problems := [*found.problems, *found.missing]:
        raise InvalidRule(problems=problems)
    return LegacyRule.of(form.with_defaults(body))


def compile_rule(rule: LegacyRule, *, limits: Limits = DEFAULT,
                 plugins: Plugins = plugin_module.NONE) -> CompiledLegacyRule:
    """Compile a rule.

    :raises InvalidRule: with every problem
    """
    found = _Pass(rule.uuid, limits, plugins)
    found.read(rule.said())
    if problems := [*found.problems, *found.missing]:
        raise InvalidRule(problems=problems)
    return _compiled(rule, found)


def compile_stored(rule: LegacyRule, *, limits: Limits = DEFAULT,
                   plugins: Plugins = plugin_module.NONE) -> CompiledLegacyRule | BrokenLegacyRule:
    """Compile a rule that was valid when it was stored. If only plug-ins are missing, it is disabled."""
    try:
        found = _Pass(rule.uuid, limits, plugins)
        found.read(rule.said())
    except BaseException as exc:  # whatever is wrong with one rule must not stop the others
        if is_signal(exc):
            raise
        problem = Problem("", f"it cannot be compiled: {type(exc).__name__}")
        return BrokenLegacyRule(rule.uuid, rule.scope, rule.position, (problem,))
    if found.problems:
        return BrokenLegacyRule(rule.uuid, rule.scope, rule.position, tuple(found.problems))
    return _compiled(rule, found)


def _compiled(rule: LegacyRule, found: _Pass) -> CompiledLegacyRule:
    disabled = "; ".join(map(str, found.missing)) or None
    return CompiledLegacyRule(rule.uuid, rule.description, rule.scope, rule.position, tuple(found.conditions),
                              tuple(found.actions), disabled)
