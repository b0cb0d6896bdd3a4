"""Values of actions: templates such as ``{data[memory_mb]}`` at any depth, in the keys of objects too.

They are compiled as those of inspection rules; the templates are Python's format strings as far as rules need them:
``data``, and keys and indexes in brackets. A template gives text as Python prints it; one that is the whole text, and
finds a list or an object, keeps that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ironic_rules.exceptions import Problem
from ironic_rules.legacy.paths import field_text
from ironic_rules.models import documents
from ironic_rules.rules import template
from ironic_rules.rules.errors import CannotEvaluate
from ironic_rules.rules.getters import View, path_getter
from ironic_rules.rules.limits import Limits
from ironic_rules.rules.values import Compiled, Const, Filled, Scope, compile_value
from ironic_rules.text import printable

_ROOT = "data"
#: With what a template in a message begins: ironic-inspector had none there, so all other braces are text.
IN_MESSAGE = "{data["
_UNSUPPORTED = "conversions are not supported: write the template without one, as in {data[memory_mb]}"
#: Maximum number of problems that are reported.
MAX_PROBLEMS = 100


@dataclass(slots=True)
class LegacyScope(Scope):
    """The context of the values of a legacy rule; collects the problems of all of the rule.

    :ivar begin: with what each template begins; all other braces are text
    """

    begin: str = ""

    def complain(self, where: str, text: str) -> None:
        """Add a problem, unless there are too many."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(where, text))

    def compile_key(self, key: Any, where: str, *, formatted: bool) -> tuple[str, Compiled]:
        """Return the place of a key in the object at ``where``, and the compiled key, which may have templates."""
        place = where + documents.format_pointer((printable(key, 64),))
        compiled = compile_value(self, key, place, formatted=formatted)
        if isinstance(compiled, Const):
            return place, compiled
        get = compiled.get
        return place, Filled(lambda view: _key(get(view)))

    def compile_template(self, text: str, where: str, *, regex: bool) -> Compiled:
        """Compile a text with braces."""
        try:
            parts = template.parse(text, begin=self.begin)
            fields = [part for part in parts if isinstance(part, template.Field)]
            for used in fields:
                _check(used)
        except template.ConversionError as exc:
            self.complain(where, f"column {exc.column}: {_UNSUPPORTED}")
            return Const("")
        except template.TemplateError as exc:
            self.complain(where, str(exc))
            return Const("")
        self.fields += fields
        if not fields:
            return Const("".join(part for part in parts if isinstance(part, str)))
        return _rendered(parts, self.limits.result)


def scope_of(limits: Limits) -> LegacyScope:
    """Return the context of a legacy rule without problems so far."""
    return LegacyScope((_ROOT,), early=False, strict=True, problems=[], limits=limits)


def compile_message(scope: LegacyScope, text: str, where: str) -> Compiled:
    """Compile the message of an action, as :func:`rules.values.compile_value` does a value."""
    return compile_value(replace(scope, begin=IN_MESSAGE), text, where)


def message_parts(text: str) -> tuple[str | template.Field, ...]:
    """Return the literal parts and the templates of a valid message."""
    return template.parse(text, begin=IN_MESSAGE)


def _key(value: Any) -> str:
    if not isinstance(value, str):
        raise CannotEvaluate("a key of an object would be a list or an object")
    return value


def _check(used: template.Field) -> None:
    """:raises TemplateError: the field is not what ironic-inspector has"""
    if used.root != _ROOT:
        raise template.TemplateError(used.column + 1, "the only name is data, as in {data[memory_mb]}")
    if used.conversions:
        raise template.ConversionError(used.column_of(len(used.steps)) - 1, _UNSUPPORTED)
    if used.text != field_text(used.root, used.steps):
        raise template.TemplateError(used.column_of(0), "keys are written in brackets, as in {data[memory_mb]}")


def _rendered(parts: tuple[str | template.Field, ...], limit: int) -> Compiled:
    pieces = [part if isinstance(part, str) else path_getter(part, True) for part in parts]

    def render(view: View) -> Any:
        values = [piece if isinstance(piece, str) else piece(view) for piece in pieces]
        if len(values) == 1 and isinstance(values[0], (list, dict)):
            return values[0]
        result = "".join(map(str, values))
        if len(result) > limit:
            raise CannotEvaluate(f"the text is longer than {limit} characters")
        return result

    first = parts[0]
    return Filled(render, first if len(parts) == 1 and isinstance(first, template.Field) else None)
