"""Calls of plug-ins: their parameters checked and filled in, with a deadline, and with a look at what they wrote."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ironic_rules.exceptions import IronicRulesError, RuleFailed
from ironic_rules.legacy import compiler, paths
from ironic_rules.legacy.actions import Given, LegacyAction
from ironic_rules.legacy.conditions import Tested, compile_condition
from ironic_rules.legacy.node_info import NodeInfo
from ironic_rules.legacy.ownership import Ledger
from ironic_rules.models.kept import Kept
from ironic_rules.models.task import ACTION, Abandoned, Task, is_signal
from ironic_rules.rules.compiled import Condition
from ironic_rules.rules.errors import ActionError, CannotEvaluate
from ironic_rules.rules.getters import View, Views
from ironic_rules.rules.values import Compiled, compile_value
from ironic_rules.text import MAX_MESSAGE, printable

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


def condition(rule: str, said: compiler.LegacyCondition, plugin: Any, field: paths.FieldPath) -> Condition:
    """Return a condition of a plug-in."""
    where, params = said.where, said.params
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
            said.op, field, tested, said.multiple, said.invert, allow_none=allow_none).call(view)

    return Condition(said.op, whole, False)


class PluginAction(LegacyAction):
    """An action of another package."""

    __slots__ = ("_params", "_plugin", "_said")

    is_foreign = True

    def __init__(self, op: str, given: Given, plugin: Any) -> None:
        super().__init__(op, given)
        self._plugin = plugin
        self._said = given.params
        complain_of_params(plugin, given.params, given.where, given.scope.complain, frozenset())
        formatted = self.formatted
        self._params: dict[str, Compiled] = {
            name: compile_value(given.scope, value, f"{given.where}/{printable(name, 64)}", formatted=name in formatted)
            for name, value in given.params.items()}

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
                # Of hardware that the rule does not match, what it reads may be missing.
                params[name] = self._said[name]
        self._call(self._plugin.cleanup, ledger, params)

    def _call(self, call: Callable[..., Any], ledger: Ledger, params: dict[str, Any]) -> None:
        task = ledger.task
        kept = Kept(task, "rules")
        task.watch.begin(ACTION, _overdue, ledger.rule, self.where)
        try:
            call(NodeInfo(task, ledger), copy.deepcopy(params))
        finally:
            task.watch.end()
        if problem := kept.problem():
            raise ActionError(problem)
        task.check_secrets()


def _overdue(rule: str, where: str, reason: str) -> IronicRulesError:
    return RuleFailed(rule=rule, where=where, reason=reason)
