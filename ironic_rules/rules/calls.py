"""Actions of compiled rules: plug-ins with their arguments, ready to be called for a node.

There may be thousands, each used once per inspection: to be fast they share what they can and are few objects each.
"""

from __future__ import annotations

import abc
from typing import Any

from ironic_rules.models import plain
from ironic_rules.models.task import Task
from ironic_rules.rules import arguments
from ironic_rules.rules.base import ActiveRule
from ironic_rules.rules.loop import Items
from ironic_rules.rules.mask import View, Views
from ironic_rules.rules.registry import Plugin
from ironic_rules.rules.values import Compiled, Const, Getter, Path, as_getter


class Action(abc.ABC):
    """One action of a rule, at ``where`` in it."""

    __slots__ = ("op", "touches", "where")

    def __init__(self, where: str, plugin: Plugin) -> None:
        self.where = where
        self.op = plugin.name
        self.touches: frozenset[str] = plugin.call.touches

    @abc.abstractmethod
    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        """Do the work and return how many times it was done; raises what the plug-in raises."""


def action(where: str, plugin: Plugin, bound: arguments.Bound, items: Items | None, early: bool) -> Action:
    """Return a plug-in with its arguments.

    :param items: what it is to be called for one after the other
    :param early: whether there is no node
    """
    if early or bound.named or bound.rest is not None or len(bound.positional) != 2:
        once: Action = _Any(where, plugin, bound, early)
    elif isinstance(bound.positional[0], Const) and not _is_mutable(bound.positional[0].value):
        once = _PathAndValue(where, plugin, bound.positional[0].value, bound.positional[1])
    else:
        once = _Any(where, plugin, bound, early)
    return once if items is None else _Loop(where, plugin, once, items)


class _Any(Action):
    """Whatever the arguments are."""

    __slots__ = ("_call", "_early", "_fill")

    def __init__(self, where: str, plugin: Plugin, bound: arguments.Bound, early: bool) -> None:
        super().__init__(where, plugin)
        self._call = plugin.call.call_early if early else plugin.call.__call__
        self._early = early
        self._fill = arguments.values_of(bound)

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        positional, named = arguments.private(self._fill(view))
        if self._early:
            self._call(rule, *positional, **named)
        else:
            self._call(task, rule, *positional, **named)
        views.forget(self.touches)
        return 1


class _PathAndValue(Action):
    """What most actions have: a constant, which is a path or a name, and a value."""

    __slots__ = ("_call", "_constant", "_get")

    def __init__(self, where: str, plugin: Plugin, constant: Any, value: Compiled) -> None:
        super().__init__(where, plugin)
        self._call = plugin.call.__call__
        self._constant = constant
        self._get = _private_getter(value)

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        self._call(task, rule, self._constant, self._get(view))
        if not views.made.isdisjoint(self.touches):
            views.forget(self.touches)
        return 1


class _Loop(Action):
    """Another action for each of some items."""

    __slots__ = ("_items", "_once")

    def __init__(self, where: str, plugin: Plugin, once: Action, items: Items) -> None:
        super().__init__(where, plugin)
        self._items = items
        self._once = once

    def run(self, task: Task | None, rule: ActiveRule, view: View, views: Views) -> int:
        found = list(self._items(view))
        for item in found:
            view["item"] = item
            self._once.run(task, rule, view, views)
        return len(found)


def _private_getter(compiled: Compiled) -> Getter:
    """Return a getter whose result an action can keep without sharing it with the data or the rule."""
    get = as_getter(compiled)
    if isinstance(compiled, Path):
        return compiled.private
    if isinstance(compiled, Const) and not _is_mutable(compiled.value):
        return get

    def get_copy(view: View) -> Any:
        return plain.clone(get(view))

    return get_copy


def _is_mutable(value: Any) -> bool:
    return isinstance(value, (dict, list, set))
