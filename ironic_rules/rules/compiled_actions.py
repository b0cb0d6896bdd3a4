"""Actions of compiled rules: operations with their arguments, ready to be called for a node.

There may be thousands, each used once per inspection: for speed they share objects and consist of few objects each.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from ironic_rules.models import json_values, pointer
from ironic_rules.models.draft import FieldPath, NodeDraft
from ironic_rules.models.nodes import NODE
from ironic_rules.models.task import Task
from ironic_rules.rules import arguments, paths
from ironic_rules.rules.base import ActiveRule
from ironic_rules.rules.errors import ActionError
from ironic_rules.rules.getters import Getter
from ironic_rules.rules.limits import MAX_LEVELS
from ironic_rules.rules.loop import Items
from ironic_rules.rules.mask import View, Views
from ironic_rules.rules.registry import Operation
from ironic_rules.rules.values import Compiled, Const, as_getter

_SCALARS = frozenset({int, float, bool, type(None)})
#: The size of a value besides its characters: approximately its overhead in JSON.
PER_VALUE = 8
_NO_KEYS: frozenset[str] = frozenset()
_SET = "set-attribute"


class CompiledAction(abc.ABC):
    """One action of a rule, at ``where`` in it."""

    __slots__ = ("data_keys", "is_foreign", "most", "moves", "op", "reads_previous", "reads_sent", "touches", "waits",
                 "where", "written")

    def __init__(self, where: str, operation: Operation, most: int) -> None:
        self.where = where
        self.op = operation.name
        #: whether it is of another package
        self.is_foreign = not operation.call.is_trusted
        #: whether it may never end
        self.waits = self.is_foreign or operation.call.waits
        self.touches: frozenset[str] = operation.call.touches
        #: the first keys of the plugin data that it changes; None if these are only known when it runs
        self.data_keys: frozenset[str] | None = _NO_KEYS if "plugin_data" not in self.touches else None
        #: whether it may change the node's scope
        self.moves = "node" in self.touches
        #: maximum size of what all actions together may write for a node
        self.most = most
        #: the action as JSON, for explained runs; empty if it cannot be written so
        self.written = b""
        #: whether it reads the inventory of the inspection before
        self.reads_previous = False
        #: whether it reads nothing but inventories and plugin data
        self.reads_sent = False

    @property
    def key_set(self) -> tuple[FieldPath, Getter] | None:
        """The path of a key of an object of the node, and the getter of its value, if to set that is all it does."""
        return None

    @abc.abstractmethod
    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        """Run the action and return how often it ran; raises what the plug-in raises."""

    def run_noted(self, task: Task | None, rule: ActiveRule, view: View, views: Views,
                  note: Callable[[View], None]) -> int:
        """Run the action as :meth:`run` does, and call ``note`` immediately before each of its runs."""
        note(view)
        return self.run(task, rule, view, views)


def compile_action(where: str, operation: Operation, bound: arguments.Bound, items: Items | None, early: bool,
                   most: int) -> CompiledAction:
    """Return an action with its arguments.

    :param items: the items of its loop, for each of which it is called
    :param early: whether there is no node
    :param most: maximum size of what all actions together may write for a node, as ``Limits.written``
    """
    if early or bound.named or bound.rest is not None or len(bound.positional) != 2:
        once: CompiledAction = _Any(where, operation, bound, early, most)
    elif isinstance(bound.positional[0], Const) and not _is_mutable(bound.positional[0].value):
        once = _PathAndValue(where, operation, bound.positional[0].value, bound.positional[1], most)
    else:
        once = _Any(where, operation, bound, early, most)
    made = once if items is None else _Loop(where, operation, once, items, most)
    path = bound.literals.get(operation.call.data_path)
    if path is not None:
        made.data_keys = frozenset(paths.parse(path)[:1])
    path = bound.literals.get(operation.call.node_path)
    if path is not None:
        made.moves = pointer.parse(path, relative=True)[:1] == ("inspection_scope",)
    return made


class _Any(CompiledAction):
    """An action with any arguments."""

    __slots__ = ("_call", "_early", "_fill")

    def __init__(self, where: str, operation: Operation, bound: arguments.Bound, early: bool, most: int) -> None:
        super().__init__(where, operation, most)
        self._call = operation.call.call_early if early else operation.call.__call__
        self._early = early
        self._fill = arguments.values_of(bound)

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        given = self._fill(view)
        for argument in (*given[0], *given[1].values()):
            count_written(views, argument, self.most)
        positional, named = arguments.private(given)
        if self._early:
            self._call(rule, *positional, **named)
        else:
            self._call(task, rule, *positional, **named)
        views.forget(self.touches)
        return 1


class _PathAndValue(CompiledAction):
    """The most frequent form of an action: a constant, which is a path or a name, and a value."""

    __slots__ = ("_call", "_constant", "_get")

    def __init__(self, where: str, operation: Operation, constant: Any, value: Compiled, most: int) -> None:
        super().__init__(where, operation, most)
        self._call = operation.call.__call__
        self._constant = constant
        self._get = as_getter(value)

    @property
    def key_set(self) -> tuple[FieldPath, Getter] | None:
        path = self._constant
        is_key = (self.op == _SET and not self.is_foreign and type(path) is FieldPath and path.of is NodeDraft
                  and len(path.tokens) == 2 and path.tokens[0] in NODE.json)
        return (path, self._get) if is_key and self.reads_sent else None

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        value = self._get(view)
        if value.__class__ is str and views.written < self.most - len(value):
            # The most frequent type of value, without a function call.
            views.written += len(value) + PER_VALUE
        elif value.__class__ not in _SCALARS:
            count_written(views, value, self.most)
            value = json_values.clone(value)
        self._call(task, rule, self._constant, value)
        if not views.made.isdisjoint(self.touches):
            views.forget(self.touches)
        return 1


class _Loop(CompiledAction):
    """Another action, run for each item of a loop."""

    __slots__ = ("_items", "_once")

    def __init__(self, where: str, operation: Operation, once: CompiledAction, items: Items, most: int) -> None:
        super().__init__(where, operation, most)
        self._items = items
        self._once = once

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        found = list(self._items(view))
        for item in found:
            view["item"] = item
            rule.next_item()
            self._once.run(task, rule, view, views)
        return len(found)

    def run_noted(self, task: Task | None, rule: ActiveRule, view: View, views: Views,
                  note: Callable[[View], None]) -> int:
        found = list(self._items(view))
        for item in found:
            view["item"] = item
            rule.next_item()
            self._once.run_noted(task, rule, view, views, note)
        return len(found)


def count_written(views: Views, value: Any, most: int) -> None:
    """Count the size of an action's argument before it is copied: few characters of a rule can expand to much data.

    :raises ActionError: it is too large, or nested too deep
    """
    views.written = _counted(value, views.written, most, MAX_LEVELS)


def _counted(value: Any, written: int, most: int, levels: int) -> int:
    if isinstance(value, str):
        written += len(value)
    elif isinstance(value, (dict, list)):
        if not levels:
            raise ActionError(f"the value is nested deeper than {MAX_LEVELS} levels")
        for item in value:
            written = _counted(item, written, most, levels - 1)
            if isinstance(value, dict):
                written = _counted(value[item], written, most, levels - 1)
    written += PER_VALUE
    if written > most:
        raise ActionError(f"the rules write more than {most} characters for this node")
    return written


def _is_mutable(value: Any) -> bool:
    return isinstance(value, (dict, list, set))
