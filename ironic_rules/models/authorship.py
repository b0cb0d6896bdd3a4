"""What each author has changed in a draft, read from its journal after the work is done: nothing is noted during it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.models import json_patch, pointer
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.journal import MISSING, Change, Checkpoint, FieldChange
from ironic_rules.models.json_values import JSON, JSONObject


def changes(draft: NodeDraft | PortDraft) -> list[tuple[Any, list[JSONObject]]]:
    """Return the authors in the order in which they changed the draft, each with a patch (RFC 6902) of what it changed.

    Hooks, which change drafts without saying who they are, are left out.
    """
    journal = draft.journal.entries
    first = next((at for at, entry in enumerate(journal)
                  if isinstance(entry, Checkpoint) and entry.author is not None), None)
    # Most drafts of an inspection are ports that no rule has changed.
    if first is None or not any(isinstance(entry, Change) for entry in itertools.islice(journal, first, None)):
        return []
    undone = _Undone(dict(draft._values))
    found: list[tuple[Any, list[JSONObject]]] = []
    #: what the author whose checkpoint comes next has changed, last change first
    changed: list[Change] = []
    for entry in itertools.islice(reversed(journal), len(journal) - first):
        if isinstance(entry, Change):
            changed.append(entry)
        elif changed and isinstance(entry, Checkpoint):
            if entry.author is None:
                undone.skip(changed)
            elif patch := undone.one(changed[0]) if len(changed) == 1 else undone.many(changed):
                found.append((entry.author, patch))
            changed.clear()
    return found[::-1]


class _Undone:
    """The values of a draft while its changes are undone, the last one first."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        #: fields whose dict in ``values`` is a copy
        self._copied: set[str] = set()

    def skip(self, changed: list[Change]) -> None:
        """Undo changes without a patch, the last one first."""
        for change in changed:
            change.undo(self._values, self._copied)

    def one(self, change: Change) -> list[JSONObject]:
        """Undo the only change of an author, as that of most rules; return its patch."""
        new = self._undo(change)
        if isinstance(change, FieldChange):
            return _of_field(change.name, change.old, new)
        return _of_key(change.name, change.key, change.old, new)

    def many(self, changed: list[Change]) -> list[JSONObject]:
        """Undo the changes of an author, the last one first; return their patch."""
        #: what the author has changed, as it was when it had ended: fields, and of other fields only the keys, because
        #: many authors may each change little of a large field
        fields: dict[str, Any] = {}
        keys: dict[str, JSONObject] = {}
        for change in changed:
            name, new = change.name, self._undo(change)
            if name in fields:
                continue
            if isinstance(change, FieldChange):
                fields[name] = _with(new, keys.pop(name, {}))
            else:
                keys.setdefault(name, {}).setdefault(change.key, new)
        patch: list[JSONObject] = []
        for field in reversed(fields):
            patch += _of_field(field, self._values.get(field, MISSING), fields[field])
        for field in reversed(keys):
            for key, new in reversed(keys[field].items()):
                patch += _of_key(field, key, self._values[field].get(key, MISSING), new)
        return patch

    def _undo(self, change: Change) -> Any:
        """Undo a change; return the value that it has left."""
        new = (self._values[change.name] if isinstance(change, FieldChange) else
               self._values[change.name].get(change.key, MISSING))
        change.undo(self._values, self._copied)
        return new


def _of_field(field: str, old: JSON, new: JSON) -> list[JSONObject]:
    """Return the patch of a field as a whole."""
    if isinstance(new, set):
        return json_patch.difference_of_sets(old, new, (field,))
    return json_patch.difference(old, new, (field,))


def _of_key(field: str, key: str, old: JSON, new: JSON) -> list[JSONObject]:
    """Return the patch of a key of a field; either value may be missing."""
    if old is MISSING:
        return [] if new is MISSING else [{"op": "add", "path": pointer.format((field, key)), "value": new}]
    if new is MISSING:
        return [{"op": "remove", "path": pointer.format((field, key))}]
    return json_patch.difference(old, new, (field, key))


def _with(field: Any, keys: Mapping[str, Any]) -> Any:
    """Return a field with other values of some keys."""
    if not keys:
        return field
    return {key: value for key, value in {**field, **keys}.items() if value is not MISSING}


def overwritten(draft: NodeDraft | PortDraft) -> Iterator[tuple[str, Any]]:
    """Yield keys of the draft with values that they had since its beginning and no longer have."""
    for entry in draft.journal.entries:
        if not isinstance(entry, Change):
            continue
        key, first = ((entry.name, draft._original) if isinstance(entry, FieldChange) else
                      (entry.key, draft._original.get(entry.name)))
        if entry.old is not MISSING and not (isinstance(first, dict) and first.get(key, MISSING) is entry.old):
            yield key, _plain(entry.old)


def _plain(value: JSON) -> Any:
    return sorted(value) if isinstance(value, set) else value
