"""What each author has changed in a draft, read from its journal after the work is done: nothing is noted during it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from ironic_rules.models import json_patch, pointer
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.joint_writes import MISSING as _MISSING
from ironic_rules.models.joint_writes import Written
from ironic_rules.models.json_values import JSON, JSONObject


def changes(draft: NodeDraft | PortDraft, *, joint: bool = True) -> list[tuple[Any, list[JSONObject]]]:
    """Return the authors in the order in which they changed the draft, each with a patch (RFC 6902) of what it changed.

    Hooks, which change drafts without saying who they are, are left out.

    :param joint: whether those of joint writes are among them
    """
    journal = draft.entries() if joint else draft.folded()
    first = next((at for at, entry in enumerate(journal)
                  if type(entry) is tuple and len(entry) == 1 and entry[0] is not None), None)
    # Most drafts of an inspection are ports that no rule has changed.
    if first is None or not any(
            type(entry) is tuple and len(entry) == 3 for entry in itertools.islice(journal, first, None)):
        return []
    undone = _Undone(dict(draft._values))
    found: list[tuple[Any, list[JSONObject]]] = []
    #: what the author whose mark comes next has changed, last change first
    changed: list[tuple[str | None, str, Any]] = []
    for entry in itertools.islice(reversed(journal), len(journal) - first):
        if type(entry) is not tuple:
            if type(entry) is Written:
                undone.jointly(entry)
            continue
        if len(entry) == 3:
            changed.append(entry)
        elif changed:
            if entry[0] is None:
                undone.skip(changed)
            elif patch := undone.one(*changed[0]) if len(changed) == 1 else undone.many(changed):
                found.append((entry[0], patch))
            changed.clear()
    return found[::-1]


class _Undone:
    """The values of a draft while its changes are undone, the last one first."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        #: fields whose dict in ``values`` is a copy
        self._copied: set[str] = set()

    def skip(self, changed: list[tuple[str | None, str, Any]]) -> None:
        """Undo changes without a patch, the last one first."""
        for name, key, old in changed:
            self._undo(name, key, old)

    def jointly(self, written: Written) -> None:
        """Undo joint writes without a patch."""
        for (name, keys, _), before in zip(written.joint.fields, written.before, strict=True):
            for key, old in zip(keys, before or itertools.repeat(_MISSING), strict=False):
                self._undo(name, key, old)

    def one(self, name: str | None, key: str, old: JSON) -> list[JSONObject]:
        """Undo the only change of an author, as that of most rules; return its patch."""
        if name is None:
            new = self._values[key]
            self._undo(name, key, old)
            return _of_field(key, old, new)
        return _of_key(name, key, old, self._undo(name, key, old))

    def many(self, changed: list[tuple[str | None, str, Any]]) -> list[JSONObject]:
        """Undo the changes of an author, the last one first; return their patch."""
        #: what the author has changed, as it was when it had ended: fields, and of other fields only the keys, because
        #: many authors may each change little of a large field
        fields: dict[str, Any] = {}
        keys: dict[str, JSONObject] = {}
        for name, key, old in changed:
            if name is None:
                if key not in fields:
                    fields[key] = _with(self._values[key], keys.pop(key, {}))
                self._undo(name, key, old)
            else:
                new = self._undo(name, key, old)
                if name not in fields:
                    keys.setdefault(name, {}).setdefault(key, new)
        patch: list[JSONObject] = []
        for field in reversed(fields):
            patch += _of_field(field, self._values[field], fields[field])
        for field in reversed(keys):
            for key, new in reversed(keys[field].items()):
                patch += _of_key(field, key, self._values[field].get(key, _MISSING), new)
        return patch

    def _undo(self, name: str | None, key: str, old: JSON) -> Any:
        """Undo a change; return what it has left, if it is one of a key."""
        if name is None:
            self._values[key] = old
            self._copied.discard(key)
            return None
        if name not in self._copied:
            self._values[name] = dict(self._values[name])
            self._copied.add(name)
        field = self._values[name]
        if old is _MISSING:
            return field.pop(key, _MISSING)
        new = field.get(key, _MISSING)
        field[key] = old
        return new


def _of_field(field: str, old: JSON, new: JSON) -> list[JSONObject]:
    """Return the patch of a field as a whole."""
    if isinstance(new, set):
        return json_patch.difference_of_sets(old, new, (field,))
    return json_patch.difference(old, new, (field,))


def _of_key(field: str, key: str, old: JSON, new: JSON) -> list[JSONObject]:
    """Return the patch of a key of a field; either value may be missing."""
    if old is _MISSING:
        return [] if new is _MISSING else [{"op": "add", "path": pointer.format((field, key)), "value": new}]
    if new is _MISSING:
        return [{"op": "remove", "path": pointer.format((field, key))}]
    return json_patch.difference(old, new, (field, key))


def _with(field: Any, keys: Mapping[str, Any]) -> Any:
    """Return a field with other values of some keys."""
    if not keys:
        return field
    return {key: value for key, value in {**field, **keys}.items() if value is not _MISSING}


def overwritten(draft: NodeDraft | PortDraft) -> Iterator[tuple[str, Any]]:
    """Yield keys of the draft with values that they had since its beginning and no longer have."""
    for entry in draft.entries():
        if type(entry) is not tuple or len(entry) == 1:
            continue
        name, key, old = entry
        first = draft._original if name is None else draft._original.get(name)
        if old is not _MISSING and not (isinstance(first, dict) and first.get(key, _MISSING) is old):
            yield key, _plain(old)


def _plain(value: JSON) -> Any:
    return sorted(value) if isinstance(value, set) else value
