"""Definitions of facts: the problems of one as a user writes it, and its compiled form; the built-in ones.

A definition has the parts of a rule: templates over ``inventory``, ``plugin_data`` and ``node``, a loop, and
conditions. ::

    {name: nvme_gb, unit: GB, loop: "{inventory[disks]}", conditions: [{op: eq, args: ["{item[tran]}", nvme]}],
     value: "{item[size]}", combine: "sum|gb"}
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models import documents, facts, secrets
from ironic_rules.models.facts import Fact, Kind
from ironic_rules.models.secrets import Place
from ironic_rules.rules import compiler, strict_yaml, template, values
from ironic_rules.rules.compiled import Condition
from ironic_rules.rules.errors import MissingPath
from ironic_rules.rules.getters import Getter, View, path_getter
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.template import Conversion, Field
from ironic_rules.rules.values import Const, Filled, Scope
from ironic_rules.text import is_storable, nearest

#: The names that templates of a fact can have; ``item`` in a loop.
ROOTS = ("inventory", "plugin_data", "node")
#: Names of routes that are beside facts.
RESERVED = frozenset({"values", "vocabulary"})
#: Maximum number of values that a definition lists.
MAX_PARTS = 100
_NAME = re.compile(facts.NAME)
#: Conversions of a list that return values from it.
_KEEPING = frozenset({"first", "max", "min", "sort", "unique"})
#: Conversions with a result for an empty list that says something of the machine.
_OF_NOTHING = (("count",), ("sum",))
_KINDS: Mapping[str, Kind] = {"address": "address", "mac": "mac"}
#: Functions of the view that return the value of one item, or of the node.
Part = tuple[Getter, Kind | None]


@dataclass(frozen=True, slots=True, eq=False)
class CompiledFact:
    """A fact ready to be evaluated; immutable, shared by threads.

    :ivar reads: the places that it reads
    :ivar items: returns the loop; it raises MissingPath if it is missing, and what it returns is a list or an object
    :ivar conditions: conditions of an item, or of the node if there is no loop
    :ivar parts: the values of an item, each with its type if the definition determines it; without ``many`` there is
        one
    :ivar source: loop, conditions and values as they are written: facts with the same ones combine the same list
    :ivar combine: makes a value or a list of the list
    :ivar kind: the type of what that returns, if the definition determines it
    :ivar counts: whether ``combine`` has a result for an empty list
    """

    id: int
    defined: int
    name: str
    reads: frozenset[Place]
    items: Getter | None
    conditions: tuple[Condition, ...]
    parts: tuple[Part, ...]
    many: bool
    source: str
    combine: Conversion | None
    kind: Kind | None
    counts: bool


@dataclass(slots=True)
class Checked:
    """A definition as a user writes it, compiled, or all that is wrong with it.

    :ivar problems: in the order of the definition; without any, it is compiled
    """

    problems: list[Problem]
    _compiled: CompiledFact | None = field(default=None, repr=False)

    def of(self, fact: Fact) -> CompiledFact:
        """Return the compiled fact.

        :param fact: the same one as it is stored
        :raises Invalid: with every problem
        """
        if self._compiled is None:
            raise Invalid(problems=self.problems)
        return replace(self._compiled, id=fact.id, defined=fact.defined, name=fact.name)


def check(fact: object, *, limits: Limits = DEFAULT) -> Checked:
    """Compile a definition as a user writes it, or find every problem of it: no text quotes a value.

    :param fact: any value
    """
    problems = _problems_of_fields(fact)
    if not isinstance(fact, Mapping):
        return Checked(problems)
    compiled = _compile(fact, problems, replace(limits, loop_items=max(limits.loop_items, facts.MAX_VALUES)))
    return Checked(problems, None if problems else compiled)


def compile_stored(fact: Fact, *, limits: Limits = DEFAULT) -> CompiledFact | None:
    """Compile a fact that was valid when it was stored; None: it no longer is, so that no node has it."""
    checked = check({"name": fact.name, **fact.said()}, limits=limits)
    return None if checked.problems else checked.of(fact)


@functools.cache
def built_in() -> tuple[Fact, ...]:
    """Return the built-in facts, in the order of the file of this package."""
    text = (resources.files(__package__) / "built_in.yaml").read_text(encoding="utf-8")
    return tuple(Fact.of({**item, "origin": facts.BUILT_IN}) for item in strict_yaml.load(text))


def _problems_of_fields(fact: object) -> list[Problem]:
    if not isinstance(fact, Mapping):
        return [Problem("", "must be an object with 'name' and 'value'")]
    problems: list[Problem] = []
    for key in fact:
        if key not in facts.WRITABLE:
            near = nearest(str(key), facts.WRITABLE)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(facts.WRITABLE)}"
            place = documents.format_pointer((str(key),)) if is_storable(str(key)) else ""
            problems.append(Problem(place, f"unknown field; {hint}"))
    name = fact.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        problems.append(Problem("/name", f"is required: {facts.NAME_CHARACTERS}" if name is None
                                else f"must be {facts.NAME_CHARACTERS}"))
    elif name in RESERVED:
        problems.append(Problem("/name", "is a word of the API, which no fact can have as its name"))
    for key, most in _TEXTS.items():
        if (text := fact.get(key)) is not None and not (
                isinstance(text, str) and 0 < len(text) <= most and text.isprintable()):
            problems.append(Problem(f"/{key}", f"must be one line of 1 to {most} characters"))
    if not isinstance(fact.get("watched") or False, bool):
        problems.append(Problem("/watched", "must be true or false"))
    return problems


_TEXTS = {"bundle": 255, "description": 255, "unit": facts.MAX_UNIT, "combine": facts.MAX_COMBINE}


class _Definition:
    """Compiles the parts of a definition, and notes what their templates read."""

    def __init__(self, problems: list[Problem], limits: Limits) -> None:
        self.problems = problems
        self.limits = limits
        self.names: tuple[str, ...] = ROOTS
        self.reads: set[Place] = set()

    def scope(self, *, strict: bool) -> Scope:
        return Scope(self.names, False, strict, self.problems, self.limits, warnings=values.Warnings())

    def note(self, scope: Scope, where: str) -> None:
        """Note the fields that the templates of a part read."""
        for used in scope.fields:
            if used.root != "item" and used.root not in ROOTS:
                names = ", ".join(self.names)
                self.problems.append(Problem(where, f"column {used.column + 1}: there is no such name; known: {names}"))
            for number, step in enumerate(used.steps):
                if secrets.is_secret_key(step):
                    self.problems.append(Problem(where, (
                        f"column {used.column_of(number)}: this is a secret, which cannot be a fact")))
            if used.root in ROOTS:
                self.reads.add((used.root, *used.steps))


def _compile(fact: Mapping[str, Any], problems: list[Problem], limits: Limits) -> CompiledFact | None:
    definition = _Definition(problems, limits)
    has_loop = fact.get("loop") is not None
    items = _items(definition, fact["loop"]) if has_loop else None
    if has_loop:
        definition.names = (*ROOTS, "item")
    conditions = _conditions(definition, fact.get("conditions"))
    many = isinstance(fact.get("value"), (list, tuple))
    parts = _parts(definition, fact.get("value"))
    is_list = has_loop or many
    names = _combine(fact.get("combine"), problems, is_list=is_list)
    if problems:
        return None
    kinds = {kind for _, kind in parts}
    kind = kinds.pop() if len(kinds) == 1 else None
    if names:
        kind = _KINDS.get(names[-1], kind if _KEEPING.issuperset(names) else None)
    return CompiledFact(
        0, 0, "", frozenset(definition.reads), items, conditions, parts, many,
        repr((fact.get("loop"), fact.get("conditions"), fact["value"])),
        template.conversion_chain(names) if names else None, kind, counts=names[:1] in _OF_NOTHING)


def _items(definition: _Definition, loop: object) -> Getter:
    scope = definition.scope(strict=True)
    compiled_loop = values.compile_items(scope, loop, "/loop")
    definition.note(scope, "/loop")
    if not isinstance(loop, str) or definition.problems:
        return compiled_loop or (lambda view: [])
    # A null or another type is as if it were missing: many senders write it for what a machine does not have.
    compiled = values.compile_value(definition.scope(strict=True), loop, "/loop")
    get = values.as_getter(compiled)

    def items(view: View) -> Any:
        value = get(view)
        if not isinstance(value, (list, dict)):
            raise MissingPath(loop)
        return [{"key": key, "value": item} for key, item in value.items()] if isinstance(value, dict) else value

    return items


def _conditions(definition: _Definition, listed: object) -> tuple[Condition, ...]:
    if listed is None:
        return ()
    if not isinstance(listed, (list, tuple)):
        definition.problems.append(Problem("/conditions", "must be a list"))
        return ()
    if len(listed) > definition.limits.conditions:
        definition.problems.append(Problem("/conditions", f"more than {definition.limits.conditions} items"))
        return ()
    conditions = []
    for number, item in enumerate(listed):
        where = f"/conditions/{number}"
        scope = definition.scope(strict=False)
        if (condition := compiler.compile_condition(scope, item, where)) is not None:
            conditions.append(condition)
        definition.note(scope, where)
    return tuple(conditions)


def _parts(definition: _Definition, value: object) -> tuple[Part, ...]:
    if not isinstance(value, (list, tuple)):
        return _part(definition, value, "/value"),
    if not 0 < len(value) <= MAX_PARTS:
        definition.problems.append(Problem("/value", f"must have 1 to {MAX_PARTS} values"))
        return ()
    return tuple(_part(definition, item, f"/value/{number}") for number, item in enumerate(value))


def _part(definition: _Definition, value: object, where: str) -> Part:
    if isinstance(value, dict):
        return _test(definition, value, where), "boolean"
    scope = definition.scope(strict=True)
    if not isinstance(value, (str, int, float)):
        scope.complain(where, "is required" if value is None else (
            "must be a template, a number, true or false, a condition, or a list of these"))
        return _NOTHING
    compiled = values.compile_value(scope, value, where)
    definition.note(scope, where)
    kind: Kind | None = None
    if isinstance(compiled, Filled) and len(parts := template.parse(str(value))) == 1:
        used, = parts
        if isinstance(used, Field) and used.conversions and not (used.form or used.spec):
            kind = _KINDS.get(used.conversions[-1])
    if isinstance(compiled, Const) and isinstance(compiled.value, str):
        scope.complain(where, "must have a template: it is the same for all nodes")
    return values.as_getter(compiled), kind


_NOTHING: Part = (lambda view: None, None)


def _test(definition: _Definition, condition: dict[str, Any], where: str) -> Getter:
    """Compile a condition to whether it holds; it is missing if what it reads is.

    Items of its own loop may lack the data.
    """
    scope = definition.scope(strict=False)
    compiled = compiler.compile_condition(scope, condition, where)
    definition.note(scope, where)
    if compiled is None or definition.problems:
        return _NOTHING[0]
    has_loop = condition.get("loop") is not None
    needed = [path_getter(replace(used, conversions=(), form="", spec=""), True) for used in scope.fields
              if used.root != "item" or not has_loop]
    call = compiled.call

    def holds(view: View) -> bool | None:
        if any(get(view) is None for get in needed):
            return None
        return call(view)

    return holds


def _combine(text: object, problems: list[Problem], *, is_list: bool) -> tuple[str, ...]:
    if text is None or not isinstance(text, str):
        return ()
    if not is_list:
        problems.append(Problem("/combine", "needs a loop, or a list of values; a conversion of one value belongs to "
                                            "its template"))
        return ()
    names: tuple[str, ...] = ()
    for name in text.split("|"):
        if name not in template.CONVERSIONS:
            near = nearest(name, template.CONVERSIONS)
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(template.CONVERSIONS)}"
            problems.append(Problem("/combine", f"there is no such conversion; {hint}"))
            return ()
        names += (name,)
        if (reason := template.chain_problem(names, of_list=True)) is not None:
            problems.append(Problem("/combine", reason))
            return ()
    if len(names) > template.MAX_CHAIN:
        problems.append(Problem("/combine", f"more than {template.MAX_CHAIN} conversions"))
    return names
