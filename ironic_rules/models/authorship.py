"""What each author has changed in a draft, read from its journal after the work is done: nothing is noted during it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.models import json_patch, pointer
from ironic_rules.models.draft import _MISSING, NodeDraft, PortDraft
from ironic_rules.models.json_values import JSONObject


def changes(draft: NodeDraft | PortDraft) -> list[tuple[Any, list[JSONObject]]]:
    """Return the authors in the order in which they changed the draft, each with a patch (RFC 6902) of what it changed.

    None is an author, too: who changes a draft without saying who it is.
    """
    values = dict(draft._values)
    #: fields whose dict in ``values`` is a copy
    copied: set[str] = set()
    found: list[tuple[Any, list[JSONObject]]] = []
    #: what an author has changed, as it was when it had ended: fields, and of other fields only the keys, because many
    #: authors may each change little of a large field
    fields: dict[str, Any] = {}
    keys: dict[str, dict[str, Any]] = {}

    def end(author: Any) -> None:
        patch: list[JSONObject] = []
        for field in reversed(fields):
            patch += json_patch.difference(_plain(values[field]), _plain(fields[field]), (field,))
        for field in reversed(keys):
            for key, value in reversed(keys[field].items()):
                before = values[field].get(key, _MISSING)
                if before is not _MISSING and value is not _MISSING:
                    patch += json_patch.difference(before, value, (field, key))
                elif value is not _MISSING:
                    patch.append({"op": "add", "path": pointer.format((field, key)), "value": value})
                elif before is not _MISSING:
                    patch.append({"op": "remove", "path": pointer.format((field, key))})
        if patch:
            found.append((author, patch))
        fields.clear()
        keys.clear()

    for entry in reversed(draft._journal):
        if type(entry) is not tuple:
            continue
        if len(entry) == 1:
            if fields or keys:
                end(entry[0])
            continue
        name, key, old = entry
        if name is None:
            if key not in fields:
                fields[key] = _with(values[key], keys.pop(key, {}))
            values[key] = old
            copied.discard(key)
            continue
        if name not in copied:
            values[name] = dict(values[name])
            copied.add(name)
        field = values[name]
        if name not in fields:
            keys.setdefault(name, {}).setdefault(key, field.get(key, _MISSING))
        if old is _MISSING:
            field.pop(key, None)
        else:
            field[key] = old
    end(None)
    return found[::-1]


def _with(field: Any, keys: Mapping[str, Any]) -> Any:
    """Return a field with other values of some keys."""
    if not keys:
        return field
    return {key: value for key, value in {**field, **keys}.items() if value is not _MISSING}


def overwritten(draft: NodeDraft | PortDraft) -> Iterator[tuple[str, Any]]:
    """Yield keys of the draft with values that they had since its beginning and no longer have."""
    for entry in draft._journal:
        if type(entry) is not tuple or len(entry) == 1:
            continue
        name, key, old = entry
        first = draft._original if name is None else draft._original.get(name)
        if old is not _MISSING and not (isinstance(first, dict) and first.get(key, _MISSING) is old):
            yield key, _plain(old)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set) else value
