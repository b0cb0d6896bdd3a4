"""``loop`` and ``multiple``: the items of a loop, and how the results of a condition are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import View
from ironic_rules.rules.values import Const, Filled, Scope, as_getter, compile_value, elements_of

MULTIPLE = ("any", "all", "first", "last")

Items = Callable[[View], list[Any]]
Check = Callable[[View], bool]


def compile_items(scope: Scope, loop: Any, where: str) -> Items | None:
    """Compile a ``loop``: a list, an object (items ``{key, value}``), or one template that returns either.

    :returns: a function that returns the items; it raises CannotEvaluate if the template returns another type
    """
    before = len(scope.problems)
    if isinstance(loop, str):
        if not _is_one_field(scope, loop, where):
            return None
    elif not isinstance(loop, (list, tuple, dict)):
        scope.complain(where, "must be a list, an object, or one template that gives either")
        return None
    elif len(loop) > scope.limits.loop_items:
        scope.complain(where, f"more than {scope.limits.loop_items} items")
        return None
    compiled = compile_value(scope, loop, where)
    if isinstance(loop, str) and isinstance(compiled, Filled) and compiled.path is None:
        scope.complain(where, f"must be a list, an object, or one template that gives either; {compiled.why}")
    if len(scope.problems) > before:
        return None
    scope.items = elements_of(compiled)
    limit = scope.limits.loop_items
    if isinstance(compiled, Const):
        items = _items(compiled.value, limit)
        return lambda view: items
    get = as_getter(compiled)
    return lambda view: _items(get(view), limit)


def _is_one_field(scope: Scope, text: str, where: str) -> bool:
    try:
        parts = template.parse(text)
    except template.TemplateError as exc:
        scope.complain(where, str(exc))
        return False
    if len(parts) == 1 and isinstance(parts[0], template.Field):
        return True
    scope.complain(where, "a string must be exactly one template, such as {inventory[disks]}")
    return False


def _items(value: Any, limit: int) -> list[Any]:
    if isinstance(value, dict):
        value = [{"key": key, "value": item} for key, item in value.items()]
    if not isinstance(value, list):
        raise CannotEvaluate("the loop is neither a list nor an object")
    if len(value) > limit:
        raise CannotEvaluate(f"the loop has more than {limit} items")
    return value


def join(multiple: str, items: Items, check: Check) -> Check:
    """Return a condition over all items, which ``check`` finds in the view.

    An item for which it cannot be evaluated counts as false.
    """
    def of_item(view: View) -> Callable[[Any], bool]:
        def test(item: Any) -> bool:
            view["item"] = item
            return check(view)

        return test

    decide = _DECIDE[multiple]
    return lambda view: decide(items(view), of_item(view))


def join_values(multiple: str, items: Items, test: Callable[[Any], bool]) -> Check:
    """Return a condition over all items, which needs nothing but the item."""
    decide = _DECIDE[multiple]
    return lambda view: decide(items(view), test)


def _any(found: list[Any], test: Callable[[Any], bool]) -> bool:
    for item in found:
        try:
            if test(item):
                return True
        except CannotEvaluate:
            pass
    return False


def _all(found: list[Any], test: Callable[[Any], bool]) -> bool:
    try:
        for item in found:
            if not test(item):
                return False
    except CannotEvaluate:
        return False
    return True


_DECIDE = {"any": _any, "all": _all, "first": lambda found, test: _any(found[:1], test),
           "last": lambda found, test: _any(found[-1:], test)}
