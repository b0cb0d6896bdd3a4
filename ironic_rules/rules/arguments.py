"""Bind the arguments of a rule to a signature, once, when the rule is compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ironic_rules.models import documents, facts
from ironic_rules.models.documents import JSONObject, clone
from ironic_rules.rules import template, values
from ironic_rules.rules.errors import Absent, CannotEvaluate, OperandError
from ironic_rules.rules.getters import FACT, PREVIOUS_FACT, Getter, View, message_getter
from ironic_rules.rules.regex import Pattern
from ironic_rules.rules.signatures import Kind, Operation, Parameter
from ironic_rules.rules.template import ROOT_GROUPS
from ironic_rules.rules.values import Compiled, Const, Filled, Scope, as_getter, compile_value
from ironic_rules.text import nearest

_FACT = re.compile(facts.NAME)


class Bound:
    """Compiled arguments: ``positional`` in order, then those that ``rest`` returns, and ``named`` by keyword."""

    __slots__ = ("absent", "literals", "named", "positional", "rest")

    def __init__(self, absent: bool | None = None) -> None:
        #: what the operation gives if a value is missing; None: it is called with null
        self.absent = absent
        self.positional: list[Compiled] = []
        self.rest: Getter | None = None
        self.named: dict[str, Compiled] = {}
        #: arguments without templates, by name, as in the rule
        self.literals: JSONObject = {}


def bind(scope: Scope, operation: Operation, args: object, where: str) -> Bound | None:
    """Bind ``args`` (a list or a dict) to the operation's parameters; if that fails, report problems, return None."""
    before = len(scope.problems)
    if isinstance(args, dict):
        arguments = _by_name(scope, operation, args, where)
    elif isinstance(args, (list, tuple)):
        arguments = _by_position(scope, operation, list(args), where)
        if scope.warnings is not None and args:
            scope.warn(where, f"Ironic wants arguments by name since August 2026: {_names(operation, arguments)}")
    else:
        scope.complain(where, "must be a list or an object")
        return None
    missing = [p.name for p in operation.parameters if p.required and p.name not in arguments]
    if missing:
        scope.complain(where, f"missing: {', '.join(missing)}")
    bound = Bound(True if _names_itself(operation, args) else operation.absent)
    for parameter in operation.parameters:
        if parameter.name in arguments:
            # Single items of a list to search may be missing.
            scope.absent = bound.absent is not None and parameter is operation.parameters[0]
            _compile(scope, operation, parameter, bound, *arguments[parameter.name], by_name=isinstance(args, dict))
    return bound if len(scope.problems) == before else None


_Given = dict[str, tuple[Any, str]]
#: Characters of a template that a regular expression may name.
_LONGEST_NAME = 256


def _names_itself(operation: Operation, args: object) -> bool:
    """Return whether a condition compares a template with a regular expression that is the text of the template.

    Rules for Ironic test so whether a value is missing: there, a template that cannot be filled in stays as it is.
    """
    if len(operation.parameters) != 2 or not operation.parameters[1].kind.regex:
        return False
    value, regex = ((args.get("value"), args.get("regex")) if isinstance(args, dict) else
                    args if isinstance(args, list) and len(args) == 2 else (None, None))
    if not isinstance(value, str) or not isinstance(regex, str) or len(value) > _LONGEST_NAME:
        return False
    return "{" in value and re.sub(r"\\(.)", r"\1", regex) == value


def _by_name(scope: Scope, operation: Operation, args: dict[Any, Any], where: str) -> _Given:
    arguments: _Given = {}
    extra: JSONObject = {}
    for name, value in args.items():
        parameter = operation.parameter(name) if isinstance(name, str) else None
        if parameter is None:
            near = nearest(str(name), operation.argument_names())
            hint = f"did you mean {near!r}?" if near else f"known: {', '.join(operation.argument_names()) or 'none'}"
            scope.complain(where + documents.format_pointer((str(name),)), f"there is no such argument; {hint}")
        elif parameter.variadic == "keyword":
            extra[name] = value
        else:
            arguments[name] = value, where + documents.format_pointer((name,))
    for parameter in operation.parameters:
        if parameter.variadic == "keyword" and extra:
            arguments[parameter.name] = extra, where
    return arguments


def _by_position(scope: Scope, operation: Operation, args: list[Any], where: str) -> _Given:
    arguments: _Given = {}
    places = [p for p in operation.parameters if not p.keyword_only and p.variadic != "keyword"]
    for index, parameter in enumerate(places):
        if parameter.variadic == "positional":
            arguments[parameter.name] = args[index:], where
            return arguments
        if index < len(args):
            arguments[parameter.name] = args[index], f"{where}/{index}"
    if len(args) > len(places):
        expected = ", ".join(parameter.name for parameter in places) or "none"
        scope.complain(f"{where}/{len(places)}", f"too many arguments; expected {expected}")
    return arguments


def _names(operation: Operation, arguments: _Given) -> str:
    """Return how arguments are written by name, without their values."""
    forms = (f'"{parameter.name}": {"[...]" if parameter.variadic else "..."}'
             for parameter in operation.parameters if parameter.name in arguments)
    return f"{{{', '.join(forms)}}}"


def _compile(scope: Scope, operation: Operation, parameter: Parameter, bound: Bound, value: Any, where: str, *,
             by_name: bool) -> None:
    formatted = operation.formatted is None or parameter.name in operation.formatted
    if parameter.variadic == "positional":
        rest = _rest(scope, parameter, value, where, formatted, by_name)
        if isinstance(rest, list):
            bound.positional.extend(rest)
        else:
            bound.rest = rest
    elif parameter.variadic == "keyword":
        for name, item in value.items():
            place = where + documents.format_pointer((name,))
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


def _rest(scope: Scope, parameter: Parameter, value: Any, where: str, formatted: bool,
          by_name: bool) -> list[Compiled] | Getter:
    """Compile ``*values``: ``[a, b]``, ``[[a, b]]`` and ``{values: [a, b]}`` are equivalent.

    The values are spread once, whether a rule or a template lists them; a value that is itself a list is not.

    :param by_name: the values are given as ``{values: ..}``
    :returns: each value, or, if a single template may return the whole list, a function that returns all values
    """
    alone = not by_name and len(value) == 1
    if alone:
        value, where = value[0], f"{where}/0"
    if isinstance(value, (list, tuple)):
        if parameter.required and not value:
            scope.complain(where, "must have at least one value")
        return [
            compile_value(scope, item, f"{where}/{index}", formatted=formatted) for index, item in enumerate(value)]
    compiled = compile_value(scope, value, where, formatted=formatted)
    if isinstance(compiled, Filled) and compiled.path is not None:
        return _spread(compiled.get, parameter, alone)
    if alone:
        return [compiled]
    reason = "" if isinstance(compiled, Const) else f"; {compiled.why}"
    scope.complain(where, f"must be a list, or a template that gives one{reason}")
    return []


def _spread(get: Getter, parameter: Parameter, alone: bool) -> Getter:
    """Return a function that returns the values that a template lists.

    :param alone: the template is the only argument, which may also be the only value
    """
    required = parameter.required

    def values(view: View) -> list[Any]:
        items = get(view)
        if not isinstance(items, list):
            if alone:
                return [items]
            raise OperandError("must be a list")
        if required and not items:
            raise OperandError("there is no value: the list is empty")
        return items

    return values


def _convert(scope: Scope, kind: Kind, value: object, where: str, formatted: bool, bound: Bound, name: str) -> Compiled:
    if kind.names_fact:
        return _fact(scope, kind, value, where)
    before = len(scope.problems)
    compiled = compile_value(scope, value, where, formatted=formatted, regex=kind.regex)
    if len(scope.problems) > before:
        return compiled
    if scope.warnings is not None and kind.cautions is not None and isinstance(value, str):
        for text in kind.cautions(_without_templates(kind, value) if formatted else value):
            scope.warn(where, text)
    convert = kind.converter(scope.limits)
    if isinstance(compiled, Const):
        reason = kind.literal_problem(compiled.value, scope.limits)
        if reason is not None:
            caution = kind.tolerated(compiled.value) if kind.tolerated is not None else None
            if caution is None or convert is None:
                scope.complain(where, reason)
                return compiled
            scope.warn(where, caution)
            return _converting(as_getter(compiled), convert)
        bound.literals[name] = compiled.value
        return Const(convert(compiled.value)) if convert is not None else compiled
    if isinstance(value, str):
        if compiled.gives is not None and not kind.takes(compiled.gives):
            scope.complain(where, f"must be {kind.expected}; {compiled.why}")
        _check_prefix(scope, kind, value, where)
        if kind.for_people:
            return Filled(message_getter(template.parse(value), scope.limits.result))
    elif kind.literal is not None and not isinstance(value, kind.literal):
        scope.complain(where, f"must be {kind.expected}")
    if convert is None:
        return compiled
    if kind.otherwise is not None:
        return _converting_or(kind.otherwise, compiled.get, convert)
    return _converting(compiled.get, convert)


def _fact(scope: Scope, kind: Kind, value: object, where: str) -> Compiled:
    if not isinstance(value, str) or _FACT.fullmatch(value) is None:
        scope.complain(where, f"must be {kind.expected}, without templates")
        return Const("")
    if FACT not in scope.names:
        scope.complain(where, "facts are not available here")
    elif reason := values.fact_problem(scope, value):
        scope.complain(where, reason)
    # As if templates had it: it depends on what rules change.
    scope.fields += [template.Field(root, (value,), "", 1) for root in (FACT, PREVIOUS_FACT)]
    return values.compile_fact(value)


def _without_templates(kind: Kind, text: str) -> str:
    """Return a text of the same length with letters instead of its templates."""
    for part in template.parse(text, kind.regex):
        if isinstance(part, template.Field):
            at = part.column - 1
            text = text[:at] + "x" * len(part.text) + text[at + len(part.text):]
    return text


def _converting(get: Getter, convert: Callable[[Any], Any]) -> Filled:
    return Filled(lambda view: convert(get(view)))


def _converting_or(otherwise: str, get: Getter, convert: Callable[[Any], Any]) -> Filled:
    def converted(view: View) -> object:
        try:
            return convert(get(view))
        except CannotEvaluate:
            return otherwise

    return Filled(converted)


def _check_prefix(scope: Scope, kind: Kind, text: str, where: str) -> None:
    first = template.parse(text, kind.regex)[0]
    if kind.prefix is not None:
        try:
            kind.prefix(first if isinstance(first, str) else "", scope.limits)
        except OperandError as exc:
            scope.complain(where, str(exc))


def condition_call(function: Callable[..., bool], bound: Bound,
                   pair: Callable[[Any, Any], bool] | None = None) -> Callable[[View], bool]:
    """Return ``function`` with its arguments filled in from a view; common signatures have specialized closures.

    :param pair: the comparison of each value with the next one, if that is what ``function`` does
    """
    call, absent = _condition_call(function, bound, pair), bound.absent
    if absent is None or not _is_filled(bound):
        return call

    def check(view: View) -> bool:
        try:
            return call(view)
        except Absent:
            return absent

    return check


def _is_filled(bound: Bound) -> bool:
    return bound.rest is not None or any(isinstance(argument, Filled) for argument in bound.positional)


def _condition_call(function: Callable[..., bool], bound: Bound,
                    pair: Callable[[Any, Any], bool] | None = None) -> Callable[[View], bool]:
    if pair is not None and bound.rest is None and all(isinstance(value, Const) for value in bound.named.values()):
        return _pairwise_call(pair, bound)
    if bound.named or bound.rest is not None:
        return _general_call(function, bound)
    positional = bound.positional
    if len(positional) == 1:
        get = as_getter(positional[0])
        return lambda view: function(get(view))
    if len(positional) == 2:
        return _two_values_call(function, *positional)
    return _general_call(function, bound)


def _two_values_call(function: Callable[[Any, Any], bool], first: Compiled, second: Compiled) -> Callable[[View], bool]:
    get = as_getter(first)
    if isinstance(second, Const):
        value = second.value
        return lambda view: function(get(view), value)
    other = as_getter(second)
    return lambda view: function(get(view), other(view))


def _pairwise_call(compare: Callable[[Any, Any], bool], bound: Bound) -> Callable[[View], bool]:
    """Return what calling the operator would: all values are read, even if the first two decide."""
    values = bound.positional
    if any(isinstance(flag, Const) and flag.value for flag in bound.named.values()):
        values = [_as_text(value) for value in values]
    if len(values) == 2:
        return _two_values_call(compare, *values)
    if len(values) == 3:
        return _three_values_call(compare, *map(as_getter, values))
    first, *rest = [as_getter(value) for value in values]

    def call(view: View) -> bool:
        before, holds = first(view), True
        for get in rest:
            value = get(view)
            holds = holds and compare(before, value)
            before = value
        return holds

    return call


def _three_values_call(compare: Callable[[Any, Any], bool], first: Getter, second: Getter,
                       third: Getter) -> Callable[[View], bool]:
    # A range is written so, and tested without a loop.
    def call(view: View) -> bool:
        low, value, high = first(view), second(view), third(view)
        return compare(low, value) and compare(value, high)

    return call


def _as_text(value: Compiled) -> Compiled:
    if isinstance(value, Const):
        return Const(str(value.value))
    get = value.get
    return Filled(lambda view: str(get(view)))


#: Returns the named groups of a match of an expression in a value, None if there is none.
Capture = Callable[[Any, Pattern], dict[str, str | None] | None]


def capturing_call(groups_of: Capture | None, bound: Bound) -> tuple[tuple[str, ...], Callable[[View], bool]] | None:
    """Return what :func:`condition_call` does, which also stores the named groups of a match in the view.

    All groups of the expression are stored, None for those that took no part in the match, so that none is left from
    another rule.

    :param groups_of: of an operator that has groups
    :returns: the groups' names and the function; None if there are no such groups, or if only the data determine them
    """
    regex = bound.positional[1] if groups_of else None
    if groups_of is None or not isinstance(regex, Const) or not regex.value.groups:
        return None
    pattern, get = regex.value, as_getter(bound.positional[0])

    def call(view: View) -> bool:
        groups = groups_of(get(view), pattern)
        if groups is None:
            return False
        view.setdefault(ROOT_GROUPS, {}).update(groups)
        return True

    return pattern.groups, call


def _general_call(function: Callable[..., bool], bound: Bound) -> Callable[[View], bool]:
    arguments = values_of(bound)

    def call(view: View) -> bool:
        positional, named = arguments(view)
        return function(*positional, **named)

    return call


def values_of(bound: Bound) -> Callable[[View], tuple[list[Any], JSONObject]]:
    """Return a function that fills in all arguments: (positional, named)."""
    positional = [as_getter(compiled) for compiled in bound.positional]
    rest = bound.rest
    named = {name: as_getter(compiled) for name, compiled in bound.named.items()}

    def fill(view: View) -> tuple[list[Any], JSONObject]:
        values = [get(view) for get in positional]
        if rest is not None:
            values.extend(rest(view))
        return values, {name: get(view) for name, get in named.items()}

    return fill


def private(arguments: tuple[list[Any], JSONObject]) -> tuple[list[Any], JSONObject]:
    """Copy mutable arguments, so that an action can keep them without sharing them with the data or the rule."""
    positional, named = arguments
    return list(map(clone, positional)), {name: clone(value) for name, value in named.items()}
