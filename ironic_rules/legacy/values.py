"""Values of actions: templates such as ``{data[memory_mb]}`` at any depth, in the keys of objects too.

They are Python's format strings as far as rules need them: ``data``, and keys and indexes in brackets. A template gives
text as Python prints it; one that is the whole text, and finds a list or an object, keeps that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ironic_rules.models import pointer
from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import Getter, path_getter
from ironic_rules.rules.limits import Limits
from ironic_rules.rules.mask import View
from ironic_rules.rules.values import Compiled, Const, Filled, as_getter
from ironic_rules.text import is_storable, printable

_ROOT = "data"
#: With what a template in a message begins: ironic-inspector had none there, so all other braces are text.
_IN_MESSAGE = "{data["
_UNSUPPORTED = "conversions are not supported: write the template without one, as in {data[memory_mb]}"
Complain = Callable[[str, str], None]


def compile_value(value: Any, where: str, complain: Complain, limits: Limits, *, formatted: bool = True,
                  depth: int = 0) -> Compiled:
    """Compile one JSON value.

    :param complain: called with the JSON pointer and the text of each problem, which make the result unusable
    :param formatted: whether strings are templates
    """
    if isinstance(value, str):
        return _text(value, where, complain, limits, formatted)
    if value is None or isinstance(value, (bool, int)):
        return Const(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            complain(where, "must be a finite number")
        return Const(value)
    if not isinstance(value, (list, dict)):
        complain(where, "must be a JSON value")
        return Const(None)
    if depth >= limits.depth:
        complain(where, f"nested deeper than {limits.depth} levels")
        return Const(None)
    if isinstance(value, list):
        parts = [compile_value(item, f"{where}/{index}", complain, limits, formatted=formatted, depth=depth + 1)
                 for index, item in enumerate(value)]
        if all(isinstance(part, Const) for part in parts):
            return Const([part.value for part in parts if isinstance(part, Const)])
        getters = [as_getter(part) for part in parts]
        return Filled(lambda view: [get(view) for get in getters])
    return _object(value, where, complain, limits, formatted, depth)


def compile_message(text: str, where: str, complain: Complain, limits: Limits) -> Compiled:
    """Compile the message of an action, as :func:`compile_value` does a value."""
    return _text(text, where, complain, limits, True, _IN_MESSAGE)


def message_parts(text: str) -> tuple[str | template.Field, ...]:
    """Return the literal parts and the templates of a valid message."""
    return template.parse(text, begin=_IN_MESSAGE)


def _object(value: dict[Any, Any], where: str, complain: Complain, limits: Limits, formatted: bool,
            depth: int) -> Compiled:
    parts: list[tuple[Compiled, Compiled]] = []
    for key, item in value.items():
        if not isinstance(key, str):
            complain(where, "keys must be strings")
            continue
        place = where + pointer.format((printable(key, 64),))
        parts.append((_text(key, place, complain, limits, formatted),
                      compile_value(item, place, complain, limits, formatted=formatted, depth=depth + 1)))
    if all(isinstance(part, Const) for pair in parts for part in pair):
        return Const({key.value: item.value for key, item in parts
                      if isinstance(key, Const) and isinstance(item, Const)})
    getters = [(as_getter(key), as_getter(item)) for key, item in parts]
    return Filled(lambda view: {_key(get_key(view)): get(view) for get_key, get in getters})


def _key(value: Any) -> str:
    if not isinstance(value, str):
        raise CannotEvaluate("a key of an object would be a list or an object")
    return value


def _text(text: str, where: str, complain: Complain, limits: Limits, formatted: bool, begin: str = "") -> Compiled:
    if len(text) > limits.text:
        complain(where, f"longer than {limits.text} characters")
        return Const("")
    if not is_storable(text):
        complain(where, "must not contain NUL and lone surrogate characters")
        return Const("")
    if not formatted or ("{" not in text and "}" not in text):
        return Const(text)
    try:
        parts = template.parse(text, begin=begin)
        for part in parts:
            if isinstance(part, template.Field):
                _check(part)
    except template.ConversionError as exc:
        complain(where, f"column {exc.column}: {_UNSUPPORTED}")
        return Const("")
    except template.TemplateError as exc:
        complain(where, str(exc))
        return Const("")
    if all(isinstance(part, str) for part in parts):
        return Const("".join(part for part in parts if isinstance(part, str)))
    return Filled(_rendered(parts, limits.result))


def _check(used: template.Field) -> None:
    """:raises TemplateError: the field is not what ironic-inspector has"""
    if used.root != _ROOT:
        raise template.TemplateError(used.column + 1, "the only name is data, as in {data[memory_mb]}")
    if used.conversions:
        raise template.ConversionError(used.column_of(len(used.steps)) - 1, _UNSUPPORTED)
    if used.text != "{" + used.root + "".join(f"[{step}]" for step in used.steps) + "}":
        raise template.TemplateError(used.column_of(0), "keys are written in brackets, as in {data[memory_mb]}")


def _rendered(parts: tuple[str | template.Field, ...], limit: int) -> Getter:
    pieces = [(part, None) if isinstance(part, str) else ("", path_getter(part, True)) for part in parts]
    is_whole = len(pieces) == 1

    def render(view: View) -> Any:
        out = []
        for text, get in pieces:
            value = text if get is None else get(view)
            if is_whole and isinstance(value, (list, dict)):
                return value
            out.append(value if value.__class__ is str else str(value))
        result = "".join(out)
        if len(result) > limit:
            raise CannotEvaluate(f"the text is longer than {limit} characters")
        return result

    return render
