"""Names of extra specs with parameters, such as ``trait{group}:CUSTOM_{trait}``, and finding them without a scan."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import re2

from ironic_rules.extra_specs.problems import MAX_LENGTH
from ironic_rules.extra_specs.values import BadDefinition, compiled

T = TypeVar("T")
_PARAMETER = re.compile(r"\{([^{}]*)\}")
_TYPES = {int: "[0-9]+", str: ".+"}


@dataclass(frozen=True)
class NameParameter:
    """A parameter of a name: what it must match, or the function that returns all that it can be."""

    name: str
    description: str
    pattern: str
    choices: Callable[[], Collection[str]] | None = None


class Template:
    """A name with parameters."""

    def __init__(self, name: str, parameters: Sequence[Mapping[str, Any]], is_trusted: bool = False) -> None:
        """Read a name.

        :param is_trusted: whether the patterns are of this package: Python's expressions, of which those take linear
            time, are ten times as fast as RE2's for short texts
        :raises BadDefinition: its parameters are not those that are described, or one of them cannot work
        """
        literals = _PARAMETER.split(name)
        used = literals[1::2]
        self.literals = literals[::2]
        self.parameters = tuple(map(_parameter, parameters))
        known = {parameter.name: parameter for parameter in self.parameters}
        if len(known) < len(self.parameters) or sorted(used) != sorted(known):
            raise BadDefinition(f"The parameters of the name are {', '.join(used) or 'none'}; described are "
                                f"{', '.join(parameter.name for parameter in self.parameters) or 'none'}.")
        if any("{" in literal or "}" in literal for literal in self.literals):
            raise BadDefinition("A brace in the name belongs to no parameter.")
        self._used = [known[parameter] for parameter in used]
        self.prefix, self.suffix = self.literals[0], self.literals[-1]
        #: more literal names are tried before less literal ones
        self.weight = sum(map(len, self.literals))
        inner = [f"({parameter.pattern})" for parameter in self._used]
        text = "".join(map("".join, zip(inner, [*map(re2.escape, self.literals[1:-1]), ""], strict=False)))
        expression: Any = re.compile(text, re.ASCII) if is_trusted else compiled(text)
        self._match: Callable[[str], Any] | None = expression.fullmatch if used else None
        # Patterns of parameters may have groups of their own.
        self._groups = _positions(self._used)
        self._has_choices = any(parameter.choices for parameter in self._used)

    def values(self, name: str) -> dict[str, str] | None:
        """Return the parameters' values in a name that begins and ends as this one, None if it does not match."""
        if self._match is None:
            return {} if name == self.prefix else None
        if len(name) < len(self.prefix) + len(self.suffix):
            return None
        found = self._match(name[len(self.prefix):len(name) - len(self.suffix)])
        if found is None:
            return None
        values = {parameter.name: found.group(group)
                  for parameter, group in zip(self._used, self._groups, strict=True)}
        if self._has_choices and not all(values[parameter.name] in parameter.choices()
                                         for parameter in self._used if parameter.choices):
            return None
        return values

    @property
    def has_choices(self) -> bool:
        """Whether a parameter is one of many names of a library."""
        return self._has_choices

    def choices(self) -> list[str]:
        """Return what can take the place of the last parameter, sorted; empty if that is not one of many names."""
        last = self._used[-1] if self._used else None
        return sorted(last.choices()) if last and last.choices else []


class Templates(Generic[T]):
    """Templates by what stands before the first and after the last parameter.

    The work of finding a name depends on how many different lengths those parts have, not on how many templates there
    are.
    """

    def __init__(self) -> None:
        self._by_ends: dict[tuple[str, str], list[tuple[Template, T]]] = {}
        self._suffix_lengths: dict[str, list[int]] = {}
        self._prefix_lengths: list[int] = []

    def add(self, template: Template, item: T) -> None:
        """Add a template; of those that match a name, the one with most literal characters is found."""
        bucket = self._by_ends.setdefault((template.prefix, template.suffix), [])
        bucket.append((template, item))
        bucket.sort(key=lambda entry: -entry[0].weight)
        lengths = self._suffix_lengths.setdefault(template.prefix, [])
        lengths[:] = sorted({*lengths, len(template.suffix)}, reverse=True)
        self._prefix_lengths = sorted(set(map(len, self._suffix_lengths)), reverse=True)

    def find(self, name: str) -> tuple[T, dict[str, str]] | None:
        """Return the item of the template that a name matches, with the parameters' values; None if there is none."""
        if len(name) > MAX_LENGTH or not name.isascii() or not name.isprintable():
            return None
        for length in self._prefix_lengths:
            prefix = name[:length]
            for suffix_length in self._suffix_lengths.get(prefix, ()):
                suffix = name[len(name) - suffix_length:] if suffix_length else ""
                for template, item in self._by_ends.get((prefix, suffix), ()):
                    values = template.values(name)
                    if values is not None:
                        return item, values
        return None


def shape(name: str) -> str:
    """Return a name without the names of its parameters."""
    return _PARAMETER.sub("{}", name)


def _parameter(described: Mapping[str, Any]) -> NameParameter:
    if not isinstance(described, Mapping) or not isinstance(described.get("name"), str):
        raise BadDefinition("A parameter has no name.")
    name = described["name"]
    description = str(described.get("description") or "")
    given = [key for key in ("type", "pattern", "enum") if described.get(key) is not None]
    if not given:
        raise BadDefinition(f"Parameter '{name}' has neither a type nor a pattern.")
    pattern = described.get("pattern") or _TYPES.get(described.get("type", str))
    if not isinstance(pattern, str):
        raise BadDefinition(f"Parameter '{name}': its type is neither int nor str, or its pattern is no text.")
    compiled(pattern)
    return NameParameter(name, description, pattern, _choices(described.get("enum"), name))


def _choices(described: object, name: str) -> Callable[[], Collection[str]] | None:
    if described is None or callable(described):
        return described
    if not isinstance(described, Iterable) or isinstance(described, str | bytes):
        raise BadDefinition(f"Parameter '{name}': 'enum' is not a list.")
    fixed = frozenset(described)
    if not fixed or not all(isinstance(item, str) for item in fixed):
        raise BadDefinition(f"Parameter '{name}': 'enum' is not a list of texts with at least one.")
    return lambda: fixed


def _positions(parameters: Sequence[NameParameter]) -> list[int]:
    """Return the number of each parameter's group in the expression of all of them."""
    positions, position = [], 1
    for parameter in parameters:
        positions.append(position)
        position += 1 + compiled(parameter.pattern).groups
    return positions
