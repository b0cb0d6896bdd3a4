"""Named operators and actions, with their parameters read once from the signature."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ironic_rules.rules import kinds
from ironic_rules.rules.kinds import Kind
from ironic_rules.text import nearest


class UnknownName(LookupError):
    """No such operator or action. ``nearest`` is the most similar name, or None."""

    def __init__(self, what: str, nearest: str | None, known: list[str]) -> None:
        self.nearest = nearest
        hint = f"did you mean {nearest!r}?" if nearest else f"known: {', '.join(known)}"
        super().__init__(f"there is no such {what}; {hint}")


class BadOperation(ValueError):
    """An object cannot be registered as an operation, or its name is already in use."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: ``variadic`` is "", "positional" (``*values``) or "keyword" (``**options``)."""

    name: str
    kind: Kind
    required: bool
    variadic: str = ""
    keyword_only: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A registered operator or action.

    :ivar call: the function, or the instance of the action's class
    :ivar formatted: names of the parameters in which templates are filled in; None = all
    :ivar early: whether it works in the early phase
    """

    name: str
    call: Any
    parameters: tuple[Parameter, ...]
    doc: str
    formatted: frozenset[str] | None = None
    early: bool = True

    def parameter(self, name: str) -> Parameter | None:
        """Return the named parameter, or the one that takes any name; None if there is neither."""
        for parameter in self.parameters:
            if parameter.name == name and parameter.variadic != "keyword":
                return parameter
        return next((p for p in self.parameters if p.variadic == "keyword"), None)

    def argument_names(self) -> list[str]:
        """Return the names that a rule can give, in order."""
        return [p.name for p in self.parameters if p.variadic != "keyword"]


_VARIADIC: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "positional", inspect.Parameter.VAR_KEYWORD: "keyword",
}


class Registry:
    """Operations by name. The same name twice is refused, unless it is the same object again.

    :param what: the kind of operations, for messages
    :param read: creates an Operation from a name and an object; raises BadOperation
    """

    def __init__(self, what: str, read: Callable[[str, Any], Operation]) -> None:
        self.what = what
        self._read = read
        self._operations: dict[str, Operation] = {}
        self._objects: dict[str, Any] = {}

    def add(self, name: str, target: Any = None) -> Any:
        """Register ``target``; without one, return a decorator.

        :raises BadOperation: the name is already in use, or the signature is not supported
        """
        if target is None:
            return lambda decorated: self.add(name, decorated)
        if name in self._operations:
            if self._objects[name] is target:
                return target
            raise BadOperation(f"{self.what} {name!r} is registered twice")
        self._operations[name] = self._read(name, target)
        self._objects[name] = target
        return target

    def get(self, name: str) -> Operation:
        """Return the named operation.

        :raises UnknownName: with the nearest valid name
        """
        try:
            return self._operations[name]
        except KeyError:
            raise UnknownName(self.what, nearest(name, self._operations), self.names()) from None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._operations)

    def __iter__(self) -> Iterator[Operation]:
        return (self._operations[name] for name in self.names())

    def __len__(self) -> int:
        return len(self._operations)

    def __contains__(self, name: object) -> bool:
        return name in self._operations


def read_parameters(function: Callable[..., Any], skip: int) -> tuple[Parameter, ...]:
    """Read the parameters of ``function`` except the first ``skip``.

    An annotation ``Annotated[..., Kind]`` or a plain ``str``, ``bool``, ``int``, ``list``, ``dict`` defines the kind.
    """
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        hints = {}
    parameters = []
    for parameter in list(signature.parameters.values())[skip:]:
        variadic = _VARIADIC.get(parameter.kind, "")
        parameters.append(Parameter(
            name=parameter.name, kind=_kind(hints.get(parameter.name)),
            required=parameter.default is parameter.empty and not variadic, variadic=variadic,
            keyword_only=parameter.kind is parameter.KEYWORD_ONLY,
        ))
    return tuple(parameters)


def _kind(hint: Any) -> Kind:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, Kind):
            return extra
    plain = typing.get_origin(hint) or hint
    return kinds.BY_TYPE.get(plain, kinds.ANY) if isinstance(plain, type) else kinds.ANY
