"""Compile a rule to closures. One pass finds every problem and compiles, so that every valid rule compiles."""

from __future__ import annotations

import functools
import hashlib
import re
import weakref
from collections.abc import Callable, Collection, Hashable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ironic_rules.exceptions import InvalidRule, Problem, RuleFailed
from ironic_rules.models import pointer
from ironic_rules.models.inspection_rules import SEALED, Rule
from ironic_rules.models.watch import is_signal
from ironic_rules.rules import arguments, compiled_actions, fields, groups, lookups, loop
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.compiled_actions import CompiledAction
from ironic_rules.rules.groups import Groups
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.lookups import Lookup
from ironic_rules.rules.mask import View
from ironic_rules.rules.operators import INVERSES, OPERATORS, PAIRS
from ironic_rules.rules.registry import Operation, UnknownName
from ironic_rules.rules.rule_warnings import KnownPaths, RuleWarning, Warnings
from ironic_rules.rules.values import EARLY_ROOTS, PREVIOUS, ROOTS, Scope
from ironic_rules.text import is_storable, nearest

INVALID = "it is no longer valid"
ELSEWHERE = "it was valid on the host that stored the rule, so a plug-in is missing on this host"
_OP = re.compile(r"/(?:conditions|actions)/[0-9]+/op")

#: The names of what no rule can change.
_STABLE = frozenset({"inventory", PREVIOUS, "item"})
_SENT = frozenset({"inventory", PREVIOUS, "plugin_data"})
_CONDITION_KEYS = ("op", "args", "loop", "multiple")
_ACTION_KEYS = ("op", "args", "loop")

#: The checks in use by a digest of their conditions, and what else they depend on.
_checks: weakref.WeakValueDictionary[Hashable, Check] = weakref.WeakValueDictionary()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Check:
    """What a condition tests; conditions of different rules that are written alike share it.

    :ivar call: returns whether it holds; raises CannotEvaluate if it cannot be evaluated for the data
    :ivar stable: whether it depends on nothing that rules can change
    :ivar lookup: the lookup that is equivalent to ``call``, if there is one
    :ivar captures: ``call`` also stores groups in the view that it gets. It must be called for its rule, with the view
        of the actions and before them: neither an index nor the outcome for another rule can replace it
    :ivar written: the condition as JSON, for explained runs; empty if it cannot be written so
    """

    call: Callable[[View], bool]
    stable: bool
    lookup: Lookup | None
    captures: bool
    written: bytes = b""


@dataclass(frozen=True, slots=True)
class CompiledCondition:
    """A condition at ``where`` in its rule.

    :ivar groups: names of the groups that its regular expression can provide to the rule's actions
    :ivar reads_previous: whether it reads the inventory of the inspection before
    """

    where: str
    op: str
    check: Check
    groups: tuple[str, ...]
    reads_previous: bool = False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class CompiledRule:
    """A rule ready to be evaluated; immutable, shared by threads and rule sets.

    :ivar max_nodes: on how many nodes it runs; None: no limit
    :ivar touches: which of node, ports, port_groups and plugin_data its actions change
    :ivar writes: the first keys of the plugin data that they change; None if these are only known when they run
    :ivar reads_previous: whether its conditions or actions read the inventory of the inspection before
    :ivar problems: why a stored rule could not be stored now, although it runs
    """

    uuid: str
    description: str | None
    priority: int
    phase: str
    scope: str | None
    max_nodes: int | None
    sensitive: bool
    position: int
    conditions: tuple[CompiledCondition, ...]
    actions: tuple[CompiledAction, ...]
    touches: frozenset[str]
    writes: frozenset[str] | None
    reads_previous: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class BrokenRule:
    """A rule that cannot be compiled: it would be wrong to inspect a node to which it applies without it.

    :ivar problems: all of them; those of a sensitive rule are not shown
    """

    uuid: str
    phase: str
    scope: str | None
    sensitive: bool
    problems: tuple[Problem, ...]

    def failure(self) -> RuleFailed:
        """Return the error that an inspection ends with."""
        first = self.problems[0]
        if self.sensitive:
            return RuleFailed(rule=self.uuid, where="/", reason=INVALID)
        return RuleFailed(rule=self.uuid, where=first.where or "/", reason=f"{INVALID}: {first.text}")


def compile(rule: Rule, *, limits: Limits = DEFAULT) -> CompiledRule:
    """Compile a stored or built-in rule.

    :raises InvalidRule: with every problem
    """
    problems, conditions, actions = build(rule.said(), built_in=rule.built_in, limits=limits)
    if problems:
        raise InvalidRule(problems=problems)
    keys = [action.data_keys for action in actions]
    return CompiledRule(
        uuid=rule.uuid, description=rule.description, priority=rule.priority, phase=rule.phase, scope=rule.scope,
        max_nodes=rule.max_nodes, sensitive=rule.sensitive, position=rule.position, conditions=tuple(conditions),
        actions=tuple(actions),
        touches=_one(frozenset().union(*(action.touches for action in actions))),
        writes=None if None in keys else _one(frozenset().union(*filter(None, keys))),
        reads_previous=any(condition.reads_previous for condition in conditions)
        or any(action.reads_previous for action in actions))


@functools.lru_cache(maxsize=1024)
def _one(names: frozenset[str]) -> frozenset[str]:
    """Return one set for all that are equal: there are thousands of rules, and few different sets."""
    return names


def compile_stored(rule: Rule, *, limits: Limits = DEFAULT) -> CompiledRule | BrokenRule:
    """Compile a rule that was valid when it was stored.

    Earlier versions stored early rules with a scope, and never ran them. Early rules decide which machines are
    accepted, so such a rule runs for every callback.
    """
    problems: tuple[Problem, ...] = ()
    if rule.phase == "early" and rule.scope is not None:
        problems = (Problem("/scope", fields.EARLY_SCOPE),)
        rule = replace(rule, scope=None)
    try:
        compiled = compile(rule, limits=limits)
        return replace(compiled, problems=problems) if problems else compiled
    except InvalidRule as exc:
        found = (
            replace(problem, text=f"{problem.text}; {ELSEWHERE}") if _OP.fullmatch(problem.where) else problem
            for problem in exc.problems)
        return BrokenRule(rule.uuid, rule.phase, rule.scope, rule.sensitive, (*found, *problems))
    except BaseException as exc:  # whatever is wrong with one rule must not stop the others
        if is_signal(exc):
            raise
        problem = Problem("", f"it cannot be compiled: {type(exc).__name__}")
        return BrokenRule(rule.uuid, rule.phase, rule.scope, rule.sensitive, (problem,))


def validate(rule: Any, *, built_in: bool = False, limits: Limits = DEFAULT) -> list[Problem]:
    """Return every problem of a rule as a user writes it; an empty list means that it compiles.

    :param rule: any value; see ``wire.from_wire`` for the notations that clients use
    :param built_in: whether the rule comes from the operator's file: then any integer of 64 bits is a valid priority
    :returns: problems in the order of the rule, each with a JSON pointer; no text quotes a value
    """
    return build(rule, built_in=built_in, limits=limits)[0]


@dataclass(frozen=True, slots=True)
class Checked:
    """The problems of a rule, or, if it has none, the warnings about it; both in the order of the rule."""

    problems: list[Problem]
    warnings: list[RuleWarning]


def check(rule: Any, *, built_in: bool = False, limits: Limits = DEFAULT, known_paths: KnownPaths | None = None,
          warn_of: Collection[str] = SEALED) -> Checked:
    """Return the problems of a rule, as :func:`validate` does, or the warnings about a valid one.

    :param known_paths: returns the paths that inventories have; None: paths of the inventory are not checked
    :param warn_of: ``conditions``, ``actions``, both or neither. Nothing of the others shows in the warnings
    """
    warnings = Warnings(known_paths)
    problems = build(rule, built_in=built_in, limits=limits, warnings=warnings, warn_of=warn_of)[0]
    return Checked(problems, [] if problems else warnings.found)


def build(rule: Any, *, built_in: bool, limits: Limits, warnings: Warnings | None = None,
          warn_of: Collection[str] = ()) -> tuple[list[Problem], list[CompiledCondition], list[CompiledAction]]:
    """Find every problem of a rule as a user writes it; conditions and actions are only usable if there is none.

    :param built_in: whether any integer of 64 bits is a valid priority
    :param warnings: collects the warnings about the parts ``warn_of``; None: there are none, which is faster
    """
    problems = fields.problems(rule, built_in=built_in)
    if not isinstance(rule, Mapping):
        return problems, [], []
    early = rule.get("phase") == "early"
    names = EARLY_ROOTS if early else ROOTS
    of_conditions, of_actions = (warnings if name in warn_of else None for name in SEALED)

    def all_conditions(captured: Set[str], warnings: Warnings | None = None) -> list[CompiledCondition | None]:
        return _each(
            rule.get("conditions", []), "/conditions", limits.conditions, problems,
            lambda item, where: _condition(
                Scope(names, early, False, problems, limits, warnings=warnings), item, where, captured))

    conditions = all_conditions(frozenset(), of_conditions)
    is_known = not any(problem.where.startswith("/conditions") for problem in problems)
    provided = [name for condition in conditions if condition is not None for name in condition.groups]
    matched = Groups(provided if is_known else None)
    known = (*names, groups.ROOT) if matched.provided else names
    actions = _each(
        rule.get("actions"), "/actions", limits.actions, problems,
        lambda item, where: _action(
            Scope(known, early, True, problems, limits, warnings=of_actions, groups=matched), item, where))
    if matched.used and not problems:
        # Only now is it known which groups actions read. Few rules read any, and the others do not pay for it.
        conditions = all_conditions(matched.used)
    return problems, [condition for condition in conditions if condition is not None], actions


def reads_groups(actions: Any, *, limits: Limits = DEFAULT) -> bool:
    """Return whether actions, as a user writes them, read groups of their rule's conditions: ``{match[name]}``."""
    read = Groups(None)
    _each(actions, "/actions", limits.actions, [],
          lambda item, where: _action(Scope((*ROOTS, groups.ROOT), False, True, [], limits, groups=read), item, where))
    return bool(read.used)


def _each(items: Any, where: str, limit: int, problems: list[Problem],
          compile_one: Callable[[Any, str], Any]) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        return []
    if len(items) > limit:
        problems.append(Problem(where, f"more than {limit} items"))
        return []
    return [compile_one(item, f"{where}/{number}") for number, item in enumerate(items)]


def _condition(scope: Scope, item: Any, where: str, captured: Set[str]) -> CompiledCondition | None:
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
    call = arguments.condition_call(operation.call, bound, PAIRS.get(operation.call))
    # A condition that is inverted, or for all items, has no single match.
    has_match = not inverted and (items is None or multiple != "all")
    names, capturing = (arguments.capturing_call(operation.call, bound) if has_match else None) or ((), call)
    captures = not captured.isdisjoint(names)
    if captures:
        call = capturing
    if inverted:
        call = _inverse(call)
    found = None
    if items is not None:
        call = loop.join(multiple, items, call)
    else:
        found = lookups.lookup(operation.call, bound, inverted=inverted)
    check = Check(call, scope.roots <= _STABLE, found, captures, _written(item))
    return CompiledCondition(where, op, check if captures else _shared(scope, check), names,
                             PREVIOUS in scope.roots)


def _written(item: dict[str, Any]) -> bytes:
    """Return a condition or action as JSON, the same for all that are written alike; empty if JSON cannot have it."""
    try:
        text = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return b""
    # A copy: what orjson returns keeps the 4 KiB in which it was written, and there are thousands of these.
    return bytes(memoryview(text))


def _shared(scope: Scope, check: Check) -> Check:
    """Return the check of the conditions that are written alike, so that it is evaluated once for all of them."""
    if not check.written:
        return check
    limits = scope.limits
    digest = hashlib.blake2b(check.written, digest_size=16).digest()
    return _checks.setdefault((digest, limits.subject, limits.result, limits.loop_items), check)


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
    names = operation.argument_names()
    try:
        for name, reason in operation.call.problems(bound.literals):
            place = f"/{names.index(name)}" if isinstance(item.get("args"), list) else f"/{name}"
            scope.complain(f"{where}/args{place}", str(reason))
    except BaseException as exc:  # third-party code can raise anything
        if is_signal(exc):
            raise
        # Without its text, which may quote the arguments.
        scope.complain(f"{where}/args", f"the action {op} cannot check them: {type(exc).__name__}")
    compiled = compiled_actions.compile_action(where, operation, bound, items, scope.early, scope.limits.written)
    compiled.written = _written(item)
    compiled.reads_previous = PREVIOUS in scope.roots
    compiled.reads_sent = scope.roots <= _SENT
    return compiled


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
