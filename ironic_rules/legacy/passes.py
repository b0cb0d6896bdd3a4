"""Taking back: what legacy rules have given to a node is removed from its draft, and what was there before returns.

What is owned is compared with the node as it is stored: a value that differs was changed by somebody since, whose it is
now. What hooks or other rules have written in this inspection is left, without being anybody else's: it is the node
without legacy rules.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ironic_rules.legacy.ledger import CAPABILITIES, MISSING, find
from ironic_rules.models import json_values, pointer
from ironic_rules.models.draft import NodeDraft, PortDraft
from ironic_rules.models.legacy_rules import CAPABILITY, ITEM, PATH, PORT, TRAIT, OwnedValue
from ironic_rules.models.task import Task
from ironic_rules.rules import capabilities
from ironic_rules.rules.errors import ActionError

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
    if not owned:
        return Taken((), ())
    taking = _Taking(task)
    for value in reversed(owned):
        if rules is None or value.rule_uuid in rules:
            taking.take(value)
        else:
            taking.kept.append(value)
    taking.write()
    return Taken(tuple(reversed(taking.kept)), tuple(reversed(taking.forgotten)))


class _Fields:
    """Copies of the fields of one draft: as they are stored, and as they are now."""

    __slots__ = ("changed", "draft", "now", "stored")

    def __init__(self, draft: NodeDraft | PortDraft) -> None:
        self.draft = draft
        self.stored: dict[str, Any] = {}
        self.now: dict[str, Any] = {}
        self.changed: set[str] = set()

    def open(self, name: str) -> None:
        if name not in self.now:
            self.stored[name] = json_values.clone(self.draft.original(name))
            self.now[name] = json_values.clone(self.draft.current(name))

    def write(self) -> None:
        for name in self.changed:
            setattr(self.draft, name, self.now[name])


class _Taking:
    """One pass over what is owned, from the last to the first."""

    def __init__(self, task: Task) -> None:
        self._node = _Fields(task.node)
        self._ports = {str(port.uuid): port for port in task.ports}
        self._of_ports: dict[str, _Fields] = {}
        self.kept: list[OwnedValue] = []
        self.forgotten: list[Forgotten] = []
        #: places whose value is somebody else's, or was written anew; what earlier actions wrote there is gone
        self._closed: dict[tuple[str, str], bool] = {}
        #: the capabilities, stored and now, while only they are taken back
        self._pairs: tuple[dict[str, Any], dict[str, Any]] | None = None

    def write(self) -> None:
        """Write the results to the drafts."""
        self._join()
        for fields in (self._node, *self._of_ports.values()):
            fields.write()

    def take(self, value: OwnedValue) -> None:
        """Take back one value, unless somebody has changed it."""
        if value.kind == CAPABILITY:
            self._capability(value)
        elif value.kind == TRAIT:
            self._trait(value)
        elif value.kind == ITEM:
            self._join()
            self._item(value)
        elif value.kind == PORT:
            self._port(value)
        else:
            self._join()
            self._path(value, self._node, pointer.parse(value.place))

    def _forget(self, value: OwnedValue) -> None:
        what = _WHAT[value.kind].format(value.place.rpartition("/")[0] if value.kind == ITEM else value.place)
        self.forgotten.append(Forgotten(value, (
            f"Legacy rule {value.rule_uuid} does not own {what} any more: it was changed since the rule wrote it.")))

    def _is_closed(self, value: OwnedValue, stored: Any) -> bool:
        """Return whether the value is not what the rule wrote, and note it if somebody has changed it since."""
        place = value.kind, value.place
        if place in self._closed:
            if self._closed[place]:
                self._forget(value)
            return True
        theirs = stored is MISSING or not json_values.same(stored, value.written) if value.is_set else \
            stored is not MISSING
        if theirs:
            self._closed[place] = True
            self._forget(value)
        return theirs

    def _path(self, value: OwnedValue, fields: _Fields, tokens: tuple[str, ...]) -> None:
        name, below = tokens[0], tokens[1:]
        fields.open(name)
        stored, now = fields.stored, fields.now
        if self._spliced(value) or self._is_closed(value, find(stored[name], below)):
            return
        _restore(stored, tokens, value)
        found = find(now[name], below)
        if (value.is_set and found is not MISSING and json_values.same(found, value.written)) or (
                not value.is_set and found is MISSING):
            _restore(now, tokens, value)
            fields.changed.add(name)
        else:
            self._closed[value.kind, value.place] = False

    def _port(self, value: OwnedValue) -> None:
        uuid, *rest = pointer.parse(value.place)
        port = self._ports.get(uuid)
        if port is None:
            return
        fields = self._of_ports.setdefault(uuid, _Fields(port))
        self._path(value, fields, tuple(rest))

    def _spliced(self, value: OwnedValue) -> bool:
        """Return whether a rule whose values are kept has written over the value: then that returns what was before."""
        for index in range(len(self.kept) - 1, -1, -1):
            later = self.kept[index]
            if (later.kind, later.place) == (value.kind, value.place):
                self.kept[index] = replace(
                    later, had_before=value.had_before, before=value.before, made=value.made)
                return True
        return False

    def _capability(self, value: OwnedValue) -> None:
        if self._pairs is None:
            self._node.open(CAPABILITIES[0])
            try:
                stored, now = (capabilities.parse(fields[CAPABILITIES[0]].get(CAPABILITIES[1]))
                               for fields in (self._node.stored, self._node.now))
            except ActionError:
                self._forget(value)
                return
            self._pairs = stored, now
        stored, now = self._pairs
        if self._spliced(value) or self._is_closed(value, stored.get(value.place, MISSING)):
            return
        _restore_pair(stored, value)
        found = now.get(value.place, MISSING)
        if (value.is_set and found is not MISSING and json_values.same(found, value.written)) or (
                not value.is_set and found is MISSING):
            _restore_pair(now, value)
            if value.made and not now:
                now[""] = None
            self._node.changed.add(CAPABILITIES[0])
        else:
            self._closed[value.kind, value.place] = False

    def _join(self) -> None:
        """Put the capabilities back into the properties."""
        if self._pairs is None:
            return
        name, key = CAPABILITIES
        for fields, pairs in zip((self._node.stored, self._node.now), self._pairs, strict=True):
            is_none = pairs.pop("", MISSING) is None
            if is_none and not pairs:
                fields[name].pop(key, None)
            elif pairs or key in fields[name]:
                fields[name][key] = capabilities.joined(fields[name].get(key), pairs)
        self._pairs = None

    def _trait(self, value: OwnedValue) -> None:
        self._node.open("traits")
        stored, now = self._node.stored["traits"], self._node.now["traits"]
        is_stored = value.place in stored
        if self._spliced(value) or self._is_closed(value, True if is_stored else MISSING):
            return
        for names in (stored, now):
            if value.is_set:
                names.discard(value.place)
            else:
                names.add(value.place)
        self._node.changed.add("traits")

    def _item(self, value: OwnedValue) -> None:
        *tokens, index = pointer.parse(value.place)
        name = tokens[0]
        self._node.open(name)
        if not _remove_item(self._node.stored, tuple(tokens), index, value):
            self._forget(value)
            return
        if _remove_item(self._node.now, tuple(tokens), index, value):
            self._node.changed.add(name)
        self._hand_over(value)

    def _hand_over(self, value: OwnedValue) -> None:
        """Correct what is noted of items that stay in the list of one that was removed."""
        path = value.place.rpartition("/")[0]
        made = value.before is None
        for index in range(len(self.kept) - 1, -1, -1):
            later = self.kept[index]
            if later.kind != ITEM or later.place.rpartition("/")[0] != path:
                continue
            if made:
                # The first of the others has made the list now.
                self.kept[index] = replace(later, had_before=value.had_before, before=None, made=value.made)
                made = False
            elif later.before and json_values.same(later.written, value.written):
                self.kept[index] = replace(later, before=later.before - 1)


def settle(task: Task, owned: Sequence[OwnedValue]) -> None:
    """Restore the stored order of capabilities and lists that have the same parts as before, in another order.

    They have it if parts were taken back and written again: the same hardware changes nothing.

    :param owned: what is owned now, in the order of writing
    """
    node, paths = task.node, [pointer.parse(value.place) for value in owned if value.kind == PATH]
    lists = {pointer.parse(value.place)[:-1] for value in owned if value.kind == ITEM}
    if any(value.kind == CAPABILITY for value in owned):
        lists.add(CAPABILITIES)
    for tokens in sorted(lists):
        if any(tokens[:len(path)] == path or path[:len(tokens)] == tokens for path in paths):
            continue
        stored, now = find(node.original(tokens[0]), tokens[1:]), find(node.current(tokens[0]), tokens[1:])
        if not json_values.same(stored, now) and _has_same_parts(tokens, stored, now):
            node.write(pointer.format(tokens), stored)


def _has_same_parts(tokens: tuple[str, ...], stored: Any, now: Any) -> bool:
    if tokens == CAPABILITIES and isinstance(stored, str) and isinstance(now, str):
        return capabilities.parse(stored) == capabilities.parse(now)
    if not isinstance(stored, list) or not isinstance(now, list) or len(stored) != len(now):
        return False
    return sorted(map(_written, stored)) == sorted(map(_written, now))


def _written(item: Any) -> bytes:
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)


def _restore(doc: dict[str, Any], tokens: tuple[str, ...], value: OwnedValue) -> None:
    """Put back what was before a value at a path."""
    if value.had_before:
        pointer.put(doc, tokens, json_values.clone(value.before), create=True)
        return
    pointer.remove(doc, tokens)
    _prune(doc, tokens, value.made)


def _prune(doc: dict[str, Any], tokens: tuple[str, ...], made: int) -> None:
    """Remove as many objects along a path as were made for it, if they are empty."""
    for depth in range(len(tokens) - 1, max(1, len(tokens) - 1 - made), -1):
        if find(doc, tokens[:depth]) != {}:
            return
        pointer.remove(doc, tokens[:depth])


def _restore_pair(pairs: dict[str, Any], value: OwnedValue) -> None:
    if value.had_before:
        pairs[value.place] = value.before
    else:
        pairs.pop(value.place, None)


def _remove_item(doc: dict[str, Any], tokens: tuple[str, ...], index: str, value: OwnedValue) -> bool:
    """Remove the item that a rule has added to a list; return whether there is one that is not somebody else's."""
    found = find(doc, tokens)
    if not isinstance(found, list):
        return False
    places = [place for place, item in enumerate(found) if json_values.same(item, value.written)]
    if len(places) <= (value.before or 0):
        return False
    del found[int(index) if index != "-" and int(index) in places else places[-1]]
    if found or value.before is not None:
        return True
    # The list was made for the item.
    if value.had_before:
        pointer.put(doc, tokens, None)
    else:
        pointer.remove(doc, tokens)
        _prune(doc, tokens, value.made)
    return True
