"""Compile a value in a rule (JSON with templates at any depth) to a constant or a function of the view."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.models import pointer, secrets
from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate, MissingPath
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.mask import View
from ironic_rules.text import is_storable, nearest

EARLY_ROOTS = ("inventory", "plugin_data")
ROOTS = ("node", "ports", "port_groups", *EARLY_ROOTS)


@dataclass(frozen=True, slots=True)
class Const:
    """A value without templates."""

    value: Any


Getter = Callable[[View], Any]


@dataclass(frozen=True, slots=True)
class Path:
    """A value that is exactly one ``{...}``: can be called as a getter, and has the field that it reads."""

    field: template.Field
    get: Getter

    def __call__(self, view: View) -> Any:
        return self.get(view)


Compiled = Const | Path | Getter

#: Types without parts, in which nothing can be secret.
_SCALARS = frozenset({str, int, float, bool, type(None)})
_LISTS = frozenset({list, tuple})


@dataclass(slots=True)
class Scope:
    """The context of values and the names that they may use; collects their problems.

    :ivar strict: a missing path raises (actions) instead of being None (conditions)
    :ivar names: valid root names
    """

    names: tuple[str, ...]
    early: bool
    strict: bool
    problems: list[Problem]
    limits: Limits = DEFAULT
    looping: bool = field(default=False)

    def complain(self, where: str, text: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(where, text))


def compile_value(scope: Scope, value: Any, where: str, *, formatted: bool = True, regex: bool = False,
                  depth: int = 0) -> Compiled:
    """Compile one value; problems are added to the scope, and make the result unusable.

    :param formatted: whether strings are templates
    :param regex: strings are regular expressions, in which ``{2}`` is not a template
    """
    if isinstance(value, str):
        return _compile_text(scope, value, where, formatted, regex)
    if value is None or isinstance(value, (bool, int)):
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
    return lambda view: [get(view) for get in getters]


def as_getter(compiled: Compiled) -> Getter:
    """Return a function of the view, even for a constant."""
    if isinstance(compiled, Const):
        value = compiled.value
        return lambda view: value
    return compiled.get if isinstance(compiled, Path) else compiled


def _compile_dict(scope: Scope, value: dict[Any, Any], where: str, formatted: bool, regex: bool,
                  depth: int) -> Compiled:
    parts: dict[str, Compiled] = {}
    for key, item in value.items():
        if not isinstance(key, str) or not is_storable(key):
            scope.complain(where, "keys must be strings without NUL and lone surrogate characters")
            continue
        place = where + pointer.format((key,))
        parts[key] = compile_value(scope, item, place, formatted=formatted, regex=regex, depth=depth + 1)
    if all(isinstance(part, Const) for part in parts.values()):
        return Const({key: part.value for key, part in parts.items() if isinstance(part, Const)})
    getters = {key: as_getter(part) for key, part in parts.items()}
    return lambda view: {key: get(view) for key, get in getters.items()}


def _compile_text(scope: Scope, text: str, where: str, formatted: bool, regex: bool) -> Compiled:
    if len(text) > scope.limits.text:
        scope.complain(where, f"longer than {scope.limits.text} characters")
        return Const("")
    if not is_storable(text):
        scope.complain(where, "must not contain NUL and lone surrogate characters")
        return Const("")
    if not formatted or ("{" not in text and "}" not in text):
        return Const(text)
    try:
        parts = template.parse(text, regex)
    except template.TemplateError as exc:
        scope.complain(where, str(exc))
        return Const("")
    fields = [part for part in parts if isinstance(part, template.Field)]
    before = len(scope.problems)
    for part in fields:
        _check_root(scope, part, where)
    if len(scope.problems) > before:
        return Const("")
    if not fields:
        return Const("".join(part for part in parts if isinstance(part, str)))
    if len(parts) == 1:
        return Path(fields[0], path_getter(fields[0], scope.strict))
    return _text_getter(parts, scope.limits.result)


def _check_root(scope: Scope, used: template.Field, where: str) -> None:
    if used.root in scope.names:
        return
    column = used.column + 1
    if used.root == "item":
        scope.complain(where, f"column {column}: 'item' has a value only inside a loop")
    elif scope.early and used.root in ROOTS:
        scope.complain(where, f"column {column}: {used.root!r} is not available in the early phase")
    else:
        near = nearest(used.root, scope.names)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(scope.names)}"
        scope.complain(where, f"column {column}: there is no such name; {hint}")


# Thousands of rules read the same few paths: a shared function for each of them remains in the processor's cache.
@functools.lru_cache(maxsize=4096)
def path_getter(used: template.Field, strict: bool) -> Getter:
    """Return a function that traverses plain mappings and lists; a missing path is None, or MissingPath if strict.

    With a masked view it returns what it would find in a masked copy of the root. Loop items are not masked again:
    they come from the rule itself, or from another getter.
    """
    if used.root == "item":
        return _index_getter(used, strict, _unchanged)
    part = View.shown
    if any(map(secrets.is_secret_key, used.steps)):
        return _secret_getter(used, strict, part)
    if any(step.isdecimal() for step in used.steps):
        return _index_getter(used, strict, part)
    return _key_getter(used, strict, part)


#: Converts the dict or list at the end of a path: (view, root, path, value) -> value
_Part = Callable[[View, str, str, Any], Any]


def _unchanged(view: View, root: str, path: str, value: Any) -> Any:
    return value


def _key_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    # Without indexes in the path, subscription alone is sufficient: of JSON values, only a dict accepts a string.
    keys, root, text = used.steps, used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _steps(used: template.Field) -> tuple[tuple[str, int | None], ...]:
    return tuple((step, int(step) if step.isdecimal() and len(step) < 10 else None) for step in used.steps)


def _index_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    steps, root, text = _steps(used), used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            for key, index in steps:
                value = value[key if index is None or value.__class__ not in _LISTS else index]
        except (IndexError, KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _secret_getter(used: template.Field, strict: bool, part: _Part) -> Getter:
    steps, root, text = _steps(used), used.root, used.text

    def walk(view: View) -> Any:
        value = view[root]
        try:
            for key, index in steps:
                value = value[key if index is None or value.__class__ not in _LISTS else index]
                # The steps after a secret then find nothing, because a text has no parts.
                if view.masked and value is not None and secrets.is_secret_key(key):
                    value = secrets.MASK
        except (IndexError, KeyError, TypeError):
            if strict:
                raise MissingPath(text) from None
            return None
        return value if value.__class__ in _SCALARS else part(view, root, text, value)

    return walk


def _text_getter(parts: tuple[str | template.Field, ...], limit: int) -> Getter:
    pieces: list[tuple[str, Getter | None]] = [
        (part, None) if isinstance(part, str) else (part.text, path_getter(part, strict=True)) for part in parts
    ]

    def render(view: View) -> str:
        out = []
        for text, get in pieces:
            if get is None:
                out.append(text)
                continue
            value = get(view)
            if value is None:
                raise MissingPath(text)
            out.append(value if isinstance(value, str) else str(value))
        result = "".join(out)
        if len(result) > limit:
            raise CannotEvaluate(f"the text is longer than {limit} characters")
        return result

    return render
