"""Actions of compiled rules: operations with their arguments, ready to be called for a node.

There may be thousands, each used once per inspection: for speed they share objects and consist of few objects each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ironic_rules.models import documents
from ironic_rules.models.task import Task
from ironic_rules.rules import arguments, paths
from ironic_rules.rules.base import ActiveRule
from ironic_rules.rules.compiled import CompiledAction
from ironic_rules.rules.errors import ActionError, CannotEvaluate
from ironic_rules.rules.getters import View, Views
from ironic_rules.rules.limits import MAX_LEVELS
from ironic_rules.rules.signatures import Operation
from ironic_rules.rules.values import Compiled, Const, Items, as_getter

_SCALARS = frozenset({int, float, bool, type(None)})
#: The size of a value without its characters: approximately its overhead in JSON.
_PER_VALUE = 8


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
    if _is_message(operation):
        once = _Message(where, operation, bound, early, most)
        items = None if items is None else _items_or_none(items)
    action = once if items is None else _Loop(where, operation, once, items, most)
    path = bound.literals.get(operation.call.data_path)
    if path is not None:
        action.data_keys = frozenset(paths.parse(path)[:1])
    path = bound.literals.get(operation.call.node_path)
    if path is not None:
        action.moves = documents.parse_pointer(path, relative=True)[:1] == ("inspection_scope",)
    return action


def _is_message(operation: Operation) -> bool:
    """Return whether an action takes texts for people only, so that nothing in the data ends an inspection."""
    kinds = [parameter.kind for parameter in operation.parameters]
    return bool(kinds) and all(kind.for_people or kind.otherwise is not None for kind in kinds)


#: The only item of a loop that cannot be evaluated.
_NO_ITEM: object = object()


def _items_or_none(items: Items) -> Items:
    def found(view: View) -> list[object]:
        try:
            return items(view)
        except CannotEvaluate:
            return [_NO_ITEM]

    return found


class _Any(CompiledAction):
    """An action with any arguments."""

    __slots__ = ("_call", "_early", "_fill")

    def __init__(self, where: str, operation: Operation, bound: arguments.Bound, early: bool, most: int) -> None:
        super().__init__(where, operation, most)
        self._call = operation.call.call_early if early else operation.call.__call__
        self._early = early
        self._fill = arguments.values_of(bound)

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        call_args = self._fill(view)
        self._count(rule, views, (*call_args[0], *call_args[1].values()))
        positional, named = arguments.private(call_args)
        if self._early:
            self._call(rule, *positional, **named)
        else:
            self._call(task, rule, *positional, **named)
        views.forget(self.touches)
        return 1


    def _count(self, rule: ActiveRule, views: Views, values: Iterable[object]) -> None:
        for argument in values:
            count_written(views, argument, self.most)


class _Message(_Any):
    """A message. Too many of them are no reason to fail: the others are left out."""

    __slots__ = ()

    def _count(self, rule: ActiveRule, views: Views, values: Iterable[object]) -> None:
        try:
            for argument in values:
                views.told = _counted(argument, views.told, self.most, MAX_LEVELS)
        except ActionError:
            rule.mute()


class _PathAndValue(CompiledAction):
    """The most frequent form of an action: a constant, which is a path or a name, and a value."""

    __slots__ = ("_call", "_constant", "_get")

    def __init__(self, where: str, operation: Operation, constant: object, value: Compiled, most: int) -> None:
        super().__init__(where, operation, most)
        self._call = operation.call.__call__
        self._constant = constant
        self._get = as_getter(value)

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        value = self._get(view)
        if value.__class__ is str and views.written < self.most - len(value):
            # The most frequent type of value, without a function call.
            views.written += len(value) + _PER_VALUE
        elif value.__class__ not in _SCALARS:
            count_written(views, value, self.most)
            value = documents.clone(value)
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
        items = list(self._items(view))
        for item in items:
            _set_item(view, item)
            rule.next_item()
            self._once.run(task, rule, view, views)
        return len(items)

    def run_noted(self, task: Task | None, rule: ActiveRule, view: View, views: Views,
                  note: Callable[[View], None]) -> int:
        items = list(self._items(view))
        for item in items:
            _set_item(view, item)
            rule.next_item()
            self._once.run_noted(task, rule, view, views, note)
        return len(items)


def _set_item(view: View, item: object) -> None:
    if item is _NO_ITEM:
        view.pop("item", None)
    else:
        view["item"] = item


def count_written(views: Views, value: object, most: int) -> None:
    """Count the size of an action's argument before it is copied: few characters of a rule can expand to much data.

    :raises ActionError: it is too large, or nested too deep
    """
    views.written = _counted(value, views.written, most, MAX_LEVELS)


def _counted(value: object, written: int, most: int, levels: int) -> int:
    if isinstance(value, str):
        written += len(value)
    elif isinstance(value, (dict, list)):
        if not levels:
            raise ActionError(f"the value is nested deeper than {MAX_LEVELS} levels")
        for item in value:
            written = _counted(item, written, most, levels - 1)
            if isinstance(value, dict):
                written = _counted(value[item], written, most, levels - 1)
    written += _PER_VALUE
    if written > most:
        raise ActionError(f"the rules write more than {most} characters for this node")
    return written


def _is_mutable(value: object) -> bool:
    return isinstance(value, (dict, list, set))
