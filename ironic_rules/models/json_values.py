"""Plain JSON-like data (null, booleans, numbers, strings, lists, dicts): copied, compared, appended to."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from ironic_rules.models import pointer
from ironic_rules.text import printable

#: A JSON value, to be read: code that needs to know more of it asks by ``isinstance``.
JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"
#: A JSON object whose keys are defined elsewhere: a schema or a table of fields has checked what the values are.
JSONObject: TypeAlias = dict[str, Any]

_SCALARS = frozenset({str, int, float, bool, type(None)})
#: Levels of lists and objects that orjson can write, and of a path that is shown if there are more.
_DEEPEST = 250
_DEEPEST_SHOWN = 8


def clone(value: Any) -> Any:
    """Copy JSON-like data; several times faster than ``copy.deepcopy``."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clone(item) for item in value]
    return copy.copy(value) if isinstance(value, set) else value


def is_int64(value: int) -> bool:
    """Return whether an integer is one that JSON bodies and inventories can have: of 64 bits, with or without sign."""
    return -(2**63) <= value < 2**64


def same(a: JSON, b: JSON) -> bool:
    """Compare JSON-like data; unlike ``==``, true is not 1 at any depth (their JSON differs)."""
    if a is b:
        return True
    kind, other = a.__class__, b.__class__
    if kind in _SCALARS and other in _SCALARS:
        is_equal: bool = a == b
        return is_equal and (kind is other or bool not in (kind, other))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and same(item, b[key]) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def unstorable(value: object) -> tuple[tuple[str, ...], str] | None:
    """Return where in ``value`` something is that JSON does not have, and what it is; None if there is nothing.

    Keys that are not texts are shown in the path; no value is quoted.
    """
    try:
        orjson.dumps(value)
        # Which orjson writes as null.
        json.dumps(value, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError) as exc:
        return _find_unstorable(value, (), _DEEPEST) or ((), printable(exc))
    return None


def _find_unstorable(value: object, path: tuple[str, ...], levels: int) -> tuple[tuple[str, ...], str] | None:
    if isinstance(value, (dict, list, tuple)):
        if not levels:
            return path[:_DEEPEST_SHOWN], f"is nested deeper than {_DEEPEST} levels"
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            below = (*path, printable(key, 64))
            if isinstance(value, dict) and not isinstance(key, str):
                return below, f"has a key of type {type(key).__name__}"
            if found := _find_unstorable(item, below, levels - 1):
                return found
            if isinstance(key, str) and _has_surrogates(key):
                return below, "has a key with lone surrogate characters"
        return None
    reason = _not_json(value)
    return None if reason is None else (path, reason)


def _not_json(value: object) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a finite number"
    if isinstance(value, str):
        return "has lone surrogate characters" if _has_surrogates(value) else None
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        is_number = isinstance(value, int)
        return "is an integer of more than 64 bits" if is_number else f"is of type {type(value).__name__}"
    return None


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def append(doc: Any, tokens: tuple[str, ...], value: JSON, unique: bool) -> None:
    """Append to the list at ``tokens`` of ``doc`` in place, creating it if missing or null.

    :raises PointerError: the value there is not a list
    """
    try:
        found = pointer.get(doc, tokens)
    except pointer.PointerError:
        found = None
    if found is None:
        pointer.put(doc, tokens, [value], create=True)
    elif not isinstance(found, list):
        raise pointer.PointerError(pointer.format(tokens), "not a list")
    elif not (unique and any(same(value, item) for item in found)):
        found.append(value)
