"""Paths of conditions: JSONPath below ``data://`` or ``node://``, parsed once by jsonpath-ng.

A path of names and indexes compiles to the function that templates have. Wildcards, slices, alternatives and recursive
descent compile to a walk that is bounded: by the number of values that it finds, and of those that it looks at.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jsonpath_ng
from jsonpath_ng.exceptions import JSONPathError
from jsonpath_ng.jsonpath import (
    Child,
    DatumInContext,
    Descendants,
    Fields,
    Index,
    JSONPath,
    Parent,
    Root,
    Slice,
    This,
    Where,
    WhereNot,
    Wildcard,
)

from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate, MissingPath
from ironic_rules.rules.getters import Getter, View, path_getter
from ironic_rules.text import printable

ROOTS = ("data", "node")
MAX_LENGTH = 1000
#: Maximum number of parts, each of which is a call inside that of the part before.
MAX_PARTS = 100
#: Maximum number of looks of a walk at values, as a multiple of the values that it may find.
_LOOKED_AT = 32


class PathProblem(ValueError):
    """A path that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldPath:
    """The path of a condition's field.

    :ivar plain: the path as a template's field, if it has only names and indexes: then it finds at most one value
    :ivar get: of a plain path, returns the value; raises MissingPath
    :ivar find: returns all values that it finds; raises CannotEvaluate if there are too many
    """

    root: str
    plain: template.Field | None
    get: Getter
    find: Callable[[View], list[Any]]


class _Budget:
    """Limits of a walk: values that it may still look at, and times that it may apply a part to one."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most

    def look(self, times: int = 1) -> None:
        self.left -= times
        if self.left < 0:
            raise CannotEvaluate("the path looks at too many values")


#: Yields what a part of a path finds in a value.
_Part = Callable[[Any, _Budget], Iterable[Any]]


# Thousands of rules read the same few paths.
@functools.lru_cache(maxsize=1024)
def parse(text: str, most: int) -> FieldPath:
    """Parse the field of a condition.

    :param most: maximum number of values that it may find
    :raises PathProblem: it is empty, too long, malformed, has another scheme, or a part that is not supported
    """
    root, parts = split(text)
    if any(isinstance(part, Parent) for part in parts):
        whole = path_getter(_field(root, ()), True)
        return FieldPath(root, None, whole, _with_parents(whole, parts, most))
    plain = list(itertools.takewhile(lambda part: step(part) is not None, parts))
    start = _field(root, tuple(filter(None, map(step, plain))))
    get = path_getter(start, True)
    rest = parts[len(plain):]
    if not rest:
        return FieldPath(root, start, get, _one(get))
    try:
        walk = _chain([_part(part) for part in rest])
    except RecursionError:
        raise PathProblem("is nested too deeply") from None
    key = f"at most {most} of {text}"
    names = [step(part) for part in rest[1:] if isinstance(part, Fields)]
    if isinstance(rest[0], Wildcard) and len(names) == len(rest) - 1 and all(names):
        return FieldPath(root, None, get, _noted(key, _all_of(get, [name for name in names if name], most)))
    return FieldPath(root, None, get, _noted(key, _all(get, walk, most)))


def split(text: str) -> tuple[str, list[JSONPath]]:
    """Return the root of a field, ``data`` or ``node``, and the parts of its path that are applied one after the other.

    :raises PathProblem: it is empty, too long, malformed, or has another scheme
    """
    if len(text) > MAX_LENGTH:
        raise PathProblem(f"must have at most {MAX_LENGTH} characters")
    root, separator, path = text.partition("://")
    if not separator:
        root, path = "data", text
    elif root not in ROOTS:
        raise PathProblem("has another scheme than data:// and node://")
    if not path.strip():
        raise PathProblem("is empty")
    parts = _flat(_parsed(path))
    if len(parts) > MAX_PARTS:
        raise PathProblem(f"must have at most {MAX_PARTS} parts")
    return root, parts


def _parsed(path: str) -> JSONPath:
    with contextlib.ExitStack() as stack:
        if "|" in path or "&" in path:
            # That jsonpath-ng will write alternatives otherwise; rules are written as for jsonpath-rw.
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return jsonpath_ng.parse(path)
        except (JSONPathError, ValueError, RecursionError) as exc:
            raise PathProblem(f"is not a JSON path: {printable(exc, 200)}") from None


def _field(root: str, steps: tuple[str, ...]) -> template.Field:
    return template.Field(root, steps, field_text(root, steps), 1)


def field_text(root: str, steps: tuple[str, ...]) -> str:
    """Return a template that reads the value at a path."""
    return "{" + root + "".join(f"[{step}]" for step in steps) + "}"


def _flat(path: JSONPath) -> list[JSONPath]:
    """Return the parts that are applied one after the other."""
    parts: list[JSONPath] = []
    while isinstance(path, Child):
        parts[:0] = _flat(path.right) if isinstance(path.right, Child) else [path.right]
        path = path.left
    return [path, *parts]


def step(part: JSONPath) -> str | None:
    """Return a part as the step of a template, "" if it is none, and None if a template has no such steps."""
    if isinstance(part, (Root, This)):
        return ""
    if isinstance(part, Fields) and len(part.fields) == 1 and "*" not in part.fields and part.fields[0]:
        return str(part.fields[0])
    if isinstance(part, Index) and len(part.indices) == 1 and 0 <= part.indices[0] < 10 ** 9:
        return str(part.indices[0])
    return None


def _one(get: Getter) -> Callable[[View], list[Any]]:
    def find(view: View) -> list[Any]:
        try:
            return [get(view)]
        except MissingPath:
            return []

    return find


def _noted(key: str, find: Callable[[View], list[Any]]) -> Callable[[View], list[Any]]:
    """Return a function that finds the values of a path once for all rules, while nothing changes."""

    def noted(view: View) -> list[Any]:
        if key not in view:
            try:
                view[key] = find(view)
            except CannotEvaluate as exc:
                view[key] = str(exc)
        result: list[Any] | str = view[key]
        if isinstance(result, str):
            raise CannotEvaluate(result)
        return result

    return noted


def _all_of(get: Getter, names: Sequence[str], most: int) -> Callable[[View], list[Any]]:
    """Return the function of the most frequent form with a wildcard, ``inventory.disks[*].size``: the shortest one."""

    def find(view: View) -> list[Any]:
        try:
            start = get(view)
        except MissingPath:
            return []
        if isinstance(start, dict):
            start = list(start.values())
        if not isinstance(start, list):
            return []
        values = _limited(start, most)
        for name in names:
            values = [value[name] for value in values if isinstance(value, dict) and name in value]
        return values

    return find


def _all(get: Getter, walk: _Part, most: int) -> Callable[[View], list[Any]]:
    def find(view: View) -> list[Any]:
        try:
            start = get(view)
        except MissingPath:
            return []
        return _limited(walk(start, _Budget(most * _LOOKED_AT)), most)

    return find


def _limited(values: Iterable[object], most: int) -> list[Any]:
    limited = list(itertools.islice(values, most + 1))
    if len(limited) > most:
        raise CannotEvaluate(f"the path finds more than {most} values")
    return limited


def _with_parents(get: Getter, parts: Sequence[JSONPath], most: int) -> Callable[[View], list[Any]]:
    """Return a function for a path with parts that need to know where a value is: jsonpath-ng applies each of them."""
    for part in parts:
        if not isinstance(part, (Parent, Root, This, Fields, Index, Slice, Wildcard)):
            raise PathProblem("cannot have `parent` together with '..', '|' and conditions")

    def find(view: View) -> list[Any]:
        data, budget = [DatumInContext.wrap(get(view))], _Budget(most * _LOOKED_AT)
        for part in parts:
            names = part.fields if isinstance(part, Fields) else part.indices if isinstance(part, Index) else (part,)
            budget.look(len(data) * len(names))
            # Each finds at most the parts of one value.
            data = _limited(itertools.chain.from_iterable(
                part.find(datum) for datum in data if not isinstance(part, Parent) or datum.context is not None), most)
        return [datum.value for datum in data]

    return find


def _chain(parts: Sequence[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    first, rest = parts[0], _chain(parts[1:])

    def walk(value: object, budget: _Budget) -> Iterator[Any]:
        for child in first(value, budget):
            yield from rest(child, budget)

    return walk


def _part(part: JSONPath) -> _Part:
    """Return the function of one part.

    :raises PathProblem: it is not supported
    """
    apply = _unbounded(part)

    def bounded(value: object, budget: _Budget) -> Iterable[Any]:
        # Also where it finds nothing: with alternatives before it, it is applied to the same value again and again.
        budget.look()
        return apply(value, budget)

    return bounded


def _unbounded(part: JSONPath) -> _Part:
    if isinstance(part, Child):
        return _chain([_part(child) for child in _flat(part)])
    if isinstance(part, (This, Root)):
        # A root is only at the beginning, also of what is in parentheses there.
        return lambda value, budget: (value,)
    if isinstance(part, Wildcard) or (isinstance(part, Fields) and "*" in part.fields):
        return _children
    if isinstance(part, Fields):
        return _names(part.fields)
    if isinstance(part, Index):
        return _indexes(part.indices)
    if isinstance(part, Slice):
        return _slice(slice(part.start, part.end, part.step))
    if isinstance(part, Descendants):
        return _descent(_part(part.left), _part(part.right))
    if isinstance(part, (Where, WhereNot)):
        return _where(_part(part.left), _part(part.right), not isinstance(part, WhereNot))
    if type(part).__name__ in ("Union", "_Union"):
        # The class has become a private one.
        return _either(*(_part(getattr(part, side)) for side in ("left", "right")))
    raise PathProblem("has a part that is not supported")


def _children(value: object, budget: _Budget) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            budget.look()
            yield child


def _names(names: Sequence[str]) -> _Part:
    def walk(value: object, budget: _Budget) -> Iterator[Any]:
        if isinstance(value, dict):
            for name in names:
                budget.look()
                if name in value:
                    yield value[name]

    return walk


def _indexes(indexes: Sequence[int]) -> _Part:
    def walk(value: object, budget: _Budget) -> Iterator[Any]:
        if isinstance(value, list):
            for index in indexes:
                budget.look()
                if -len(value) <= index < len(value):
                    yield value[index]

    return walk


def _slice(part: slice) -> _Part:
    if part.step == 0:
        raise PathProblem("has a slice whose step is 0")

    def walk(value: object, budget: _Budget) -> Iterator[Any]:
        if isinstance(value, list):
            for index in range(*part.indices(len(value))):
                budget.look()
                yield value[index]

    return walk


def _descent(left: _Part, right: _Part) -> _Part:
    def walk(value: object, budget: _Budget) -> Iterator[Any]:
        for start in left(value, budget):
            # Not by recursion: the data can be nested deeper than Python's stack.
            stack = [start]
            while stack:
                child = stack.pop()
                yield from right(child, budget)
                stack.extend(reversed(list(_children(child, budget))))

    return walk


def _where(left: _Part, right: _Part, must_match: bool) -> _Part:
    def walk(value: object, budget: _Budget) -> Iterator[Any]:
        for child in left(value, budget):
            if any(True for _ in right(child, budget)) is must_match:
                yield child

    return walk


def _either(left: _Part, right: _Part) -> _Part:
    return lambda value, budget: itertools.chain(left(value, budget), right(value, budget))
