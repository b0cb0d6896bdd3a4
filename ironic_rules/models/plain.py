"""Plain JSON-like data (null, booleans, numbers, strings, lists, dicts): copied, compared, appended to."""

from __future__ import annotations

import copy
import re
from typing import Any

from ironic_rules.models import pointer

_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def clone(value: Any) -> Any:
    """Copy JSON-like data; several times faster than ``copy.deepcopy``."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clone(item) for item in value]
    return copy.copy(value) if isinstance(value, set) else value


def same(a: Any, b: Any) -> bool:
    """Compare JSON-like data; unlike ``==``, true is not 1 (their JSON differs)."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and same(item, b[key]) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def append(doc: Any, tokens: tuple[str, ...], value: Any, unique: bool) -> None:
    """Append to the list at ``tokens`` of ``doc`` in place, making it if missing or null.

    :raises PointerError: something else than a list is there
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


def is_uuid(text: object) -> bool:
    """Say whether ``text`` is a UUID in its usual spelling, 8-4-4-4-12 hexadecimal digits."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def is_storable(text: str) -> bool:
    """Say whether every database can store ``text``: no NUL and no lone surrogates."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
