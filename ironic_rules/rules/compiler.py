"""Compile a rule to closures. Checking is compiling: one pass finds every problem, and what it compiled is kept."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import weakref
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ironic_rules.exceptions import InvalidRule, Problem
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Type
from ironic_rules.models.rules import SEALED, Rule
from ironic_rules.models.task import is_signal
from ironic_rules.rules import arguments, compiled_actions, index, operators, rule_fields, template, values
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.compiled import BrokenRule, CompiledAction, CompiledRule, Condition, Loop
from ironic_rules.rules.getters import View, path_getter
from ironic_rules.rules.index import Lookup
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.operators import CAPTURES, OPERATORS, PAIRS
from ironic_rules.rules.signatures import Operation, UnknownName
from ironic_rules.rules.template import Groups
from ironic_rules.rules.values import (
    EARLY_ROOTS,
    PREVIOUS,
    PREVIOUS_FACT,
    ROOTS,
    Compiled,
    Const,
    KnownFacts,
    KnownNames,
    KnownPaths,
    RuleWarning,
    Scope,
    Warnings,
)
from ironic_rules.text import in_parentheses, is_storable, nearest

ELSEWHERE = "it was valid on the host that stored the rule, so a plug-in is missing on this host"
_OP = re.compile(r"/(?:conditions|actions)/[0-9]+/op")

#: The names of what no rule can change.
_STABLE = frozenset({"inventory", PREVIOUS, PREVIOUS_FACT, "item"})
_CONDITION_KEYS = ("op", "args", "loop", "multiple")
_ACTION_KEYS = ("op", "args", "loop")

#: The conditions in use by a digest of what is written, and what else they depend on.
_known: weakref.WeakValueDictionary[Hashable, Condition] = weakref.WeakValueDictionary()
_PREDICATES = frozenset({operators.is_true, operators.is_false, operators.is_none, operators.is_empty})
_PATTERNS = {operators.matches: index.FULL_MATCH, operators.contains: index.SEARCH}
_EQ, _LT, _GT = (OPERATORS.get(name).call for name in ("eq", "lt", "gt"))
#: The test of a path by its place: ``path < constant`` and ``constant < path``.
_ORDERED = {_LT: (index.BELOW, index.ABOVE), _GT: (index.ABOVE, index.BELOW)}


@dataclass(slots=True)
class Checked:
    """A rule as a user writes it, compiled, or all that is wrong with it.

    :ivar problems: in the order of the rule; without any, it is compiled
    :ivar warnings: about a valid rule, in the order of the rule
    """

    problems: list[Problem]
    warnings: list[RuleWarning] = field(default_factory=list)
    _conditions: tuple[Condition, ...] = field(default=(), repr=False)
    _actions: tuple[CompiledAction, ...] = field(default=(), repr=False)

    def of(self, rule: Rule) -> CompiledRule:
        """Return the compiled rule.

        :param rule: the same rule as it is stored, with what was assigned to it there
        :raises InvalidRule: with every problem
        """
        if self.problems:
            raise InvalidRule(problems=self.problems)
        keys = [action.data_keys for action in self._actions]
        return CompiledRule(
            uuid=rule.uuid, description=rule.description, priority=rule.priority, phase=rule.phase, scope=rule.scope,
            max_nodes=rule.max_nodes, sensitive=rule.sensitive, position=rule.position, conditions=self._conditions,
            actions=self._actions, touches=_one(frozenset().union(*(action.touches for action in self._actions))),
            writes=None if None in keys else _one(frozenset().union(*filter(None, keys))),
            reads_previous=any(condition.reads_previous for condition in self._conditions)
            or any(action.reads_previous for action in self._actions), called=called(rule))


def called(rule: Rule) -> str:
    """Return what errors call a rule: its name, else its description, in parentheses."""
    return in_parentheses(rule.name or rule.description)


@functools.lru_cache(maxsize=1024)
def _one(names: frozenset[str]) -> frozenset[str]:
    """Return one set for all that are equal: there are thousands of rules, and few different sets."""
    return names


def compile(rule: Rule, *, limits: Limits = DEFAULT) -> CompiledRule:
    """Compile a stored or built-in rule.

    :raises InvalidRule: with every problem
    """
    return check(rule.said(), built_in=rule.built_in, limits=limits, warn_of=()).of(rule)


def compile_stored(rule: Rule, *, limits: Limits = DEFAULT,
                   checked: Checked | None = None) -> CompiledRule | BrokenRule:
    """Compile a rule that was valid when it was stored.

    Earlier versions stored early rules with a scope, and never ran them. Early rules decide which machines are
    accepted, so such a rule runs for every report.

    :param checked: what :func:`check` has made of the rule before it was stored
    """
    if checked is not None and not checked.problems:
        return checked.of(rule)
    problems: tuple[Problem, ...] = ()
    if rule.phase == "early" and rule.scope is not None:
        problems = (Problem("/scope", rule_fields.EARLY_SCOPE),)
        rule = replace(rule, scope=None)
    try:
        compiled = compile(rule, limits=limits)
        return replace(compiled, problems=problems) if problems else compiled
    except InvalidRule as exc:
        load_problems = (
            replace(problem, text=f"{problem.text}; {ELSEWHERE}") if _OP.fullmatch(problem.where) else problem
            for problem in exc.problems)
        return BrokenRule(rule.uuid, rule.phase, rule.scope, rule.sensitive, (*load_problems, *problems), called(rule))
    except BaseException as exc:  # whatever is wrong with one rule must not stop the others
        if is_signal(exc):
            raise
        problem = Problem("", f"it cannot be compiled: {type(exc).__name__}")
        return BrokenRule(rule.uuid, rule.phase, rule.scope, rule.sensitive, (problem,), called(rule))


def validate(rule: object, *, built_in: bool = False, limits: Limits = DEFAULT) -> list[Problem]:
    """Return every problem of a rule, as :func:`check` does; an empty list means that it compiles."""
    return check(rule, built_in=built_in, limits=limits, warn_of=()).problems


def check(rule: object, *, built_in: bool = False, limits: Limits = DEFAULT, known_paths: KnownPaths | None = None,
          known_names: KnownNames | None = None, known_facts: KnownFacts | None = None,
          warn_of: Collection[str] = SEALED) -> Checked:
    """Compile a rule as a user writes it, or find every problem of it: no text quotes a value.

    :param rule: any value; see ``from_wire`` for the notations that clients use
    :param built_in: whether the rule comes from the operator's file: then any integer of 64 bits is a valid priority
    :param known_paths: returns the paths that inventories have; None: paths of the inventory are not checked
    :param known_names: returns the names of drivers and interfaces, by field of the node; None: they are not checked
    :param known_facts: returns the names of all facts; None: they are not checked
    :param warn_of: ``conditions``, ``actions``, both or neither, which is faster. Nothing of the others shows in the
        warnings
    """
    problems = rule_fields.problems_of_fields(rule, built_in=built_in)
    if not isinstance(rule, Mapping):
        return Checked(problems)
    early = rule.get("phase") == "early"
    names = EARLY_ROOTS if early else ROOTS
    warnings = Warnings(known_paths, known_names)
    of_conditions, of_actions = (warnings if name in warn_of else None for name in SEALED)
    pairs = [pair for pair in _each(
        rule.get("conditions", []), "/conditions", limits.conditions, problems, lambda item, where: _condition(
            Scope(names, early, False, problems, limits, warnings=of_conditions, facts=known_facts), item, where))
        if pair is not None]
    is_known = not any(problem.where.startswith("/conditions") for problem in problems)
    provided = [name for _, capturing in pairs if capturing is not None for name in capturing.groups]
    matched = Groups(provided if is_known else None)
    roots = (*names, template.ROOT_GROUPS) if matched.provided else names
    actions = _each(rule.get("actions"), "/actions", limits.actions, problems, lambda item, where: _action(
        Scope(roots, early, True, problems, limits, warnings=of_actions, groups=matched, facts=known_facts), item,
        where))
    if problems:
        return Checked(problems)
    # Only now is it known which groups actions read. Few rules read any.
    conditions = (plain if capturing is None or matched.used.isdisjoint(capturing.groups) else capturing
                  for plain, capturing in pairs)
    return Checked(problems, warnings.found, tuple(conditions), tuple(actions))


def compile_condition(scope: Scope, item: object, where: str) -> Condition | None:
    """Compile one condition, of whatever has the names of the scope; None if there is a problem, which that has."""
    compiled = _condition(scope, item, where)
    return None if compiled is None else compiled[0]


def reads_groups(actions: object, *, limits: Limits = DEFAULT) -> bool:
    """Return whether actions, as a user writes them, read groups of their rule's conditions: ``{match[name]}``."""
    read = Groups(None)
    _each(actions, "/actions", limits.actions, [],
          lambda item,
          where: _action(Scope((*ROOTS, template.ROOT_GROUPS), False, True, [], limits, groups=read), item, where))
    return bool(read.used)


def _each(items: object, where: str, limit: int, problems: list[Problem],
          compile_one: Callable[[Any, str], Any]) -> list[Any]:
    if not isinstance(items, (list, tuple)):
        return []
    if len(items) > limit:
        problems.append(Problem(where, f"more than {limit} items"))
        return []
    return [compile_one(item, f"{where}/{number}") for number, item in enumerate(items)]


#: A condition, and the same one as it stores what its groups match, if it has any.
_Found = tuple[Condition, Condition | None]


def _condition(scope: Scope, item: Any, where: str) -> _Found | None:
    if not _is_operation(scope, item, _CONDITION_KEYS, where):
        return None
    op = item["op"]
    inverted = op.startswith("!")
    name = op.removeprefix("!").removeprefix(" ") if inverted else op
    operation = _find(scope, OPERATORS.get, name, where)
    items = _loop(scope, item, where)
    multiple = "any" if item.get("multiple") is None else item["multiple"]
    if multiple not in values.MULTIPLE:
        scope.complain(f"{where}/multiple", f"must be one of {', '.join(values.MULTIPLE)}")
        return None
    if item.get("loop") is None and item.get("multiple") is not None:
        scope.warn(f"{where}/multiple", "there is no loop whose items it could combine: it has no effect")
    bound = arguments.bind(scope, operation, item.get("args", {}), f"{where}/args") if operation else None
    if operation is None or bound is None:
        return None
    if scope.warnings is not None and not bound.named and bound.rest is None:
        _warn_of_outcome(scope, operation.name, bound.positional, f"{where}/args")
    if operation.absent is not None:
        _warn_of_null(scope, bound, f"{where}/args")
    call = arguments.condition_call(operation.call, bound, PAIRS.get(operation.call))
    # A condition that is inverted, or for all items, has no single match.
    has_match = not inverted and (items is None or multiple != "all")
    capturing = arguments.capturing_call(CAPTURES.get(operation.call), bound) if has_match else None
    if inverted:
        call = _inverse(call)
    # The index does not tell null from what is missing.
    is_looked_up = items is None and bound.absent == operation.absent
    lookup = _lookup(operation.call, bound, inverted=inverted) if is_looked_up else None
    roots = scope.roots
    condition = Condition(op, call if items is None else values.join(multiple, items, call), roots <= _STABLE, lookup,
                          reads_previous=PREVIOUS in roots, written=_written(item),
                          loop=None if items is None else Loop(multiple, items, call))
    if capturing is None:
        return _shared(scope, condition), None
    names, call = capturing
    return _shared(scope, condition), replace(
        condition, call=call if items is None else values.join(multiple, items, call), groups=names, captures=True)


_ABSENCE = "a missing value equals nothing, also not null: is-none asks whether a value is missing or null"


def changed_meanings(conditions: Sequence[JSONObject], actions: Sequence[JSONObject]) -> list[str]:
    """Return the places of a valid rule, each with its meaning today, that once had another meaning.

    The places are comparisons of two templates, or of a template with null, and loops over an object of the rule.
    """
    compared = [f"/conditions/{place}: {_ABSENCE}" for place, item in enumerate(conditions) if _compares_absence(item)]
    return compared + [f"/{name}/{place}/loop: the object is one item; list its pairs to get one after the other"
                       for name, items in (("conditions", conditions), ("actions", actions))
                       for place, item in enumerate(items) if isinstance(item.get("loop"), dict)]


def _compares_absence(condition: JSONObject) -> bool:
    args = condition.get("args") or ()
    values = [item for value in (args.values() if isinstance(args, dict) else args)
              for item in (value if isinstance(value, list) else [value])]
    templates = sum(isinstance(value, str) and "{" in value for value in values)
    return condition["op"].lstrip("! ") in operators.EQUALITY and (templates > 1 or bool(templates and None in values))


def _warn_of_null(scope: Scope, bound: arguments.Bound, where: str) -> None:
    constants = [value for value in bound.positional if isinstance(value, Const)]
    listed = [item for const in constants for item in (const.value if isinstance(const.value, list) else [const.value])]
    if len(constants) < len(bound.positional) and None in listed:
        scope.warn(where, _ABSENCE)


#: Operators that are false for values without an order.
_ORDERING = frozenset({"lt", "gt", "le", "ge"})
_COMPARING = _ORDERING | {"eq", "ne"}
_UNLIKE = "a text and a number are never equal; a template gives the number that a text has with |int"
_TEXT, _NUMBER, _NO_ORDER = "text", "number", "no order"
_ORDER = {str: _TEXT, int: _NUMBER, float: _NUMBER}
#: Types of fields of the node whose values have no order.
_UNORDERED = frozenset({Type.OBJECT, Type.LIST, Type.BOOLEAN})


def _warn_of_outcome(scope: Scope, name: str, compared: Sequence[Compiled], where: str) -> None:
    """Warn of a comparison that is the same whatever a machine reports."""
    if name == "one-of" and isinstance(compared[-1], Const):
        listed = [_order_of(Const(value)) for value in compared[-1].value]
        if not listed:
            scope.warn(where, "the list is empty, so that nothing is one of it")
        elif {_order_of(compared[0]), *listed} == {_TEXT, _NUMBER} and _order_of(compared[0]) not in listed:
            scope.warn(where, _UNLIKE)
    elif name in _COMPARING and len(compared) == 1:
        scope.warn(where, "there is one value, and nothing to compare it with")
    elif name in _ORDERING:
        _warn_of_order(scope, [_order_of(compiled) for compiled in compared], where)
    elif name in _COMPARING and any({_order_of(first), _order_of(other)} == {_TEXT, _NUMBER} and not (
            isinstance(first, Const) and isinstance(other, Const)) for first, other in itertools.pairwise(compared)):
        scope.warn(where, _UNLIKE)


def _warn_of_order(scope: Scope, orders: Sequence[str | None], where: str) -> None:
    if _NO_ORDER in orders:
        scope.warn(where, "only numbers and texts have an order: for null, true, false, lists and objects, this "
                          "comparison is always false")
    elif any({first, other} == {_TEXT, _NUMBER} for first, other in itertools.pairwise(orders)):
        scope.warn(where, "a text and a number have no order, so that this comparison is always false; a template "
                          "gives the number that a text has with |int")


def _order_of(compiled: Compiled) -> str | None:
    """Return what a value is as far as its order matters; None: only the data determine that."""
    if isinstance(compiled, Const):
        return _ORDER.get(type(compiled.value), _NO_ORDER)
    if compiled.gives is not None:
        return _ORDER[compiled.gives]
    used = compiled.path
    if used is None or used.root not in ROOTS:
        return None
    if not used.steps:
        return _NO_ORDER
    is_field = used.root == "node" and len(used.steps) == 1
    return _NO_ORDER if is_field and template.RECORDS["node"].get(used.steps[0]) in _UNORDERED else None


def _written(item: JSONObject) -> bytes:
    """Return a condition or action as JSON, the same for all that are written alike; empty if JSON cannot have it."""
    try:
        text = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return b""
    # A copy: what orjson returns keeps the 4 KiB in which it was written, and there are thousands of these.
    return bytes(memoryview(text))


def _shared(scope: Scope, condition: Condition) -> Condition:
    """Return the condition of those that are written alike, so that it is evaluated once for all of them."""
    if not condition.written:
        return condition
    limits = scope.limits
    digest = hashlib.blake2b(condition.written, digest_size=16).digest()
    shared = _known.setdefault((digest, limits.subject, limits.result, limits.loop_items), condition)
    if shared is not condition:
        shared.is_shared = True
    return shared


def _inverse(check: Callable[[View], bool]) -> Callable[[View], bool]:
    return lambda view: not check(view)


def _lookup(function: Callable[..., bool], bound: arguments.Bound, *, inverted: bool) -> Lookup | None:
    """Return the lookup of a condition; None if it has no such form."""
    if bound.named or bound.rest is not None or not bound.positional:
        return None
    path, *rest = bound.positional
    if len(rest) == 1 and isinstance(path, Const) and (function is _EQ or function in _ORDERED):
        return _of_path(rest[0], _test(function, path, 1), inverted)
    return _of_path(path, _test(function, rest[0] if rest else None, 0) if len(rest) < 2 else None, inverted)


def _of_path(compiled: Compiled, test: tuple[str, Hashable] | None, inverted: bool) -> Lookup | None:
    if test is None or isinstance(compiled, Const) or compiled.path is None or compiled.path.root not in index.ROOTS:
        return None
    # For the index, what is missing is null.
    return Lookup(compiled.path.root, compiled.path.steps, path_getter(compiled.path, False), *test, inverted)


def _test(function: Callable[..., bool], operand: object, place: int) -> tuple[str, Hashable] | None:
    """Return test and operand of a function of a path at ``place`` of the arguments, and one other argument or None."""
    if operand is None:
        return (index.PREDICATE, function) if function in _PREDICATES else None
    if not isinstance(operand, Const):
        return None
    value = operand.value
    if function is _EQ:
        # The index does not tell null from what is missing, which equals nothing.
        return None if value is None else (index.EQUAL, frozenset({index.hash_key(value)}))
    if function is operators.one_of:
        return None if None in value else (index.EQUAL, frozenset(map(index.hash_key, value)))
    if function in _ORDERED:
        return _ORDERED[function][place], index.bound_of(value)
    if function is operators.in_net:
        return index.NETWORK, value
    return (_PATTERNS[function], value) if function in _PATTERNS else None


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
    if scope.warnings is not None and operation.call.node_path is not None:
        _warn_of_name(scope, operation, bound, item, where)
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
    return compiled


def _warn_of_name(scope: Scope, operation: Operation, bound: arguments.Bound, item: JSONObject, where: str) -> None:
    """Warn of a driver or an interface that no conductor offers."""
    path = bound.literals.get(operation.call.node_path)
    tokens = documents.parse_pointer(path, relative=True) if isinstance(path, str) else ()
    if scope.warnings is not None and len(tokens) == 1 and "value" in bound.literals:
        place = operation.argument_names().index("value") if isinstance(item.get("args"), list) else "value"
        scope.warnings.writes(f"{where}/args/{place}", tokens[0], bound.literals["value"])


def _is_operation(scope: Scope, item: object, keys: tuple[str, ...], where: str) -> bool:
    if not isinstance(item, dict):
        scope.complain(where, "must be an object with 'op' and 'args'")
        return False
    for key in item:
        if key not in keys:
            near = nearest(str(key), keys)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(keys)}"
            place = where + documents.format_pointer((str(key),)) if is_storable(str(key)) else where
            scope.complain(place, f"unknown field; {hint}")
    if not isinstance(item.get("op"), str):
        scope.complain(f"{where}/op", "must be a string" if "op" in item else "is required")
        return False
    return True


def _find(scope: Scope, get: Callable[[str], Operation], name: str, where: str) -> Operation | None:
    try:
        return get(name)
    except UnknownName as exc:
        scope.complain(f"{where}/op", str(exc))
        return None


def _loop(scope: Scope, item: JSONObject, where: str) -> values.Items | None:
    """Compile the operation's loop, and allow ``{item}`` from here on."""
    if item.get("loop") is None:
        return None
    items = values.compile_items(scope, item["loop"], f"{where}/loop")
    scope.names = (*scope.names, "item")
    return items
