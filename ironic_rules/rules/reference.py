"""The reference of rules, built from the registries: the JSON schema of a rule, and the names, arguments and texts."""

from __future__ import annotations

import inspect
import re
from typing import Any

from ironic_rules.models.documents import JSONObject
from ironic_rules.models.rules import MAX_NODES, MAX_PRIORITY, PHASES, WRITABLE
from ironic_rules.rules import signatures
from ironic_rules.rules.actions import ACTIONS
from ironic_rules.rules.limits import DEFAULT, Limits
from ironic_rules.rules.operators import OPERATORS
from ironic_rules.rules.rule_fields import BOOLEANS, MAX_TEXT
from ironic_rules.rules.signatures import Operation, Parameter, Registry
from ironic_rules.rules.template import CONVERSIONS
from ironic_rules.rules.values import MULTIPLE, ROOTS

UUID_PATTERN = r"\A[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z"
PRIORITY_PATTERN = r"\A(?:\+?0{0,5}[0-9]{1,4}|-0{1,9})\Z"
MAX_NODES_PATTERN = r"\A\+?(?=[0-9]{1,9}\Z)0*[1-9][0-9]*\Z"
#: One line without white space at its ends.
NAME_PATTERN = r"\A[^\s\x00-\x1f\x7f](?:[^\n\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?\Z"
BOOLEAN_PATTERN = rf"\A(?ai:{'|'.join(BOOLEANS)})\Z"


def rule_schema(limits: Limits = DEFAULT) -> JSONObject:
    """Return the schema (draft 2020-12) of a rule; includes the notations that ``from_wire`` accepts.

    ``validate`` is stricter: it also checks templates, expressions and paths. The API reference shows the fields from
    here; ``description`` is its text about a value, in addition to its type and limits.
    """
    text = {"type": ["string", "null"], "maxLength": MAX_TEXT}
    name = {**text, "minLength": 1, "pattern": NAME_PATTERN, "description": "text, one line"}
    flag = {"anyOf": [
        {"type": ["boolean", "null"]},
        {"type": "string", "pattern": BOOLEAN_PATTERN, "description": f"one of {', '.join(BOOLEANS)}"},
    ]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Inspection rule",
        "type": "object",
        "additionalProperties": False,
        "required": ["actions"],
        "properties": {
            "uuid": {"type": ["string", "null"], "pattern": UUID_PATTERN, "description": "a UUID"},
            "name": name,
            "bundle": name,
            "description": text,
            "enabled": flag,
            "priority": {"anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_PRIORITY},
                {"type": "string", "pattern": PRIORITY_PATTERN, "description": "the same in digits"},
            ]},
            "phase": {"enum": list(PHASES)},
            "scope": {**text, "minLength": 1},
            "max_nodes": {"anyOf": [
                {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_NODES},
                {"type": "string", "pattern": MAX_NODES_PATTERN, "description": "the same in at most 9 digits"},
            ]},
            "sensitive": flag,
            "conditions": {
                "type": ["array", "null"], "maxItems": limits.conditions, "items": conditions_schema(limits)},
            "actions": {"type": "array", "minItems": 1, "maxItems": limits.actions, "items": actions_schema(limits)},
        },
    }


def conditions_schema(limits: Limits = DEFAULT) -> JSONObject:
    """Return the schema of one condition."""
    schema = _operation_schema(OPERATORS, limits, inverse=True)
    schema["properties"]["multiple"] = {"enum": [*MULTIPLE, None]}
    return schema


def actions_schema(limits: Limits = DEFAULT) -> JSONObject:
    """Return the schema of one action."""
    return _operation_schema(ACTIONS, limits, inverse=False)


def _operation_schema(registry: Registry, limits: Limits, *, inverse: bool) -> JSONObject:
    def forms(name: str) -> list[str]:
        return [name, f"!{name}", f"! {name}"] if inverse else [name]

    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["op"],
        "properties": {
            "op": {"enum": [form for operation in registry for form in forms(operation.name)]},
            "args": {"type": ["array", "object"]},
            "loop": {"type": ["array", "object", "string", "null"],
                     "maxItems": limits.loop_items, "maxProperties": limits.loop_items},
        },
        "allOf": [
            {
                "if": {"properties": {"op": {"enum": forms(operation.name)}}, "required": ["op"]},
                "then": {"properties": {"args": {"anyOf": [arguments_schema(operation), {"type": "array"}]}}},
            }
            for operation in registry
        ],
    }


def arguments_schema(operation: Operation) -> JSONObject:
    """Return the schema of the arguments of an operator or action, given by name."""
    properties: JSONObject = {}
    required = []
    open_ended = False
    for parameter in operation.parameters:
        if parameter.variadic == "keyword":
            open_ended = True
        elif parameter.variadic == "positional":
            properties[parameter.name] = {"type": ["array", "string"]}
        else:
            properties[parameter.name] = dict(parameter.kind.schema)
        if parameter.required:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": open_ended}


#: The values of kinds of arguments that have only some.
_VALUES: dict[str, list[Any]] = {signatures.LEVEL.name: list(signatures.LOG_LEVELS),
                                 signatures.BOOLEAN.name: [True, False]}
_EXAMPLE = re.compile(r"^\.\. (?:rule|conversion):: (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"^:param (\w+): (.+(?:\n[ \t]+\S.*)*)", re.MULTILINE)


def vocabulary() -> JSONObject:
    """Return the operators, actions and conversions, each with its text and example, and the fields of a rule."""
    return {
        "operators": [_operation_reference(operation) for operation in OPERATORS],
        "actions": [_operation_reference(operation) for operation in ACTIONS],
        "conversions": [_described(name, function.__doc__) for name, function in CONVERSIONS.items()],
        "fields": list(WRITABLE),
        "phases": list(PHASES),
        "multiple": list(MULTIPLE),
        "roots": list(ROOTS),
    }


def _operation_reference(operation: Operation) -> JSONObject:
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
