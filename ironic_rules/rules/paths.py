"""Paths into plugin data: dotted (``pci.devices``) or a JSON pointer (``/pci/devices``)."""

from __future__ import annotations

from typing import Any

from ironic_rules.models import json_values, pointer, secrets


def parse(path: object) -> tuple[str, ...]:
    """Split a path into keys.

    :raises PointerError: not a string, empty, with an empty part, or with a bad escape
    """
    if not isinstance(path, str) or path in ("", "/"):
        raise pointer.PointerError("", "a path is a non-empty string, such as pci.devices or /pci/devices")
    tokens = pointer.parse(path, relative=True) if "/" in path else tuple(path.split("."))
    if "" in tokens:
        raise pointer.PointerError(path, "a part of the path is empty")
    return tokens


def write(data: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at ``path``; missing dicts are created. Other references to parts of ``data`` are unaffected.

    :raises SecretMasked: the value has a mask in the place of a secret
    """
    tokens = parse(path)
    secrets.refuse_masks(value, tokens)
    pointer.unshare(data, tokens[:-1])
    pointer.put(data, tokens, json_values.clone(value), create=True)


def extend(data: dict[str, Any], path: str, value: Any, unique: bool) -> None:
    """Append to the list at ``path``, which is created if missing.

    :raises SecretMasked: the value has a mask in the place of a secret
    """
    tokens = parse(path)
    secrets.refuse_masks(value, tokens)
    pointer.unshare(data, tokens)
    json_values.append(data, tokens, json_values.clone(value), unique)


def unset(data: dict[str, Any], path: str) -> None:
    """Remove the value at ``path``; a missing one is not an error."""
    tokens = parse(path)
    try:
        pointer.get(data, tokens)
    except pointer.PointerError:
        return
    pointer.unshare(data, tokens[:-1])
    pointer.remove(data, tokens)
