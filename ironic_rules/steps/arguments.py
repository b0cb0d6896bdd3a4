"""Validation of a step's arguments: their names, and the JSON schemas of their values, which are part of offers."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

from ironic_rules.models.documents import JSONObject

#: The location below the value, and the problem there. Never contains the value: it may be a secret.
Wrong = tuple[tuple[str, ...], str]

#: The problem of an argument that is missing.
REQUIRED = "the step requires this argument"

#: Schemas that many steps need.
BOOLEAN = {"description": "true or false", "type": "boolean"}
TEXT = {"description": "a text of one or more characters", "type": "string", "minLength": 1}

# 100.0 is not an integer here, because it would be sent to a BMC unchanged.
_TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda checker, value: isinstance(value, int) and not isinstance(value, bool))
_VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=_TYPES)
_FORMATS = jsonschema.FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(value: Any) -> bool:
    return not isinstance(value, str) or datetime.datetime.fromisoformat(value).tzinfo is not None


def one_of(values: Iterable[str]) -> JSONObject:
    """Return the schema of a text that is one of ``values``."""
    known = list(values)
    return {"description": f"one of {', '.join(known)}", "enum": known}


def check_schema(schema: Mapping[str, Any]) -> None:
    """Check that ``schema`` is a JSON schema.

    :raises TypeError: it is not
    """
    try:
        _check_text(json.dumps(schema, sort_keys=True))
    except jsonschema.SchemaError as exc:
        raise TypeError(f"argsinfo has an invalid schema: {exc.message}") from exc


# The steps of the interfaces have few different schemas, and a check takes 2 ms of a process's start.
@functools.cache
def _check_text(schema: str) -> None:
    _VALIDATOR.check_schema(json.loads(schema))


def problems(schema: Mapping[str, Any], value: Any) -> list[Wrong]:
    """Return the problems of ``value``, sorted by location.

    A schema's ``description`` completes "must be …".
    """
    validator = _validator(json.dumps(schema, sort_keys=True))
    found = {wrong for error in validator.iter_errors(value) for wrong in _problems(error)}
    return sorted(found)


def wrong_arguments(argsinfo: Mapping[str, Mapping[str, Any]], args: Mapping[str, Any]) -> list[Wrong]:
    """Return location and text of each argument that the step does not have, that is missing or has a wrong value."""
    wrong: list[Wrong] = [((name,), "the step has no such argument") for name in args if name not in argsinfo]
    for name, info in argsinfo.items():
        if name not in args:
            wrong += [((name,), REQUIRED)] * info["required"]
        elif "schema" in info:
            wrong += [((name, *place), text) for place, text in problems(info["schema"], args[name])]
    return wrong


@functools.lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    found: Validator = _VALIDATOR(json.loads(schema), format_checker=_FORMATS)
    return found


def _problems(error: jsonschema.ValidationError) -> Iterator[Wrong]:
    place = tuple(map(str, error.absolute_path))
    schema: Any = error.schema
    if error.validator == "required":
        yield from (((*place, name), "is required") for name in schema["required"] if name not in error.instance)
    elif error.validator == "additionalProperties":
        known = schema.get("properties", {})
        yield from (((*place, name), f"is not one of {', '.join(sorted(known))}")
                    for name in error.instance if name not in known)
    else:
        yield place, f"must be {schema['description']}" if "description" in schema else "is not accepted by the step"
