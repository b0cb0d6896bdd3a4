"""Compile a value in a rule (JSON with templates at any depth) to a constant or a function of the view."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.models import pointer
from ironic_rules.models.json_values import is_int64
from ironic_rules.rules import template
from ironic_rules.rules.getters import Getter, template_getter
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.rule_warnings import Warnings
from ironic_rules.rules.template import Groups
from ironic_rules.text import is_storable, nearest

EARLY_ROOTS = ("inventory", "plugin_data")
#: The inventory of the last successful inspection before this one, null if there was none.
PREVIOUS = "previous"
ROOTS = ("node", "ports", "port_groups", *EARLY_ROOTS, PREVIOUS)
#: The names of inventories: what is known of the paths of one is known of the others.
INVENTORIES = frozenset({"inventory", PREVIOUS})


@dataclass(frozen=True, slots=True)
class Const:
    """A value without templates."""

    value: Any


@dataclass(frozen=True, slots=True)
class Filled:
    """A value in which templates are filled in.

    :ivar path: the field that it consists of, if its value is the one that is found there
    :ivar gives: its type, if it is known, as that of ``{x|int}``; in conditions it can also be None
    :ivar why: the reason why it is not any type, for a message
    """

    get: Getter
    path: template.Field | None = None
    gives: type[str] | type[int] | None = None
    why: str = "text around a template makes it text"


Compiled = Const | Filled

#: Problems of a rule after which no similar names are looked for, which takes long.
_MOST_HINTS = 100


@dataclass(slots=True)
class Scope:
    """The context of values and the names that they may use; collects their problems and their templates.

    :ivar strict: a missing path raises (actions) instead of being None (conditions)
    :ivar names: valid root names
    :ivar groups: what ``match`` has; None if it has no value here
    :ivar items: the path whose elements the items of the loop are, None if it is not known
    :ivar warnings: collects the warnings about the rule; None: there are none
    """

    names: tuple[str, ...]
    early: bool
    strict: bool
    problems: list[Problem]
    limits: Limits = DEFAULT
    warnings: Warnings | None = None
    items: template.Field | None = None
    #: the fields of the templates, as far as they are valid
    fields: list[template.Field] = field(default_factory=list)
    groups: Groups | None = None

    @property
    def roots(self) -> set[str]:
        """The names that are used."""
        return {used.root for used in self.fields}

    def compile_key(self, key: Any, where: str, *, formatted: bool) -> tuple[str, Compiled] | None:
        """Return the place of a key in the object at ``where``, and the compiled key; None if there is a problem."""
        if not isinstance(key, str) or not is_storable(key):
            self.complain(where, "keys must be strings without NUL and lone surrogate characters")
            return None
        return where + pointer.format((key,)), Const(key)

    def compile_template(self, text: str, where: str, *, regex: bool) -> Compiled:
        """Compile a text with braces."""
        return _compile_template(self, text, where, regex)

    def complain(self, where: str, text: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(where, text))

    def warn(self, where: str, text: str) -> None:
        """Add a warning, if they are collected."""
        if self.warnings is not None:
            self.warnings.add(where, text)


def compile_value(scope: Scope, value: Any, where: str, *, formatted: bool = True, regex: bool = False,
                  depth: int = 0) -> Compiled:
    """Compile one value; problems are added to the scope, and make the result unusable.

    :param formatted: whether strings are templates
    :param regex: strings are regular expressions, in which ``{2}`` is not a template
    """
    if isinstance(value, str):
        return _compile_text(scope, value, where, formatted, regex)
    if value is None or isinstance(value, (bool, int)):
        if value is not None and not is_int64(value):
            scope.complain(where, "must be an integer of 64 bits: from -2^63 to 2^64-1")
        return Const(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            scope.complain(where, "must be a finite number")
        return Const(value)
    if not isinstance(value, (list, tuple, dict)):
        scope.complain(where, "must be a JSON value: null, true, false, a number, a string, a list or an object")
        return Const(None)
    if depth >= scope.limits.depth:
        scope.complain(where, f"nested deeper than {scope.limits.depth} levels")
        return Const(None)
    if isinstance(value, dict):
        return _compile_dict(scope, value, where, formatted, regex, depth)
    parts = [
        compile_value(scope, item, f"{where}/{index}", formatted=formatted, regex=regex, depth=depth + 1)
        for index, item in enumerate(value)
    ]
    if all(isinstance(part, Const) for part in parts):
        return Const([part.value for part in parts if isinstance(part, Const)])
    getters = [as_getter(part) for part in parts]
    return Filled(lambda view: [get(view) for get in getters])


def as_getter(compiled: Compiled) -> Getter:
    """Return a function of the view, even for a constant."""
    if isinstance(compiled, Const):
        value = compiled.value
        return lambda view: value
    return compiled.get


def _compile_dict(scope: Scope, value: dict[Any, Any], where: str, formatted: bool, regex: bool,
                  depth: int) -> Compiled:
    parts: list[tuple[Compiled, Compiled]] = []
    for key, item in value.items():
        if (made := scope.compile_key(key, where, formatted=formatted)) is not None:
            place, compiled = made
            parts.append((compiled, compile_value(scope, item, place, formatted=formatted, regex=regex,
                                                  depth=depth + 1)))
    if all(isinstance(part, Const) for pair in parts for part in pair):
        return Const({key.value: part.value for key, part in parts
                      if isinstance(key, Const) and isinstance(part, Const)})
    getters = [(as_getter(key), as_getter(part)) for key, part in parts]
    return Filled(lambda view: {get_key(view): get(view) for get_key, get in getters})


def _compile_text(scope: Scope, text: str, where: str, formatted: bool, regex: bool) -> Compiled:
    if len(text) > scope.limits.text:
        scope.complain(where, f"longer than {scope.limits.text} characters")
        return Const("")
    if not is_storable(text):
        scope.complain(where, "must not contain NUL and lone surrogate characters")
        return Const("")
    if not formatted or ("{" not in text and "}" not in text):
        return Const(text)
    return scope.compile_template(text, where, regex=regex)


def _compile_template(scope: Scope, text: str, where: str, regex: bool) -> Compiled:
    try:
        parts = template.parse(text, regex)
    except template.TemplateError as exc:
        scope.complain(where, str(exc))
        return Const("")
    fields = [part for part in parts if isinstance(part, template.Field)]
    scope.fields += fields
    before = len(scope.problems)
    for part in fields:
        _check_path(scope, part, where)
        if part.conversions and not part.steps and part.root in ROOTS and part.conversions[0] != template.COUNT:
            scope.complain(where, f"column {part.column + 1}: this is a list or an object, which cannot be converted")
    if len(scope.problems) > before:
        return Const("")
    if not fields:
        return Const("".join(part for part in parts if isinstance(part, str)))
    get = template_getter(parts, scope.strict, scope.limits.result)
    if len(parts) > 1:
        return Filled(get, None, str)
    used, = fields
    if used.conversions or used.root == template.ROOT_GROUPS:
        gives = template.conversion_result(used.conversions)
        return Filled(get, None, gives, f"this template gives {'an integer' if gives is int else 'text'}")
    return Filled(get, used)


def _check_path(scope: Scope, used: template.Field, where: str) -> None:
    if used.root == template.ROOT_GROUPS:
        _check_group(scope, used, where)
        return
    if used.root not in scope.names:
        _complain_of_root(scope, used, where)
        return
    root, steps = used.root, used.steps
    if root in INVENTORIES and scope.warnings is None:
        return
    above = 0
    if root == "item" and scope.items is not None:
        root, above = scope.items.root, len(scope.items.steps) + 1
        steps = (*scope.items.steps, template.ANY_RECORD, *steps)
    if root in template.RECORDS:
        found = template.record_problem(root, steps, hint=len(scope.problems) < _MOST_HINTS)
        if found is not None:
            number, reason = found
            scope.complain(where, f"column {used.column_of(number - above)}: {reason}")
    elif scope.warnings is not None and root in INVENTORIES:
        scope.warnings.reads(where, used, root, steps, above)


def elements_of(looped: Compiled) -> template.Field | None:
    """Return the path of a loop of whose items something is known: the ports, or a part of an inventory."""
    used = looped.path if isinstance(looped, Filled) else None
    if used is None:
        return None
    is_list = used.root in template.RECORDS and used.root != "node" and not used.steps
    return used if is_list or used.root in INVENTORIES else None


def _complain_of_root(scope: Scope, used: template.Field, where: str) -> None:
    column = used.column + 1
    if used.root == "item":
        scope.complain(where, f"column {column}: 'item' has a value only inside a loop")
    elif scope.early and used.root in ROOTS:
        scope.complain(where, f"column {column}: {used.root!r} is not available in the early phase")
    else:
        near = nearest(used.root, scope.names)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(scope.names)}"
        scope.complain(where, f"column {column}: there is no such name; {hint}")


def _check_group(scope: Scope, used: template.Field, where: str) -> None:
    if scope.groups is None:
        reason: str | None = f"{template.ROOT_GROUPS!r} has a value only in actions, after all conditions"
    else:
        reason = scope.groups.use(used.steps)
    if reason is not None:
        scope.complain(where, f"column {used.column + 1}: {reason}")
