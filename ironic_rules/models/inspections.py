"""The history of a node's inspections: each author's changes, and the rules that gave a node its traits.

Changes are read from the journal of the draft after the work is done: nothing is noted during it.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ironic_rules.metrics.numbers import Stages
from ironic_rules.models import documents
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.journal import MISSING, Change, Checkpoint, FieldChange


def changes_of_draft(draft: NodeDraft | PortDraft) -> list[tuple[Any, list[JSONObject]]]:
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
    patches: list[tuple[Any, list[JSONObject]]] = []
    #: changes of the author whose checkpoint comes next, last change first
    changed: list[Change] = []
    for entry in itertools.islice(reversed(journal), len(journal) - first):
        if isinstance(entry, Change):
            changed.append(entry)
        elif changed and isinstance(entry, Checkpoint):
            if entry.author is None:
                undone.skip(changed)
            elif patch := undone.one(changed[0]) if len(changed) == 1 else undone.many(changed):
                patches.append((entry.author, patch))
            changed.clear()
    return patches[::-1]


class _Undone:
    """The values of a draft while its changes are undone, the last one first."""

    def __init__(self, values: JSONObject) -> None:
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
        #: values that the author has changed, as it left them: fields, and of other fields only the keys, because
        #: many authors may each change little of a large field
        fields: JSONObject = {}
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
        return documents.difference_of_sets(old, new, (field,))
    return documents.difference(old, new, (field,))


def _of_key(field: str, key: str, old: JSON, new: JSON) -> list[JSONObject]:
    """Return the patch of a key of a field; either value may be missing."""
    if old is MISSING:
        return [] if new is MISSING else [{"op": "add", "path": documents.format_pointer((field, key)), "value": new}]
    if new is MISSING:
        return [{"op": "remove", "path": documents.format_pointer((field, key))}]
    return documents.difference(old, new, (field, key))


def _with(field: Any, keys: Mapping[str, Any]) -> Any:
    """Return a field with other values of some keys."""
    if not keys:
        return field
    return {key: value for key, value in {**field, **keys}.items() if value is not MISSING}


#: Sources of the data of an inspection.
RAMDISK, OUT_OF_BAND, REAPPLY = "ramdisk", "out-of-band", "reapply"
#: Outcomes of an inspection.
FINISHED, FAILED, ABORTED, TIMED_OUT = "finished", "failed", "aborted", "timed out"


@dataclasses.dataclass(slots=True)
class Inspection:
    """An inspection that ends, as the conductor knows it.

    :ivar seconds: how long its stages took: ``wait``, ``lookup``, ``queue``, ``receive``, ``hooks``, ``rules``,
        ``finish``, ``commit``
    :ivar rules: the rules that matched, in order, as a JSON list: ``rule``, ``sensitive``, and ``changes`` as those of
        a trace, unless it is sensitive
    :ivar messages: what hooks and rules have logged: ``level``, ``text``
    :ivar failure: ``rule`` and ``pointer``, or ``hook``; and the ``reason``
    :ivar inventory: the id of its data
    :ivar started_at: None: as the node says
    :ivar save: notes the time since the save of the results began
    :ivar uuid: of the entry that it becomes; None: it has none yet
    :ivar changed_by: the UUIDs of the rules that have changed the node or one of its ports; it is not kept here
    """

    kind: str = RAMDISK
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    rules: bytes = b"[]"
    messages: list[JSONObject] = dataclasses.field(default_factory=list)
    failure: JSONObject | None = None
    inventory: int | None = None
    started_at: datetime.datetime | None = None
    changed_by: Collection[str] = frozenset()
    save: Stages | None = None
    uuid: str | None = None


class InspectionEntry(Protocol):
    """A row of the history of inspections."""

    id: int
    uuid: str
    node_id: int
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    kind: str
    outcome: str
    user: str | None
    source: str | None
    conductor: str | None
    request_id: str | None
    inventory_id: int | None
    details: JSONObject


def rules(details: Mapping[str, Any]) -> list[JSONObject]:
    """Return the rules that matched, in order, as ``Inspection.rules``.

    :param details: of an entry. An earlier version wrote short entries of rules that had set new keys: ``together``, a
        list of objects: ``at``, the place of the first one of its rules among all; ``rules``; and ``values``
    """
    matched: list[JSONObject] = list(details.get("rules") or ())
    for short in details.get("together") or ():
        matched[short["at"]:short["at"]] = _in_full(short["rules"], short["values"])
    return matched


def _in_full(rules: Sequence[Sequence[Any]], values: Sequence[object]) -> list[JSONObject]:
    """Return the full entries of rules that have set new keys of the node.

    :param rules: for each its UUID, followed by pairs: a path, and the place of its value among ``values``
    """
    return [{"rule": uuid, "sensitive": False, "changes": {"node": [
        {"op": "add", "path": path, "value": values[place]}
        for path, place in zip(writes[::2], writes[1::2], strict=True)]}} for uuid, *writes in rules]


_ONE = re.compile(r"/traits/(?:-|[0-9]+)")


class TraitOrigin(NamedTuple):
    """The rule, by its UUID, and the inspection in which it gave a trait last."""

    rule: str
    inspection: InspectionEntry


def trait_origins(inspections: Iterable[InspectionEntry]) -> dict[str, TraitOrigin]:
    """Return the origin of each trait that rules gave.

    :param inspections: the newest first
    """
    origins: dict[str, TraitOrigin] = {}
    for entry in inspections:
        # Changes of others are not saved. Without short entries of an earlier version: their rules write no traits.
        for rule in (entry.details.get("rules") or ()) if entry.outcome == FINISHED else ():
            for trait in _given(rule.get("changes") or {}):
                origins.setdefault(trait, TraitOrigin(rule["rule"], entry))
    return origins


def _given(changes: Mapping[str, Any]) -> Iterator[str]:
    patch: list[JSONObject] = [operation for operation in changes.get("node", ()) if _ONE.fullmatch(operation["path"])]
    added = [operation["value"] for operation in patch if operation["op"] == "add"]
    if all(operation["op"] != "replace" for operation in patch):
        yield from added
    elif len(added) == 1:
        # An entry of an older version, which replaced each trait behind a new one: the new one is the first written.
        yield next(operation["value"] for operation in patch if "value" in operation)
