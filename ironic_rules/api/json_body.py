"""Request bodies as JSON: limited in size, and checked more strictly than parsers do.

orjson refuses malformed text, NaN, infinities and invalid UTF-8. This module also refuses what orjson accepts: deep
nesting, duplicate keys, integers beyond 64 bits (orjson makes floats of them), NUL characters, and very many values.
About 0.2 ms for the 15 KB of a typical inventory.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from ironic_rules.exceptions import Invalid

#: Maximum number of commas and brackets in a body; a list of as many empty lists takes 100 times its size in memory.
MAX_VALUES = 500_000
_KEY = re.compile(rb'"[ \t\n\r]*:')
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"[ \t\n\r]*+(:?)')
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_INT64 = range(-(2**63), 2**64)
_LARGE = float(2**63)
_LOOKED_AT = frozenset({dict, list, float})


def parse(raw: bytes, max_depth: int, *, allow_nul: bool = False) -> Any:
    """Return the JSON value in ``raw``; None if it is empty.

    :param max_depth: maximum number of levels of lists and objects
    :param allow_nul: whether strings may contain ``\\u0000`` (firmware texts do; database columns cannot)
    :raises Invalid: 400, with the position or the reason
    """
    if not raw:
        return None
    # Separators in strings are counted too, which is fast; a body with too many is counted again without its strings.
    if _separators(raw) > MAX_VALUES and _separators(_TEXT.sub(b"", raw)) > MAX_VALUES:
        raise Invalid(f"The body has more than {MAX_VALUES} values.")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith("depth limit"):
            raise Invalid(_too_deep(max_depth)) from error
        raise Invalid(f"The body is not valid JSON: {error}.") from error
    keys, levels, has_large = _measure(value, max_depth)
    if levels > max_depth:
        raise Invalid(_too_deep(max_depth))
    # More places that look like the end of a key than keys: a string that begins with a colon, or duplicates.
    if len(_KEY.findall(raw)) != keys and _STRING.findall(raw).count(b":") != keys:
        raise Invalid("The body has an object with duplicate keys.")
    if has_large:
        json.loads(raw, parse_int=_int64)
    if not allow_nul and b"\\u0000" in raw and _has_nul(value):
        raise Invalid("The body contains a NUL character.")
    return value


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def depth(value: Any, most: int) -> int:
    """Return how many levels of lists and objects ``value`` has; ``most + 1`` if there are more."""
    return _measure(value, most)[1]


def _too_deep(max_depth: int) -> str:
    return f"The body is nested deeper than {max_depth} levels."


def _measure(value: Any, max_depth: int) -> tuple[int, int, bool]:
    """Return the number of object keys in ``value``, its depth, and whether a float in it may be a large integer.

    Stops one level below ``max_depth``.
    """
    keys = levels = 0
    has_large = False
    level: list[Any] = [value] if type(value) in _LOOKED_AT else []
    while level and levels <= max_depth:
        below: list[Any] = []
        containers = 0
        for item in level:
            if type(item) is float:
                has_large |= abs(item) >= _LARGE
                continue
            containers += 1
            items = item
            if type(item) is dict:
                keys += len(item)
                items = item.values()
            below += [child for child in items if type(child) in _LOOKED_AT]
        levels += bool(containers)
        level = below
    return keys, levels, has_large


def _int64(digits: str) -> None:
    if len(digits) > 20 or int(digits) not in _INT64:
        raise Invalid("The body has an integer beyond 64 bits.")


def _has_nul(value: Any) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "\0" in item:
                return True
        elif isinstance(item, dict):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False
