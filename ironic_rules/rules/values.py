"""Values in a rule (JSON with templates at any depth), compiled to a constant or a function of the view.

``loop`` and ``multiple`` are here too: the items of a loop, and how the results of a condition are combined. So are
warnings about a valid rule that works, but probably not as its author thinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.models import documents
from ironic_rules.models.documents import is_int64
from ironic_rules.models.inventories import ANY_KEY, Catalogue, Steps, shipped_catalogue
from ironic_rules.models.nodes import INTERFACE_FIELDS
from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import FACT, PREVIOUS_FACT, Getter, View, path_getter, template_getter
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.template import Field, Groups
from ironic_rules.text import is_storable, nearest

#: Returns the paths that inventories have; called only for a path that no ramdisk is known to send.
KnownPaths = Callable[[], Catalogue]

#: Returns the names that fields of a node can have, by field: those of drivers and interfaces. A field without names
#: can have any.
KnownNames = Callable[[], Mapping[str, Collection[str]]]
#: Returns the names of all facts; called only for a rule that reads one.
KnownFacts = Callable[[], Collection[str]]

#: Maximum number of warnings about a rule.
MAX_WARNINGS = 50
_MORE = f"there are more than {MAX_WARNINGS} warnings; the others are not listed"


@dataclass(frozen=True, slots=True)
class RuleWarning:
    """One warning: ``where`` is a JSON pointer; ``nearest`` is what may have been meant. Neither quotes a value."""

    where: str
    text: str
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.where}: {self.text}{hint}" if self.where else self.text


class Warnings:
    """Collects the warnings about one rule.

    :param known_paths: None: paths of the inventory are not checked
    :param known_names: None: names of drivers and interfaces are not checked
    """

    def __init__(self, known_paths: KnownPaths | None = None, known_names: KnownNames | None = None) -> None:
        self.found: list[RuleWarning] = []
        self._known_paths = known_paths
        self._known_names = known_names
        self._names: Mapping[str, Collection[str]] | None = None
        self._catalogue: Catalogue | None = None

    def add(self, where: str, text: str, nearest: str | None = None) -> None:
        """Add a warning; after too many of them, only that there are more."""
        if len(self.found) < MAX_WARNINGS:
            self.found.append(RuleWarning(where, text, nearest))
        elif len(self.found) == MAX_WARNINGS:
            self.found.append(RuleWarning("", _MORE))

    def writes(self, where: str, field: str, value: object) -> None:
        """Add a warning if a field of the node would get the name of a driver or an interface that there is not."""
        if self._known_names is None or field not in NAMED or not isinstance(value, str):
            return
        if self._names is None:
            self._names = self._known_names()
        names = self._names.get(field, ())
        if names and value not in names:
            self.add(where, f"no conductor that runs now offers a {field.replace('_', ' ')} of this name",
                     nearest(value, names))

    def reads(self, where: str, used: Field, root: str, steps: Steps, above: int) -> None:
        """Add a warning if no inventory has the path that a template reads.

        :param root: the name of the inventory: that of this inspection, or of the previous one
        :param steps: the path below the inventory
        :param above: how many of the steps are those of a loop; the template has the others
        """
        is_shipped = shipped_catalogue().unknown_step(steps) is None
        if self._known_paths is None or is_shipped or len(self.found) > MAX_WARNINGS:
            return
        if above and steps[above:above + 1] in (("key",), ("value",)):
            # The loop is over an object; what is below it has no name that is known.
            return
        if self._catalogue is None:
            self._catalogue = self._known_paths()
        number = self._catalogue.unknown_step(steps)
        if number is None:
            return
        if number < above:
            # The place of the loop has its own warning.
            return
        meant = self._catalogue.nearest(steps)
        self.add(where, f"column {used.column_of(number - above)}: no inventory so far has this path",
                 None if meant is None else _written(root, meant, steps[:above]))


def _written(inventory: str, path: Steps, loop: Steps) -> str:
    """Return a path as it stands in a template, below ``item`` where it is in the loop."""
    inside = loop and path[:len(loop)] == loop
    root, steps = ("item", path[len(loop):]) if inside else (inventory, path)
    return root + "".join(f"[{0 if step == ANY_KEY else step}]" for step in steps)


#: Fields of a node whose values are names of drivers and interfaces.
NAMED = frozenset({"driver", *INTERFACE_FIELDS})

EARLY_ROOTS = ("inventory", "plugin_data")
#: The inventory of the last successful inspection before this one, null if there was none.
PREVIOUS = "previous"
#: The facts of the node as its data are now, and as the inspection before has left them; null if there was none.
FACTS = frozenset({FACT, PREVIOUS_FACT})
ROOTS = ("node", "ports", "port_groups", *EARLY_ROOTS, PREVIOUS, FACT, PREVIOUS_FACT)
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
    gives: type[str] | type[int] | type[list[Any]] | None = None
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
    #: the keys of the object that is the only item of the loop; None if the items are others
    item_keys: Collection[object] | None = None
    #: whether a missing path that is all of a value raises Absent
    absent: bool = False
    #: returns the names of all facts; None if they are not checked
    facts: KnownFacts | None = None

    @property
    def roots(self) -> set[str]:
        """The names that are used."""
        return {used.root for used in self.fields}

    def compile_key(self, key: object, where: str, *, formatted: bool) -> tuple[str, Compiled] | None:
        """Return the place of a key in the object at ``where``, and the compiled key; None if there is a problem."""
        if not isinstance(key, str) or not is_storable(key):
            self.complain(where, "keys must be strings without NUL and lone surrogate characters")
            return None
        place = where + documents.format_pointer((key,))
        if formatted and self.warnings is not None and "{" in key and _has_template(key):
            self.warn(place, "a template in a key is text: templates are filled in in values only")
        return place, Const(key)

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


def compile_value(scope: Scope, value: object, where: str, *, formatted: bool = True, regex: bool = False,
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
        if (keyed := scope.compile_key(key, where, formatted=formatted)) is not None:
            place, compiled = keyed
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
    if formatted and scope.warnings is not None and text.startswith(_LEGACY_PATHS):
        scope.warn(where, "this is text, and no path of ironic-inspector: data are read by a template, such as "
                          "{inventory[cpu][count]} and {node.extra[rack]}")
    if not formatted or ("{" not in text and "}" not in text):
        return Const(text)
    return scope.compile_template(text, where, regex=regex)


#: Schemes of the paths in rules of ironic-inspector.
_LEGACY_PATHS = ("data://", "node://")


def _has_template(key: str) -> bool:
    try:
        return any(isinstance(part, template.Field) for part in template.parse(key))
    except template.TemplateError:
        return False


def _compile_template(scope: Scope, text: str, where: str, regex: bool) -> Compiled:
    try:
        parts = template.parse(text, regex)
    except template.TemplateError as exc:
        scope.complain(where, str(exc))
        return Const("")
    if regex and scope.warnings is not None:
        for column in template.stray_braces(text):
            scope.warn(where, f"column {column}: this brace begins no template, and is a literal one")
    fields = [part for part in parts if isinstance(part, template.Field)]
    scope.fields += fields
    before = len(scope.problems)
    for part in fields:
        _check_path(scope, part, where)
        if part.conversions and not part.steps and part.root in ROOTS and part.conversions[0] not in template.OF_LISTS:
            scope.complain(where, f"column {part.column + 1}: this is a list or an object, which cannot be converted")
    if len(scope.problems) > before:
        return Const("")
    if not fields:
        return Const("".join(part for part in parts if isinstance(part, str)))
    get = template_getter(parts, scope.strict, scope.limits.result, scope.absent)
    if len(parts) > 1:
        return Filled(get, None, str)
    used, = fields
    if not used.is_plain or used.root == template.ROOT_GROUPS:
        gives = str if used.form or used.spec else template.conversion_result(used.conversions)
        return Filled(get, None, gives, f"this template gives {_RESULTS.get(gives, 'one value')}")
    return Filled(get, used)


_RESULTS: dict[object, str] = {int: "an integer", list: "a list", str: "text"}


def _check_path(scope: Scope, used: template.Field, where: str) -> None:
    if used.root == template.ROOT_GROUPS:
        _check_group(scope, used, where)
        return
    if used.root not in scope.names:
        _complain_of_root(scope, used, where)
        return
    if used.root in FACTS:
        _check_fact(scope, used, where)
        return
    root, steps = used.root, used.steps
    if root == "item" and steps and scope.item_keys is not None and steps[0] not in scope.item_keys:
        scope.warn(where, f"column {used.column_of(0)}: the loop is one object, which has no such key")
    if root in INVENTORIES and scope.warnings is None:
        return
    above = 0
    if root == "item" and scope.items is not None:
        root, above = scope.items.root, len(scope.items.steps) + 1
        steps = (*scope.items.steps, template.ANY_RECORD, *steps)
    if root in template.RECORDS:
        problem = template.record_problem(root, steps, hint=len(scope.problems) < _MOST_HINTS)
        if problem is not None:
            number, reason = problem
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
    elif scope.warnings is not None:
        scope.warnings.add(where, f"column {column}: there is no such name, so that this value is always missing",
                           nearest(used.root, scope.names))


def _check_fact(scope: Scope, used: template.Field, where: str) -> None:
    if not used.steps:
        if used.root == FACT:
            scope.complain(where, f"column {used.column + 1}: the name of a fact must follow: {{{FACT}[memory_gib]}}")
    elif reason := fact_problem(scope, used.steps[0]):
        scope.complain(where, f"column {used.column_of(0)}: {reason}")


def fact_problem(scope: Scope, name: str) -> str | None:
    """Return why a rule cannot read the fact of this name; None if there is one, or that is not checked."""
    facts = scope.facts() if scope.facts is not None else (name,)
    if name in facts:
        return None
    near = nearest(name, facts)
    return f"there is no such fact; {f'did you mean {near!r}?' if near else 'GET /v1/facts lists them'}"


def compile_fact(name: str) -> Filled:
    """Return the values of a fact now and after the inspection before: a pair, of which each may be None.

    If there was no inspection before, the value now stands for both.
    """
    now, before = (path_getter(template.Field(root, (name,), f"{{{root}[{name}]}}", 1), False)
                   for root in (FACT, PREVIOUS_FACT))

    def pair(view: View) -> tuple[Any, Any]:
        current = now(view)
        return current, current if view[PREVIOUS_FACT] is None else before(view)

    return Filled(pair)


def _check_group(scope: Scope, used: template.Field, where: str) -> None:
    if scope.groups is None:
        reason: str | None = f"{template.ROOT_GROUPS!r} has a value only in actions, after all conditions"
    else:
        reason = scope.groups.use(used.steps)
    if reason is not None:
        scope.complain(where, f"column {used.column + 1}: {reason}")


MULTIPLE = ("any", "all", "first", "last")

Items = Callable[[View], list[Any]]
Check = Callable[[View], bool]


def compile_items(scope: Scope, loop: object, where: str) -> Items | None:
    """Compile a ``loop``: a list, an object, or one template that gives a list or an object.

    An object that the rule has is one item, as in Ironic; one that a template gives has the items ``{key, value}``.

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
    if isinstance(loop, str) and isinstance(compiled, Filled) and compiled.path is None and compiled.gives is not list:
        scope.complain(where, f"must be a list, an object, or one template that gives either; {compiled.why}")
    if len(scope.problems) > before:
        return None
    if isinstance(loop, (list, tuple)) and not loop:
        scope.warn(where, "the loop has no items")
    scope.items = elements_of(compiled)
    scope.item_keys = frozenset(loop) if isinstance(loop, dict) else None
    limit = scope.limits.loop_items
    if isinstance(compiled, Const):
        items = [compiled.value] if isinstance(loop, dict) else _items(compiled.value, limit)
        return lambda view: items
    get = as_getter(compiled)
    if isinstance(loop, dict):
        return lambda view: [get(view)]
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


def _items(value: object, limit: int) -> list[Any]:
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
        def test(item: object) -> bool:
            view["item"] = item
            return check(view)

        return test

    decide = _DECIDE[multiple]
    return lambda view: decide(items(view), of_item(view))


def join_values(multiple: str, items: Items, test: Callable[[Any], bool]) -> Check:
    """Return a condition over all items, which needs nothing but the item."""
    decide = _DECIDE[multiple]
    return lambda view: decide(items(view), test)


def _any(items: list[Any], test: Callable[[Any], bool]) -> bool:
    for item in items:
        try:
            if test(item):
                return True
        except CannotEvaluate:
            pass
    return False


def _all(items: list[Any], test: Callable[[Any], bool]) -> bool:
    try:
        for item in items:
            if not test(item):
                return False
    except CannotEvaluate:
        return False
    return True


_DECIDE = {"any": _any, "all": _all, "first": lambda items, test: _any(items[:1], test),
           "last": lambda items, test: _any(items[-1:], test)}
