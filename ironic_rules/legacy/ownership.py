"""Ownership of values by legacy rules: the ledger of their writes, and the removal of what they no longer set.

The ledger notes what each action has written and what was there before. Before rules run, all of it is taken back from
the draft. It is compared with the node as it is stored: a value that differs was changed by another user since, and is
theirs now. Values that hooks or other rules wrote in this inspection stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ironic_rules.exceptions import IronicRulesError
from ironic_rules.models import documents
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.rules import AS_WRITTEN, CAPABILITY, ITEM, PATH, PORT, TRAIT, OwnedValue
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.rules.errors import ActionError

CAPABILITIES = ("properties", "capabilities")
_CAPABILITIES = "/properties/capabilities"
MISSING: Any = object()


def find(doc: Any, tokens: tuple[str, ...]) -> Any:
    """Return the value at ``tokens``, ``MISSING`` if there is none."""
    try:
        return documents.get(doc, tokens)
    except documents.PointerError:
        return MISSING


class Ledger:
    """Writes for one action after the other.

    :ivar owned: what was written, in order
    :ivar rule: the UUID of the rule that writes
    :param is_kept: whether what is written is owned
    """

    def __init__(self, task: Task, is_kept: bool = True) -> None:
        self.task = task
        self.owned: list[OwnedValue] = []
        self._is_kept = is_kept
        self.rule = ""
        self._action = 0
        #: the capabilities that were parsed last, what they are, and whether that says how they are written
        self._parsed: tuple[Any, JSONObject, bool] = (None, {}, False)

    def begin(self, rule: str, action: int) -> None:
        """Note the rule and its action that write from now on."""
        self.rule, self._action = rule, action

    def _note(self, kind: str, place: str, **fields: Any) -> None:
        if self._is_kept:
            self.owned.append(OwnedValue(self.rule, self._action, kind, place, **fields))

    def read(self, tokens: tuple[str, ...], draft: NodeDraft | PortDraft | None = None) -> Any:
        """Return the value at a path of the node or a port, ``MISSING`` if there is none. Not to be changed."""
        return find((draft or self.task.node).current(tokens[0]), tokens[1:])

    def set_path(self, path: str, value: object) -> None:
        """Set the value at a path of the node; missing objects along it are made.

        Where the path leads into a list, the value becomes a new item, as with "add" of JSON Patch.

        :raises IronicRulesError: as ``NodeDraft.write``
        """
        tokens = NodeDraft.path_tokens(path)
        if len(tokens) > 2 or tokens[-1:] == ("-",):
            parent = self.read(tokens[:-1])
            if isinstance(parent, list) or (tokens[-1] == "-" and parent is MISSING):
                self.insert(tokens[:-1], tokens[-1], value)
                return
        self._set(self.task.node, PATH, documents.format_pointer(tokens), path, tokens, value)

    def set_port_path(self, port: PortDraft, path: str, value: object) -> None:
        """Set the value at a path of a port."""
        tokens = PortDraft.path_tokens(path)
        self._set(port, PORT, f"/{port.uuid}{documents.format_pointer(tokens)}", path, tokens, value)

    def _set(self, draft: NodeDraft | PortDraft, kind: str, place: str, path: str, tokens: tuple[str, ...],
             value: Any) -> None:
        before = self.read(tokens, draft)
        if before is not MISSING and documents.same(before, value):
            return
        created = _missing(draft.current(tokens[0]), tokens[1:])
        if self._is_kept:
            before = documents.clone(before)
        draft.write(path, value)
        if self._is_kept:
            # As the draft has it: it changes the case of some.
            value = documents.clone(self.read(tokens, draft))
        self._note(kind, place, written=value, made=created, **_before(before))

    def remove_path(self, path: str) -> None:
        """Remove the value at a path of the node; a field gets its default."""
        self._remove(self.task.node, PATH, "", path)

    def remove_port_path(self, port: PortDraft, path: str) -> None:
        """Remove the value at a path of a port."""
        self._remove(port, PORT, f"/{port.uuid}", path)

    def _remove(self, draft: NodeDraft | PortDraft, kind: str, prefix: str, path: str) -> None:
        tokens = draft.path_tokens(path, deleting=True)
        place = prefix + documents.format_pointer(tokens)
        before = documents.clone(self.read(tokens, draft))
        if before is MISSING:
            return
        if len(tokens) == 1:
            empty = draft.fields[tokens[0]].empty()
            self._set(draft, kind, place, path, tokens, empty)
        else:
            draft.delete(path)
            self._note(kind, place, is_set=False, **_before(before))

    def insert(self, tokens: tuple[str, ...], index: str, value: Any, *, unique: bool = False) -> None:
        """Add an item to the list at ``tokens``, which is made if it is missing or null.

        :param index: where; ``-`` for the end
        :param unique: do nothing if the list has the value
        :raises PointerError: there is something else than a list, or the index is beyond its end
        """
        where = documents.format_pointer(tokens)
        # An item may be written where a list may be.
        NodeDraft.path_tokens(where)
        present = self.read(tokens)
        if present is MISSING or present is None:
            created = _missing(self.task.node.current(tokens[0]), tokens[1:])
            if index not in ("-", "0"):
                raise documents.PointerError(f"{where}/{index}", "the index is beyond the end of the list")
            self.task.node.write(where, [value])
            # Without a number of items before: there was no list.
            self._note(ITEM, f"{where}/-", written=documents.clone(value), made=created, had_before=present is None)
            return
        if not isinstance(present, list):
            raise documents.PointerError(where, "not a list")
        same = sum(documents.same(value, item) for item in present)
        if unique and same:
            return
        if index == "-":
            self.task.node.extend(where, value)
        else:
            items = list(present)
            documents.put(items, (index,), value, insert=True)
            self.task.node.write(where, items)
        self._note(ITEM, f"{where}/{index}", written=documents.clone(value), had_before=True, before=same)

    def set_capability(self, name: str, value: object) -> None:
        """Set one capability, and keep the others.

        :param value: None removes it
        :raises ActionError: it is a list or an object, or has a comma
        """
        present = self.read(CAPABILITIES)
        if self._parsed[0] is not present or not isinstance(present, str):
            pairs = capabilities.parse(None if present is MISSING else present)
            self._parsed = present, pairs, present is MISSING or capabilities.joined(present, pairs) == present
        _, pairs, is_plain = self._parsed
        before = pairs.get(name, MISSING)
        if value is None and before is MISSING:
            return
        text = None if value is None else capabilities.text_of(value)
        if text is not None and before is not MISSING and documents.same(before, text):
            return
        fields = dict(_before(before))
        # So that taking back leaves what there was.
        if not is_plain:
            fields |= {"before": present, "made": AS_WRITTEN}
        elif text is None:
            fields["made"] = list(pairs).index(name)
        else:
            fields["made"] = int(present is MISSING)
        self._note(CAPABILITY, name, is_set=text is not None, written=text, **fields)
        if text is None:
            del pairs[name]
        else:
            pairs[name] = text
        changed = capabilities.joined(present, pairs)
        self.task.node.write(_CAPABILITIES, changed)
        self._parsed = changed, pairs, True

    def add_trait(self, name: str) -> None:
        """Add a trait.

        :raises InvalidParameterValue: not a valid trait name, or the node would have too many
        """
        if name not in self.task.node.current("traits"):
            self.task.node.add_trait(name)
            self._note(TRAIT, name, written=True, had_before=False)

    def remove_trait(self, name: str) -> None:
        """Remove a trait, if the node has it."""
        traits = self.task.node.current("traits")
        if name in traits:
            self.task.node.traits = set(traits) - {name}
            self._note(TRAIT, name, is_set=False, had_before=True)


def _missing(doc: object, tokens: tuple[str, ...]) -> int:
    """Return the number of objects that have to be made for the value at ``tokens``."""
    for depth, token in enumerate(tokens[:-1]):
        child = find(doc, (token,))
        if child is MISSING:
            return len(tokens) - 1 - depth
        doc = child
    return 0


def _before(present: object) -> Mapping[str, Any]:
    return {"had_before": present is not MISSING, "before": None if present is MISSING else present}


_WHAT = {PATH: "the value at {}", CAPABILITY: "the capability {}", ITEM: "its item of the list {}",
         TRAIT: "the trait {}", PORT: "the value at /ports{}"}


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A value that a rule no longer owns, although it stays on the node.

    :ivar reason: for the history of the node, a full sentence without values
    """

    value: OwnedValue
    reason: str


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of taking back.

    :ivar kept: what is still owned
    """

    kept: tuple[OwnedValue, ...]
    forgotten: tuple[Forgotten, ...]


def take_back(task: Task, owned: Sequence[OwnedValue], rules: Collection[str] | None = None) -> Taken:
    """Remove owned values from the drafts of a task; what was there before returns.

    :param owned: all that is owned on the node, in the order of writing
    :param rules: UUIDs of the rules whose values are taken back; None: all
    """
    targets = [index for index, value in enumerate(owned) if rules is None or value.rule_uuid in rules]
    if not targets:
        return Taken(tuple(owned), ())
    first = targets[0]
    taking = _Taking(task)
    for value in reversed(owned[first:]):
        taking.take(value)
    taking.write()
    ledger = Ledger(task)
    ledger.owned.extend(owned[:first])
    changed = {id(forgotten.value) for forgotten in taking.forgotten}
    for value in owned[first:]:
        # Values of other rules are written again: the value before them may be another one now.
        if rules is not None and value.rule_uuid not in rules and id(value) not in changed:
            with contextlib.suppress(IronicRulesError):
                _write(ledger, value)
    return Taken(tuple(ledger.owned), tuple(reversed(taking.forgotten)))


def _write(ledger: Ledger, value: OwnedValue) -> None:
    ledger.begin(value.rule_uuid, value.action)
    if value.kind == CAPABILITY:
        ledger.set_capability(value.place, value.written if value.is_set else None)
    elif value.kind == TRAIT:
        (ledger.add_trait if value.is_set else ledger.remove_trait)(value.place)
    elif value.kind == ITEM:
        *tokens, index = documents.parse_pointer(value.place)
        ledger.insert(tuple(tokens), index, value.written)
    elif value.kind == PATH and value.is_set:
        ledger.set_path(value.place, value.written)
    elif value.kind == PATH:
        ledger.remove_path(value.place)
    else:
        uuid, *rest = documents.parse_pointer(value.place)
        port = next((port for port in ledger.task.ports if port.uuid == uuid), None)
        if port is None:
            return
        if value.is_set:
            ledger.set_port_path(port, documents.format_pointer(rest), value.written)
        else:
            ledger.remove_port_path(port, documents.format_pointer(rest))


class _Fields:
    """Copies of the fields of one draft as they are stored, from which owned values are taken back."""

    __slots__ = ("draft", "stored")

    def __init__(self, draft: NodeDraft | PortDraft) -> None:
        self.draft = draft
        self.stored: JSONObject = {}

    def open(self, name: str) -> JSONObject:
        """Return the copies, with that of a field."""
        if name not in self.stored:
            self.stored[name] = documents.clone(self.draft.original(name))
        return self.stored

    def write(self) -> None:
        """Write the fields to the draft, with what hooks and other rules have changed in this inspection."""
        for name, value in self.stored.items():
            old = self.draft.original(name)
            if documents.same(old, value):
                continue
            now = self.draft.current(name)
            merged = merge(old, now, value)
            if name == CAPABILITIES[0] and not _is_same(*(doc.get(CAPABILITIES[1], MISSING) for doc in (old, now))):
                merged = _with_capabilities(merged, old, now, value)
            setattr(self.draft, name, merged)


class _Taking:
    """One pass over what is owned, from the last to the first."""

    def __init__(self, task: Task) -> None:
        self._node = _Fields(task.node)
        self._ports = {str(port.uuid): _Fields(port) for port in task.ports}
        self.forgotten: list[Forgotten] = []
        #: places whose value is that of another user; what earlier actions wrote there is gone
        self._theirs: set[tuple[str, str]] = set()
        #: the capabilities, while only they are taken back
        self._pairs: JSONObject | None = None
        #: the values before all that was taken back, as they were written; None: the pairs have them
        self._whole: tuple[Any] | None = None

    def write(self) -> None:
        """Write the results to the drafts."""
        self._join()
        for fields in (self._node, *self._ports.values()):
            fields.write()

    def take(self, value: OwnedValue) -> None:
        """Take back one value, unless another user has changed it."""
        if value.kind == CAPABILITY:
            self._capability(value)
        elif value.kind == TRAIT:
            self._trait(value)
        else:
            self._join()
            tokens = documents.parse_pointer(value.place)
            if value.kind == ITEM:
                self._item(value, tokens[:-1], tokens[-1])
            elif value.kind == PATH:
                self._path(value, self._node, tokens)
            elif tokens[0] in self._ports:
                self._path(value, self._ports[tokens[0]], tokens[1:])

    def _forget(self, value: OwnedValue) -> None:
        description = _WHAT[value.kind].format(value.place.rpartition("/")[0] if value.kind == ITEM else value.place)
        self.forgotten.append(Forgotten(value, (
            f"Legacy rule {value.rule_uuid} does not own {description} any more: it was changed since the rule wrote "
            "it.")))

    def _is_written(self, value: OwnedValue, stored: Any) -> bool:
        """Return whether the value is what the rule wrote; note it if another user has changed it since."""
        place = value.kind, value.place
        if value.is_set:
            is_written = stored is not MISSING and documents.same(stored, value.written)
        else:
            is_written = stored is MISSING
        if is_written and place not in self._theirs:
            return True
        self._theirs.add(place)
        self._forget(value)
        return False

    def _path(self, value: OwnedValue, fields: _Fields, tokens: tuple[str, ...]) -> None:
        stored = fields.open(tokens[0])
        if self._is_written(value, find(stored, tokens)):
            _restore(stored, tokens, value)

    def _capability(self, value: OwnedValue) -> None:
        name, key = CAPABILITIES
        if self._pairs is None:
            stored = self._node.open(name)[name].get(key)
            try:
                self._pairs = capabilities.parse(stored)
            except ActionError:
                self._forget(value)
                return
        if not self._is_written(value, self._pairs.get(value.place, MISSING)):
            return
        whole = capabilities.parse(value.before) if value.made == AS_WRITTEN else None
        before = value.before if whole is None else whole.get(value.place)
        if not value.is_set:
            pairs = list(self._pairs.items())
            pairs.insert(value.made if whole is None else list(whole).index(value.place), (value.place, before))
            self._pairs = dict(pairs)
        elif value.had_before:
            self._pairs[value.place] = before
        else:
            del self._pairs[value.place]
        self._whole = None
        if self._pairs == whole:
            self._whole = (value.before,)
        elif value.is_set and value.made > 0 and not self._pairs:
            self._whole = (MISSING,)

    def _join(self) -> None:
        """Put the capabilities back into the properties."""
        if self._pairs is None:
            return
        name, key = CAPABILITIES
        fields = self._node.stored[name]
        if self._whole is None:
            if key in fields:
                fields[key] = capabilities.joined(fields[key], self._pairs)
        elif self._whole[0] is MISSING:
            fields.pop(key, None)
        else:
            fields[key] = self._whole[0]
        self._pairs = self._whole = None

    def _trait(self, value: OwnedValue) -> None:
        names = self._node.open("traits")["traits"]
        if not self._is_written(value, value.place in names or MISSING):
            return
        if value.is_set:
            names.discard(value.place)
        else:
            names.add(value.place)

    def _item(self, value: OwnedValue, tokens: tuple[str, ...], index: str) -> None:
        if not _remove_item(self._node.open(tokens[0]), tokens, index, value):
            self._forget(value)


def merge(old: Any, now: Any, new: Any) -> Any:
    """Return ``new`` with the changes that lead from ``old`` to ``now``."""
    if _is_same(old, now):
        return new
    if _is_same(old, new):
        return now
    if isinstance(old, dict) and isinstance(now, dict):
        below = new if isinstance(new, dict) else {}
        merged = {key: merge(*(values.get(key, MISSING) for values in (old, now, below))) for key in (*below, *(
            key for key in now if key not in below))}
        merged = {key: value for key, value in merged.items() if value is not MISSING}
        return merged if merged or isinstance(new, dict) else new
    if isinstance(old, list) and isinstance(now, list) and isinstance(new, list):
        return _without(now, _without(old, new)) + _without(new, old)
    if isinstance(old, set) and isinstance(now, set):
        return (now - (old - new)) | (new - old)
    return now


def _with_capabilities(merged: JSONObject, *properties: JSONObject) -> JSONObject:
    """Return merged properties with capabilities that are merged one by one."""
    key = CAPABILITIES[1]
    old, now, new = (document.get(key) for document in properties)
    try:
        pairs = merge(*map(capabilities.parse, (old, now, new)))
    except ActionError:
        return merged
    if not pairs and new is None:
        return {name: value for name, value in merged.items() if name != key}
    return {**merged, key: capabilities.joined(now if new is None else new, pairs)}


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (a is not MISSING and b is not MISSING and documents.same(a, b))


def _without(items: list[Any], others: list[Any]) -> list[Any]:
    """Return items without one of each of the others."""
    unmatched = list(others)
    remaining = []
    for item in reversed(items):
        place = next((place for place, other in enumerate(unmatched) if documents.same(item, other)), None)
        if place is None:
            remaining.append(item)
        else:
            del unmatched[place]
    return remaining[::-1]


def settle(task: Task, before: Sequence[OwnedValue], owned: Sequence[OwnedValue]) -> None:
    """Restore the stored order of capabilities and lists in which the same parts were taken back and written again.

    Others may have added parts after them since: the same hardware changes nothing nevertheless.

    :param before: what was owned before, in the order of writing; ``owned`` what is owned now
    """
    node, paths = task.node, [documents.parse_pointer(value.place) for value in owned if value.kind == PATH]
    written, now_written = _parts(before), _parts(owned)
    for tokens in sorted(now_written):
        if written.get(tokens) != now_written[tokens]:
            continue
        if any(tokens[:len(path)] == path or path[:len(tokens)] == tokens for path in paths):
            continue
        stored, now = find(node.original(tokens[0]), tokens[1:]), find(node.current(tokens[0]), tokens[1:])
        if not documents.same(stored, now) and _has_same_parts(tokens, stored, now):
            node.write(documents.format_pointer(tokens), stored)


def _parts(owned: Sequence[OwnedValue]) -> dict[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the values written to the capabilities and to each list, by the path."""
    parts: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for value in owned:
        if value.kind in (CAPABILITY, ITEM):
            path = CAPABILITIES if value.kind == CAPABILITY else documents.parse_pointer(value.place)[:-1]
            parts.setdefault(path, []).append((value.rule_uuid, value.action, value.place, _written(value.written)))
    return parts


def _has_same_parts(tokens: tuple[str, ...], stored: object, now: object) -> bool:
    if tokens == CAPABILITIES and isinstance(stored, str) and isinstance(now, str):
        return capabilities.parse(stored) == capabilities.parse(now)
    if not isinstance(stored, list) or not isinstance(now, list) or len(stored) != len(now):
        return False
    return sorted(map(_written, stored)) == sorted(map(_written, now))


def _written(item: Any) -> bytes:
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)


def _restore(doc: JSONObject, tokens: tuple[str, ...], value: OwnedValue) -> None:
    """Put back what was before a value at a path."""
    if value.had_before:
        documents.put(doc, tokens, documents.clone(value.before), create=True)
        return
    documents.remove(doc, tokens)
    _prune(doc, tokens, value.made)


def _prune(doc: JSONObject, tokens: tuple[str, ...], created: int) -> None:
    """Remove as many objects along a path as were made for it, if they are empty."""
    for depth in range(len(tokens) - 1, max(1, len(tokens) - 1 - created), -1):
        if find(doc, tokens[:depth]) != {}:
            return
        documents.remove(doc, tokens[:depth])


def _remove_item(doc: JSONObject, tokens: tuple[str, ...], index: str, value: OwnedValue) -> bool:
    """Remove the item that a rule has added to a list; return whether there is one that is not of another user."""
    items = find(doc, tokens)
    if not isinstance(items, list):
        return False
    places = [place for place, item in enumerate(items) if documents.same(item, value.written)]
    if len(places) <= (value.before or 0):
        return False
    del items[int(index) if index != "-" and int(index) in places else places[-1]]
    if items or value.before is not None:
        return True
    # The list was made for the item.
    if value.had_before:
        documents.put(doc, tokens, None)
    else:
        documents.remove(doc, tokens)
        _prune(doc, tokens, value.made)
    return True
