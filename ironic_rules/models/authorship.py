"""What each author has changed in a draft, read from its journal after the work is done: nothing is noted during it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironic_rules.models import json_patch
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
    #: the fields that an author has changed, as they were when it had ended
    after: dict[str, Any] = {}

    def end(author: Any) -> None:
        if after:
            before = {field: _plain(values[field]) for field in reversed(after)}
            if patch := json_patch.difference(before, {field: _plain(after[field]) for field in before}):
                found.append((author, patch))
            after.clear()

    for entry in reversed(draft._journal):
        if type(entry) is not tuple:
            continue
        if len(entry) == 1:
            end(entry[0])
            continue
        name, key, old = entry
        field = key if name is None else name
        if field not in after:
            after[field] = dict(values[field]) if name is not None else values[field]
        if name is None:
            values[field] = old
            copied.discard(field)
        else:
            if field not in copied:
                values[field] = dict(values[field])
                copied.add(field)
            if old is _MISSING:
                values[field].pop(key, None)
            else:
                values[field][key] = old
    end(None)
    return found[::-1]


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
