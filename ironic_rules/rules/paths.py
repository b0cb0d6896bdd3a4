"""Paths into plugin data: dotted (``pci.devices``) or a JSON pointer (``/pci/devices``)."""

from __future__ import annotations

from typing import Any

from ironic_rules.models import documents, secrets
from ironic_rules.models.documents import JSONObject


def parse(path: object) -> tuple[str, ...]:
    """Split a path into keys.

    :raises PointerError: not a string, empty, with an empty part, or with a bad escape
    """
    if not isinstance(path, str) or path in ("", "/"):
        raise documents.PointerError("", "a path is a non-empty string, such as pci.devices or /pci/devices")
    tokens = documents.parse_pointer(path, relative=True) if "/" in path else tuple(path.split("."))
    if "" in tokens:
        raise documents.PointerError(path, "a part of the path is empty")
    return tokens


def write(data: JSONObject, path: str, value: Any) -> None:
    """Set the value at ``path``; missing dicts are created. Other references to parts of ``data`` are unaffected.

    :raises SecretMasked: the value has a mask in the place of a secret
    """
    tokens = parse(path)
    secrets.refuse_masks(value, tokens)
    documents.unshare(data, tokens[:-1])
    documents.put(data, tokens, documents.clone(value), create=True)


def extend(data: JSONObject, path: str, value: Any, unique: bool) -> None:
    """Append to the list at ``path``, which is created if missing.

    :raises SecretMasked: the value has a mask in the place of a secret
    """
    tokens = parse(path)
    secrets.refuse_masks(value, tokens)
    documents.unshare(data, tokens)
    documents.append(data, tokens, documents.clone(value), unique)


def unset(data: JSONObject, path: str) -> None:
    """Remove the value at ``path``; a missing one is not an error."""
    tokens = parse(path)
    try:
        documents.get(data, tokens)
    except documents.PointerError:
        return
    documents.unshare(data, tokens[:-1])
    documents.remove(data, tokens)
