"""``properties/capabilities``: ``boot_mode:uefi,cpu_vt:true``, or the same as an object."""

from __future__ import annotations

from typing import Any

from ironic_rules.models.documents import JSONObject
from ironic_rules.rules.errors import ActionError


def is_name(name: object) -> bool:
    """Return whether ``name`` is a valid name of a capability: a text without colons, commas and white space."""
    return isinstance(name, str) and name != "" and not any(
        character in ",:" or character.isspace() or not character.isprintable() for character in name)


def get(stored: Any, name: str) -> Any:
    """Return the value of ``name``, None if it is missing.

    :raises ActionError: ``stored`` are not capabilities
    """
    return parse(stored).get(name)


def put(stored: object, name: str, value: object) -> Any:
    """Return the capabilities with ``name`` set; its position is kept, a new one is appended.

    :raises ActionError: the value is invalid, or ``stored`` are not capabilities
    """
    text = text_of(value)
    pairs = parse(stored)
    pairs[name] = text
    return joined(stored, pairs)


def text_of(value: object) -> str:
    """Return the value of a capability as text.

    :raises ActionError: it is invalid
    """
    if isinstance(value, (dict, list)) or value is None:
        raise ActionError("a capability's value is a string, a number, true or false")
    text = str(value)
    if "," in text or not text.isprintable():
        raise ActionError("a capability's value must not contain commas and control characters")
    return text


def remove(stored: object, name: str) -> Any:
    """Return the capabilities without ``name``.

    :raises ActionError: ``stored`` are not capabilities
    """
    pairs = parse(stored)
    pairs.pop(name, None)
    return joined(stored, pairs)


def parse(stored: object) -> JSONObject:
    """Return the capabilities by name, in a dict of the caller's own.

    :raises ActionError: ``stored`` are not capabilities
    """
    if stored is None:
        return {}
    if isinstance(stored, dict):
        return dict(stored)
    if not isinstance(stored, str):
        raise ActionError("the node's capabilities are neither a string nor an object")
    pairs: JSONObject = {}
    for part in filter(None, (part.strip() for part in stored.split(","))):
        key, _, value = part.partition(":")
        pairs[key] = value
    return pairs


def joined(stored: object, pairs: JSONObject) -> Any:
    """Return capabilities in the form that ``stored`` has: an object, or else a text."""
    return pairs if isinstance(stored, dict) else ",".join(f"{key}:{value}" for key, value in pairs.items())
