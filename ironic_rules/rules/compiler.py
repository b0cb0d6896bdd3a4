"""Compile a rule to closures. One pass finds every problem and compiles, so that every valid rule compiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.exceptions import InvalidRule, Problem
from ironic_rules.models import pointer
from ironic_rules.models.inspection_rules import Rule
from ironic_rules.rules import arguments, compiled_actions, fields, index, loop
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.compiled_actions import CompiledAction
from ironic_rules.rules.index import Lookup
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.mask import View
from ironic_rules.rules.operators import INVERSES, OPERATORS, PAIRS
from ironic_rules.rules.registry import Operation, UnknownName
from ironic_rules.rules.values import EARLY_ROOTS, ROOTS, Scope
from ironic_rules.text import is_storable, nearest

_CONDITION_KEYS = ("op", "args", "loop", "multiple")
_ACTION_KEYS = ("op", "args", "loop")

@dataclass(frozen=True, slots=True)
class CompiledCondition:
    """``check`` returns whether it holds; it raises CannotEvaluate if it cannot be evaluated for the data.

    :ivar lookup: the lookup that is equivalent to ``check``, if there is one
    """

    where: str
    op: str
    check: Callable[[View], bool]
    lookup: Lookup | None = None


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule ready to be evaluated; immutable, shared by threads."""

    uuid: str
    description: str | None
    priority: int
    phase: str
    scope: str | None
    sensitive: bool
    position: int
    conditions: tuple[CompiledCondition, ...]
    actions: tuple[CompiledAction, ...]
    touches: frozenset[str]


def compile(rule: Rule, *, limits: Limits = DEFAULT) -> CompiledRule:
    """Compile a stored or built-in rule.

    :raises InvalidRule: with every problem
    """
    problems, conditions, actions = build(rule.said(), built_in=rule.built_in, limits=limits)
    if problems:
        raise InvalidRule(problems=problems)
    return CompiledRule(
        uuid=rule.uuid, description=rule.description, priority=rule.priority, phase=rule.phase, scope=rule.scope,
        sensitive=rule.sensitive, position=rule.position, conditions=tuple(conditions), actions=tuple(actions),
        touches=frozenset().union(*(action.touches for action in actions)))


def validate(rule: Any, *, built_in: bool = False, limits: Limits = DEFAULT) -> list[Problem]:
    """Return every problem of a rule as a user writes it; an empty list means that it compiles.

    :param rule: any value; see ``wire.from_wire`` for the notations that clients use
    :param built_in: whether the rule comes from the operator's file: then any integer is a valid priority
    :returns: problems in the order of the rule, each with a JSON pointer; no text quotes a value
    """
    return build(rule, built_in=built_in, limits=limits)[0]


def build(rule: Any, *, built_in: bool,
          limits: Limits) -> tuple[list[Problem], list[CompiledCondition], list[CompiledAction]]:
    """Find every problem of a rule as a user writes it; conditions and actions are only usable if there is none.

    :param built_in: whether any integer is a valid priority
    """
    problems = fields.problems(rule, built_in=built_in)
    if not isinstance(rule, Mapping):
        return problems, [], []
    early = rule.get("phase") == "early"
    names = EARLY_ROOTS if early else ROOTS
    conditions = _each(rule.get("conditions", []), "/conditions", limits.conditions, problems,
                       lambda item, where: _condition(Scope(names, early, False, problems, limits), item, where))
    actions = _each(rule.get("actions"), "/actions", limits.actions, problems,
                    lambda item, where: _action(Scope(names, early, True, problems, limits), item, where))
    return problems, conditions, actions


def _each(items: Any, where: str, limit: int, problems: list[Problem],
          compile_one: Callable[[Any, str], Any]) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        return []
    if len(items) > limit:
        problems.append(Problem(where, f"more than {limit} items"))
        return []
    return [compile_one(item, f"{where}/{index}") for index, item in enumerate(items)]


def _condition(scope: Scope, item: Any, where: str) -> CompiledCondition | None:
    if not _is_operation(scope, item, _CONDITION_KEYS, where):
        return None
    op = item["op"]
    inverted = op.startswith("!")
    name = op.removeprefix("!").removeprefix(" ") if inverted else op
    operation = _find(scope, OPERATORS.get, name, where, inverted)
    items = _loop(scope, item, where)
    multiple = "any" if item.get("multiple") is None else item["multiple"]
    if multiple not in loop.MULTIPLE:
        scope.complain(f"{where}/multiple", f"must be one of {', '.join(loop.MULTIPLE)}")
        return None
    bound = arguments.bind(scope, operation, item.get("args", {}), f"{where}/args") if operation else None
    if operation is None or bound is None:
        return None
    check = arguments.condition_call(operation.call, bound, PAIRS.get(operation.call))
    if inverted:
        check = _inverse(check)
    if items is not None:
        check = loop.join(multiple, items, check)
    bare = not inverted and items is None
    return CompiledCondition(where, op, check, index.lookup(operation.call, bound) if bare else None)


def _inverse(check: Callable[[View], bool]) -> Callable[[View], bool]:
    return lambda view: not check(view)


def _action(scope: Scope, item: Any, where: str) -> CompiledAction | None:
    if not _is_operation(scope, item, _ACTION_KEYS, where):
        return None
    op = item["op"]
    operation = _find(scope, ACTIONS.get, op, where)
    items = _loop(scope, item, where)
    if operation is None:
        return None
    if scope.early and not operation.early:
        early = ", ".join(action.name for action in ACTIONS if action.early)
        scope.complain(f"{where}/op", f"not available in the early phase; these are: {early}")
        return None
    bound = arguments.bind(scope, operation, item.get("args", {}), f"{where}/args")
    if bound is None:
        return None
    for name, reason in operation.call.problems(bound.literals):
        place = f"/{list(operation.argument_names()).index(name)}" if isinstance(item.get("args"), list) else f"/{name}"
        scope.complain(f"{where}/args{place}", reason)
    return compiled_actions.compile_action(where, operation, bound, items, scope.early, scope.limits.written)


def _is_operation(scope: Scope, item: Any, keys: tuple[str, ...], where: str) -> bool:
    if not isinstance(item, dict):
        scope.complain(where, "must be an object with 'op' and 'args'")
        return False
    for key in item:
        if key not in keys:
            near = nearest(str(key), keys)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(keys)}"
            place = where + pointer.format((str(key),)) if is_storable(str(key)) else where
            scope.complain(place, f"unknown field; {hint}")
    if not isinstance(item.get("op"), str):
        scope.complain(f"{where}/op", "must be a string" if "op" in item else "is required")
        return False
    return True


def _find(scope: Scope, get: Callable[[str], Operation], name: str, where: str,
          inverted: bool = False) -> Operation | None:
    try:
        return get(name)
    except UnknownName as exc:
        inverse = INVERSES.get(name) if get == OPERATORS.get else None
        use = inverse.removeprefix("!") if inverse and inverted else inverse
        scope.complain(f"{where}/op", f"there is no such operator; use {use!r}" if use else str(exc))
        return None


def _loop(scope: Scope, item: dict[str, Any], where: str) -> loop.Items | None:
    """Compile the operation's loop, and allow ``{item}`` from here on."""
    if item.get("loop") is None:
        return None
    items = loop.compile_items(scope, item["loop"], f"{where}/loop")
    scope.names = (*scope.names, "item")
    return items
