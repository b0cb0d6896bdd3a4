"""Bind the arguments of a rule to a signature, once, when the rule is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironic_rules.models import pointer
from ironic_rules.models.json_values import clone
from ironic_rules.rules import template
from ironic_rules.rules.errors import OperandError
from ironic_rules.rules.kinds import Kind
from ironic_rules.rules.mask import View
from ironic_rules.rules.registry import Operation, Parameter
from ironic_rules.rules.values import Compiled, Const, Getter, Path, Scope, as_getter, compile_value
from ironic_rules.text import nearest


class Bound:
    """Compiled arguments: ``positional`` in order, then those that ``rest`` returns, and ``named`` by keyword."""

    __slots__ = ("literals", "named", "positional", "rest")

    def __init__(self) -> None:
        self.positional: list[Compiled] = []
        self.rest: Getter | None = None
        self.named: dict[str, Compiled] = {}
        #: arguments without templates, by name, as in the rule
        self.literals: dict[str, Any] = {}


def bind(scope: Scope, operation: Operation, args: Any, where: str) -> Bound | None:
    """Bind ``args`` (a list or a dict) to the operation's parameters; if that fails, report problems, return None."""
    before = len(scope.problems)
    if isinstance(args, dict):
        given = _by_name(scope, operation, args, where)
    elif isinstance(args, (list, tuple)):
        given = _by_position(scope, operation, list(args), where)
    else:
        scope.complain(where, "must be a list or an object")
        return None
    missing = [p.name for p in operation.parameters if p.required and p.name not in given]
    if missing:
        scope.complain(where, f"missing: {', '.join(missing)}")
    bound = Bound()
    for parameter in operation.parameters:
        if parameter.name in given:
            _compile(scope, operation, parameter, bound, *given[parameter.name])
    return bound if len(scope.problems) == before else None


_Given = dict[str, tuple[Any, str]]


def _by_name(scope: Scope, operation: Operation, args: dict[Any, Any], where: str) -> _Given:
    given: _Given = {}
    extra: dict[str, Any] = {}
    for name, value in args.items():
        parameter = operation.parameter(name) if isinstance(name, str) else None
        if parameter is None:
            near = nearest(str(name), operation.argument_names())
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(operation.argument_names()) or 'none'}"
            scope.complain(where + pointer.format((str(name),)), f"there is no such argument; {hint}")
        elif parameter.variadic == "keyword":
            extra[name] = value
        else:
            given[name] = value, where + pointer.format((name,))
    for parameter in operation.parameters:
        if parameter.variadic == "keyword" and extra:
            given[parameter.name] = extra, where
    return given


def _by_position(scope: Scope, operation: Operation, args: list[Any], where: str) -> _Given:
    given: _Given = {}
    places = [p for p in operation.parameters if not p.keyword_only and p.variadic != "keyword"]
    for index, parameter in enumerate(places):
        if parameter.variadic == "positional":
            given[parameter.name] = args[index:], where
            return given
        if index < len(args):
            given[parameter.name] = args[index], f"{where}/{index}"
    if len(args) > len(places):
        expected = ", ".join(parameter.name for parameter in places) or "none"
        scope.complain(f"{where}/{len(places)}", f"too many arguments; expected {expected}")
    return given


def _compile(scope: Scope, operation: Operation, parameter: Parameter, bound: Bound, value: Any, where: str) -> None:
    formatted = operation.formatted is None or parameter.name in operation.formatted
    if parameter.variadic == "positional":
        rest = _rest(scope, value, where, formatted)
        if isinstance(rest, list):
            bound.positional.extend(rest)
        else:
            bound.rest = rest
    elif parameter.variadic == "keyword":
        for name, item in value.items():
            place = where + pointer.format((name,))
            inner = operation.formatted is None or name in operation.formatted
            bound.named[name] = compile_value(scope, item, place, formatted=inner)
    else:
        compiled = _convert(scope, parameter.kind, value, where, formatted, bound, parameter.name)
        if parameter.keyword_only:
            bound.named[parameter.name] = compiled
        else:
            _place(bound, operation, parameter, compiled)


def _place(bound: Bound, operation: Operation, parameter: Parameter, compiled: Compiled) -> None:
    before = [p for p in operation.parameters if not p.keyword_only and not p.variadic]
    # After an optional argument that was left out, the following ones are passed by keyword.
    if before.index(parameter) == len(bound.positional):
        bound.positional.append(compiled)
    else:
        bound.named[parameter.name] = compiled


def _rest(scope: Scope, value: Any, where: str, formatted: bool) -> list[Compiled] | Getter:
    """Compile ``*values``: ``[a, b]``, ``[[a, b]]`` and ``{values: [a, b]}`` are equivalent.

    :returns: each value, or, if a single template may return the whole list, a function that returns all values
    """
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], (list, tuple)):
        value, where = value[0], f"{where}/0"
    if isinstance(value, (list, tuple)) and len(value) > 1:
        return [
            compile_value(scope, item, f"{where}/{index}", formatted=formatted) for index, item in enumerate(value)
        ]
    compiled = compile_value(scope, value, where, formatted=formatted)
    if isinstance(compiled, Const):
        if not isinstance(compiled.value, list):
            scope.complain(where, "must be a list, or a template that gives one")
            return []
        return [Const(item) for item in compiled.value]
    if isinstance(value, str) and not isinstance(compiled, Path):
        scope.complain(where, "must be a list, or a template that gives one; text around a template makes it text")
        return []
    get = compiled
    single = isinstance(value, (list, tuple))

    def values(view: View) -> list[Any]:
        found = get(view)
        if single and isinstance(found[0], list):
            return list(found[0])
        if not isinstance(found, list):
            raise OperandError("must be a list")
        return found

    return values


def _convert(scope: Scope, kind: Kind, value: Any, where: str, formatted: bool, bound: Bound,
             name: str) -> Compiled:
    before = len(scope.problems)
    compiled = compile_value(scope, value, where, formatted=formatted, regex=kind.regex)
    if len(scope.problems) > before:
        return compiled
    convert = kind.converter(scope.limits)
    if isinstance(compiled, Const):
        reason = kind.literal_problem(compiled.value, scope.limits)
        if reason is not None:
            scope.complain(where, reason)
            return compiled
        bound.literals[name] = compiled.value
        return Const(convert(compiled.value)) if convert is not None else compiled
    if isinstance(value, str):
        if not isinstance(compiled, Path) and not kind.takes_text:
            scope.complain(where, f"must be {kind.expected}; text around a template makes it text")
        _check_prefix(scope, kind, value, where)
    elif kind.literal is not None and not isinstance(value, kind.literal):
        scope.complain(where, f"must be {kind.expected}")
    if convert is None:
        return compiled
    return _converting(compiled, convert)


def _converting(get: Getter, convert: Callable[[Any], Any]) -> Getter:
    return lambda view: convert(get(view))


def _check_prefix(scope: Scope, kind: Kind, text: str, where: str) -> None:
    first = template.parse(text, kind.regex)[0]
    if kind.prefix is not None:
        try:
            kind.prefix(first if isinstance(first, str) else "", scope.limits)
        except OperandError as exc:
            scope.complain(where, str(exc))


def condition_call(function: Callable[..., bool], bound: Bound,
                   pair: Callable[[Any, Any], bool] | None = None) -> Callable[[View], bool]:
    """Return ``function`` with its arguments filled in from a view; common signatures have specialised closures.

    :param pair: the function to call instead with exactly two arguments
    """
    if bound.named or bound.rest is not None:
        return _general_call(function, bound)
    positional = bound.positional
    if len(positional) == 1:
        get = as_getter(positional[0])
        return lambda view: function(get(view))
    if len(positional) == 2:
        get, second = as_getter(positional[0]), positional[1]
        function = pair or function
        if isinstance(second, Const):
            value = second.value
            return lambda view: function(get(view), value)
        other = as_getter(second)
        return lambda view: function(get(view), other(view))
    return _general_call(function, bound)


def _general_call(function: Callable[..., bool], bound: Bound) -> Callable[[View], bool]:
    arguments = values_of(bound)

    def call(view: View) -> bool:
        positional, named = arguments(view)
        return function(*positional, **named)

    return call


def values_of(bound: Bound) -> Callable[[View], tuple[list[Any], dict[str, Any]]]:
    """Return a function that fills in all arguments: (positional, named)."""
    positional = [as_getter(compiled) for compiled in bound.positional]
    rest = bound.rest
    named = {name: as_getter(compiled) for name, compiled in bound.named.items()}

    def fill(view: View) -> tuple[list[Any], dict[str, Any]]:
        values = [get(view) for get in positional]
        if rest is not None:
            values.extend(rest(view))
        return values, {name: get(view) for name, get in named.items()}

    return fill


def private(arguments: tuple[list[Any], dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """Copy mutable arguments, so that an action can keep them without sharing them with the data or the rule."""
    positional, named = arguments
    return list(map(clone, positional)), {name: clone(value) for name, value in named.items()}
