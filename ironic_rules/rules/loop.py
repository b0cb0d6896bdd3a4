"""``loop`` and ``multiple``: the items of a loop, and how the results of a condition are combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.mask import View
from ironic_rules.rules.values import Const, Scope, Typed, as_getter, compile_value, elements_of

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
    if isinstance(compiled, Typed):
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
    """Return a condition over all items. An item for which it cannot be evaluated counts as false."""
    wanted = multiple == "any"

    def decided(view: View, found: list[Any]) -> bool:
        for item in found:
            view["item"] = item
            try:
                if check(view) is wanted:
                    return wanted
            except CannotEvaluate:
                if not wanted:
                    return False
        return not wanted

    if multiple in ("any", "all"):
        return lambda view: decided(view, items(view))
    part = slice(None, 1) if multiple == "first" else slice(-1, None)
    wanted = True
    return lambda view: decided(view, items(view)[part])
