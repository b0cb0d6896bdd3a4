"""Questions to the database, made of conditions of rules.

A condition is compiled by the rule engine. A condition that databases evaluate as the engine does becomes a comparison.
Any other becomes a function that the engine evaluates for each different value. So a question means what the rule with
its conditions means. Only what no index has is refused: the inventory, and conditions with two values of a node.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from ironic_rules.exceptions import InvalidRule, Problem
from ironic_rules.facts import where
from ironic_rules.facts.where import NODE_FIELDS, And, Condition, Tree, WhereError
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.facts import Scalar
from ironic_rules.models.questions import All, AnyOf, Op, Place, Question, StoredFact, Test
from ironic_rules.rules import compiled, compiler, template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import View
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.template import Field
from ironic_rules.rules.values import Scope
from ironic_rules.text import enumeration, nearest

#: The names of templates in questions.
_ROOTS = ("fact", "node", "ports")
_ELSEWHERE = "questions have facts and fields of nodes, but not {text}: create a fact with this value"
_LOOPS = "in questions there are only loops over {ports}, {node[traits]} and facts, with 'multiple' any or all"
#: Data of a node without any value.
_NOTHING: JSONObject = {"fact": {}, "node": {"traits": []}, "ports": []}


def names(facts: Mapping[str, StoredFact]) -> dict[str, where.Name]:
    """Return the names of facts in clauses. A fact without values is a text."""
    return {name: where.Name(f"{{fact[{name}]}}", fact.type or "text", fact.is_list, fact.unit)
            for name, fact in facts.items()}


def of_clause(text: str, facts: Mapping[str, StoredFact], *, limits: Limits = DEFAULT) -> Question:
    """Return the question of a clause.

    :raises WhereError: with the column of each problem
    """
    return of_tree(where.parse(text, names(facts)), facts, limits=limits)


def of_tree(tree: Tree, facts: Mapping[str, StoredFact], *, limits: Limits = DEFAULT) -> Question:
    """Return the question of a tree.

    :raises WhereError: a condition cannot be asked, with its column
    """
    if isinstance(tree, Condition):
        try:
            return _Reading(tree.written, "", facts, limits).question()
        except InvalidRule as error:
            raise WhereError(problems=[Problem("", f"column {tree.column}: {problem.text}")
                                       for problem in error.problems]) from None
    parts = tuple(of_tree(part, facts, limits=limits) for part in tree.parts)
    return All(parts) if isinstance(tree, And) else AnyOf(parts)


def of_conditions(conditions: Sequence[object], facts: Mapping[str, StoredFact], *, limits: Limits = DEFAULT,
                  where: str = "/conditions") -> Question:
    """Return the question which nodes fulfil all conditions of a rule.

    :param where: the JSON pointer of the conditions
    :raises InvalidRule: with every problem
    """
    if len(conditions) > limits.conditions:
        raise InvalidRule(problems=[Problem(where, f"more than {limits.conditions} items")])
    parts: list[Question] = []
    problems: list[Problem] = []
    for number, item in enumerate(conditions):
        try:
            parts.append(_Reading(item, f"{where}/{number}", facts, limits).question())
        except InvalidRule as error:
            problems += error.problems
    if problems:
        raise InvalidRule(problems=problems)
    return All(tuple(parts))


class _Reading:
    """One condition: what it reads, and what the engine makes of values."""

    def __init__(self, written: Any, pointer: str, facts: Mapping[str, StoredFact], limits: Limits) -> None:
        self._pointer = pointer
        self._facts = facts
        problems: list[Problem] = []
        scope = Scope(_ROOTS, False, False, problems, limits)
        condition = compiler.compile_condition(scope, written, pointer)
        if condition is None or problems:
            raise InvalidRule(problems=problems)
        self._compiled, fields = condition, scope.fields
        op: str = written["op"]
        self._inverted = op.startswith("!")
        self._name = op.removeprefix("!").strip()
        self._args = _by_name(self._name, written.get("args", {}))
        self._loop = self._compiled.loop
        loops = _field(written.get("loop"))
        if loops is not None:
            fields = fields[1:]
        if self._loop is not None and (loops is None or not loops.is_plain or self._loop.multiple not in _MULTIPLE):
            self._refuse("/loop", _LOOPS)
        self._is_plain = all(field.is_plain for field in fields)
        self._place = self._place_of(fields) if loops is None else self._looped(loops, fields)

    def question(self) -> Question:
        """Return the question. Without a place, the outcome is the same for each node."""
        place = self._place
        missing = self._outcome(_NOTHING)
        if place is None:
            return All(()) if missing else AnyOf(())
        if self._type(place) is None:
            # No node has a value.
            return Test(place, "none", missing=missing)
        if self._loop is not None:
            return self._of_items(self._loop, place, missing)
        if self._is_list(place):
            return self._of_list(place, missing)
        if self._name == "one-of" and _field(self._args.get("values")):
            # The list in which a value is looked for is none.
            return AnyOf(())
        comparison = self._comparison(place) if self._is_plain else None
        if comparison is None:
            return Test(place, "fulfils", missing=missing, function=lambda value: self._outcome(_data(place, value)))
        op, values, inverted = comparison
        return Test(place, op, values, inverted != self._inverted, missing)

    def _of_items(self, loop: compiled.Loop, place: Place, missing: bool) -> Question:
        comparison = self._comparison(place) if self._is_plain else None
        is_all = loop.multiple == "all"
        if comparison is not None and (comparison[2] != self._inverted) == is_all:
            # All differ from it: none equals it.
            return Test(place, comparison[0], comparison[1], is_all, missing)

        def passes(value: Scalar) -> bool:
            item = {"address": value} if place.kind == "ports" else value
            return self._outcome({**_NOTHING, "item": item}, loop.call) != is_all

        return Test(place, "fulfils", inverted=is_all, missing=missing, function=passes)

    def _of_list(self, place: Place, missing: bool) -> Question:
        if not self._is_plain:
            self._refuse("/args", "questions have no conversions of lists: create a fact with this value")
        if self._name == "contains":
            op, values, _ = self._comparison(place) or ("fulfils", (), False)
            # A list matches if one of its items does, so that a list of one item shows whether that does.
            function = None if op != "fulfils" else lambda value: self._outcome(_data(place, [value])) != self._inverted
            return Test(place, op, values, self._inverted, missing, function)
        if self._name == "one-of" and _field(self._args.get("values")) and _is_scalar(self._args.get("value")):
            return Test(place, "one of", _constants([self._args["value"]]), self._inverted, missing)
        if any(isinstance(value, (list, dict)) for value in _given(self._args)) or "force_strings" in self._args:
            self._refuse("/args", "questions do not compare lists")
        # No list passes, and with an inverted operator each.
        return Test(place, "none", (), self._inverted != (self._name == "ne"), missing)

    def _comparison(self, place: Place) -> tuple[Op, tuple[Scalar, ...], bool] | None:
        """Return operation, constants, and whether it is inverted, of a condition that a database can compare."""
        name, args = self._name, self._args
        is_text = self._type(place) not in ("integer", "number", "boolean")
        if name in ("is-none", "is-empty"):
            return ("one of", ("",), False) if name == "is-empty" and is_text else ("none", (), False)
        if name in ("contains", "matches"):
            literal = _literal(args["regex"], is_whole=name == "matches") if _field(args["value"]) and is_text else None
            return None if literal is None else (literal[0], (literal[1],), False)
        if name == "one-of":
            return ("one of", _constants(args["values"]), False) if _field(args["value"]) and _are_constants(
                args["values"]) else None
        values = args.get("values")
        if name not in _ORDER or "force_strings" in args or not isinstance(values, list) or len(values) != 2:
            return None
        constant = values[1] if _field(values[0]) else values[0]
        if not _is_scalar(constant):
            return None
        if name in ("eq", "ne"):
            return "one of", _constants([constant]), name == "ne"
        if constant is None or isinstance(constant, bool):
            return "none", (), False
        if place.kind == "node" and self._type(place) == "time" and not _is_moment(constant):
            self._refuse("/args", "is compared with a time like 2026-03-01T12:00:00+00:00")
        return _ORDER[name][_field(values[0]) is None], _constants([constant]), False

    def _looped(self, loops: Field, fields: Sequence[Field]) -> Place:
        place = self._place_of([loops], "/loop")
        steps = ("address",) if place is not None and place.kind == "ports" else ()
        if place is None or place.kind == "node":
            self._refuse("/loop", _LOOPS)
        if not fields or any(field.root != "item" or field.steps != steps for field in fields):
            item = "{item[address]}" if steps else "{item}"
            self._refuse("/args", f"a question compares {item} with constants in this loop")
        return place

    def _place_of(self, fields: Iterable[Field], part: str = "/args") -> Place | None:
        """Return the only place that fields have; None if there is no field."""
        places = {self._known(field, part) for field in fields}
        if len(places) > 1:
            self._refuse(part, "a question compares one value of a node with constants in each condition")
        return next(iter(places), None)

    def _known(self, field: Field, part: str) -> Place:
        root, steps = field.root, field.steps
        if root == "fact" and len(steps) == 1:
            if steps[0] not in self._facts:
                near = nearest(steps[0], self._facts)
                hint = f"did you mean {near!r}?" if near else f"known: {enumeration(sorted(self._facts), 12)}"
                self._refuse(part, f"column {field.column_of(0)}: there is no such fact; {hint}")
            return Place("fact", steps[0])
        if root == "node" and steps == ("traits",):
            return Place("traits")
        if root == "node" and len(steps) == 1 and steps[0] in NODE_FIELDS:
            return Place("node", steps[0])
        if root == "ports" and not steps:
            return Place("ports")
        self._refuse(part, _ELSEWHERE.format(text=field.text))

    def _type(self, place: Place) -> str | None:
        if place.kind == "fact":
            return self._facts[place.name].type
        return NODE_FIELDS[place.name].type if place.kind == "node" else "text"

    def _is_list(self, place: Place) -> bool:
        return self._facts[place.name].is_list if place.kind == "fact" else place.kind != "node"

    def _outcome(self, data: Mapping[str, Any], call: Callable[[View], bool] | None = None) -> bool:
        """Return whether the condition holds for a node with these data, as in a rule."""
        view = View({}, False, set())
        view.update(data)
        try:
            return (call or self._compiled.call)(view)
        except CannotEvaluate:
            return False

    def _refuse(self, part: str, text: str) -> NoReturn:
        raise InvalidRule(problems=[Problem(f"{self._pointer}{part}" if self._pointer else "", text)])


_MULTIPLE = ("any", "all")
#: Comparisons with a constant: as it is written, and with the constant first.
_ORDER: dict[str, tuple[Op, Op]] = {
    "eq": ("one of", "one of"), "ne": ("one of", "one of"), "lt": ("lt", "gt"), "gt": ("gt", "lt"), "le": ("le", "ge"),
    "ge": ("ge", "le")}


def _data(place: Place, value: Any) -> JSONObject:
    """Return the data of a node that has this value, and nothing else."""
    if place.kind == "node":
        return {**_NOTHING, "node": {**_NOTHING["node"], place.name: value}}
    if place.kind == "traits":
        return {**_NOTHING, "node": {"traits": value}}
    if place.kind == "ports":
        return {**_NOTHING, "ports": value}
    return {**_NOTHING, "fact": {place.name: value}}


def _by_name(op: str, args: Any) -> JSONObject:
    """Return the arguments of a valid condition by their names."""
    if not isinstance(args, dict):
        names = OPERATORS.get(op).argument_names()
        if names[:1] == ["values"]:
            args = {"values": args[0] if len(args) == 1 and isinstance(args[0], list) else list(args)}
        else:
            args = dict(zip(names, args, strict=False))
    return {name: value for name, value in args.items() if name != "force_strings" or value is not False}


def _field(value: object) -> Field | None:
    """Return the template that a value consists of; None if it is another value."""
    if not isinstance(value, str) or "{" not in value:
        return None
    parts = template.parse(value)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Field) else None


def _given(args: JSONObject) -> Iterable[Any]:
    for value in args.values():
        yield from value if isinstance(value, list) else [value]


def _is_scalar(value: object) -> bool:
    if isinstance(value, str):
        return all(isinstance(part, str) for part in template.parse(value))
    return value is None or isinstance(value, (bool, int, float))


def _are_constants(values: object) -> bool:
    return isinstance(values, list) and all(map(_is_scalar, values))


def _constants(values: Iterable[Any]) -> tuple[Scalar, ...]:
    """Return constants of a rule as the engine compares them. Null equals nothing."""
    return tuple("".join(map(str, template.parse(value))) if isinstance(value, str) else value
                 for value in values if value is not None)


def _is_moment(value: object) -> bool:
    try:
        moment = datetime.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return False
    return moment is not None and moment.tzinfo is not None and moment.isoformat() == value


#: A regular expression without any operator inside.
_PLAIN = re.compile(r"(\^?)((?:[^\\.+*?()|\[\]{}^$]|\\[\\.+*?()|\[\]{}^$/:-])+)(\$?)", re.DOTALL)


def _literal(regex: object, *, is_whole: bool) -> tuple[Op, str] | None:
    """Return the comparison that a regular expression is, and its text; None if it is another one."""
    match = _PLAIN.fullmatch(regex) if isinstance(regex, str) else None
    if match is None:
        return None
    begin, text, end = match.groups()
    if end and not (is_whole or begin):
        return None
    op: Op = "one of" if is_whole or end else "begins" if begin else "has"
    return op, re.sub(r"\\(.)", r"\1", text)
