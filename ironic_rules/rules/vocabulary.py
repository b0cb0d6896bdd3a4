"""What a rule can be written with, for those who help its author: names, arguments and texts, from the registries."""

from __future__ import annotations

import inspect
import re
from typing import Any

from ironic_rules.models.inspection_rules import PHASES, WRITABLE
from ironic_rules.models.json_values import JSONObject
from ironic_rules.rules import kinds
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.conversions import CONVERSIONS
from ironic_rules.rules.loop import MULTIPLE
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.registry import Operation, Parameter
from ironic_rules.rules.values import ROOTS

#: The values of kinds of arguments that have only some.
_VALUES: dict[str, list[Any]] = {kinds.LEVEL.name: list(kinds.LOG_LEVELS), kinds.BOOLEAN.name: [True, False]}
_EXAMPLE = re.compile(r"^\.\. (?:rule|conversion):: (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"^:param (\w+): (.+(?:\n[ \t]+\S.*)*)", re.MULTILINE)


def vocabulary() -> JSONObject:
    """Return the operators, actions and conversions, each with its text and example, and the fields of a rule."""
    return {
        "operators": [_operation(operation) for operation in OPERATORS],
        "actions": [_operation(operation) for operation in ACTIONS],
        "conversions": [_described(name, function.__doc__) for name, function in CONVERSIONS.items()],
        "fields": list(WRITABLE),
        "phases": list(PHASES),
        "multiple": list(MULTIPLE),
        "roots": list(ROOTS),
    }


def _operation(operation: Operation) -> JSONObject:
    texts = {name: _line(text) for name, text in _PARAMETER.findall(inspect.cleandoc(operation.doc))}
    return _described(operation.name, operation.doc) | {
        "arguments": [_argument(parameter, texts.get(parameter.name)) for parameter in operation.parameters
                      if parameter.variadic != "keyword"]}


def _argument(parameter: Parameter, text: str | None) -> JSONObject:
    return {"name": parameter.name, "required": parameter.required, "is_list": parameter.variadic == "positional",
            "text": text, "values": _VALUES.get(parameter.kind.name)}


def _described(name: str, doc: str | None) -> JSONObject:
    doc = inspect.cleandoc(doc or "")
    example = _EXAMPLE.search(doc)
    return {"name": name, "text": _line(doc.partition("\n\n")[0]), "example": example[1] if example else None}


def _line(text: str) -> str:
    return " ".join(text.split()).replace("``", "")
