"""Drafts: a node, its ports and traits as hooks and rules change them, before one transaction saves the changes.

Reading an attribute that holds JSON returns a private copy, so a change in place changes the draft and nothing else.
``write``, ``extend`` and ``delete`` take paths, check them against the table of fields and copy only the containers
along the path, and the field's own dict only once, which keeps a thousand writes to one big field cheap.

Writes are noted in a journal (``models.journal``): it can be undone, and it is known who wrote a field.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ironic_rules.exceptions import FieldNotWritable, InvalidParameterValue
from ironic_rules.models import documents, secrets, traits
from ironic_rules.models.documents import JSONObject
from ironic_rules.models.fields import Fields, Type
from ironic_rules.models.journal import MISSING, Change, Checkpoint, DraftJournal, FieldChange, KeyChange, Signature
from ironic_rules.models.nodes import NODE, Node
from ironic_rules.models.ports import PORT, Port
from ironic_rules.text import is_storable, is_uuid

_SCALARS = frozenset({str, int, float, bool, type(None)})
_NAME = re.compile(r"[A-Za-z0-9._~-]+")


#: Notes what an author does from now on.
Sign: TypeAlias = Callable[[object], None]


class FieldPath(str):
    """A path that the drafts of class ``of`` have already split and checked to be writable."""

    __slots__ = ("of", "tokens")

    of: type[_Draft]
    tokens: tuple[str, ...]

    def __new__(cls, path: str, of: type[_Draft]) -> FieldPath:
        """:raises FieldNotWritable, PointerError: as ``path_tokens`` of that class does"""
        self = super().__new__(cls, path)
        self.of, self.tokens = of, tuple(map(sys.intern, of.path_tokens(path)))
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FieldPath:
        # Drafts that are copied note by it what rules have written; it never changes.
        return self


class _Draft:
    """Base of node and port drafts: typed fields, recorded changes, paths, and one level of undo."""

    fields: ClassVar[Fields]
    #: fields that rules may write
    writable: ClassVar[frozenset[str]]
    #: fields into which a path can lead
    objects: ClassVar[frozenset[str]]

    _original: JSONObject
    _values: JSONObject
    #: fields whose value was returned since the last checkpoint, so that the caller may have changed it in place
    _owned: set[str]
    #: fields whose dict is referenced only by this draft
    _private: set[str]
    _journal: DraftJournal

    def __init__(self, values: Mapping[str, object]) -> None:
        put = object.__setattr__
        put(self, "_original", dict(values))
        put(self, "_values", dict(values))
        put(self, "_owned", set())
        put(self, "_private", set())
        put(self, "_journal", DraftJournal())

    # The type checker must accept the fields that the classes below declare, and no others.
    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or name not in self._values:
                raise AttributeError(f"{type(self).__name__} has no field {name!r}")
            value = self._values[name]
            return self._take(name) if isinstance(value, (dict, list, set)) else value

        def __setattr__(self, name: str, value: object) -> None:
            self._assign(name, value)

    def _assign(self, name: str, value: object) -> None:
        if name not in self._values:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        self._set(name, value)

    def save(self) -> None:
        """Do nothing: the pipeline saves drafts once, at the end. Plug-ins written to the specifications call it."""

    def read(self) -> JSONObject:
        """Return all current values as JSON-like data, times as ISO 8601 text. Not to be changed by the caller."""
        self._private.clear()
        return {
            name: value.isoformat() if isinstance(value, datetime.datetime) else value
            for name, value in self._values.items()}

    def changes(self) -> JSONObject:
        """Return the new value of each field that differs from its original value."""
        self._private.clear()
        return {
            name: value for name, value in self._values.items()
            if value is not (old := self._original.get(name, MISSING)) and not documents.same(value, old)}

    def current(self, name: str) -> Any:
        """Return the current value of a field, to be read at once: later writes may change it. Not to be changed."""
        return self._values[name]

    def original(self, name: str) -> Any:
        """Return the original value of a field. Not to be changed by the caller."""
        return self._original[name]

    def checkpoint(self, author: object = None) -> Sign:
        """Make :meth:`rollback` return to the current state.

        :param author: who changes the draft from now on
        :returns: :meth:`sign`
        """
        self._journal.entries.append(Checkpoint(author))
        self._owned.clear()
        return self.sign

    def sign(self, action: object) -> None:
        """Note what the author does from now on."""
        self._journal.entries.append(Signature(action))

    def check_secrets(self) -> None:
        """Check what was changed in place since the last checkpoint.

        :raises SecretMasked: a mask was stored in the place of a secret
        """
        for name in self._owned:
            secrets.refuse_masks(self._values[name], (name,), self._original.get(name))

    @contextlib.contextmanager
    def as_stored(self, names: Iterable[str]) -> Iterator[None]:
        """Give these fields their original values for the block; what is written to them there has no effect."""
        position, before = self.position(), {name: self._values[name] for name in names if name in self._values}
        owned, private = self._owned.intersection(before), self._private.intersection(before)
        self._forget(before)
        self._values.update((name, self._original[name]) for name in before)
        try:
            yield
        finally:
            entries = self._journal.entries
            entries[position:] = [entry for entry in entries[position:]
                                  if not (isinstance(entry, Change) and entry.name in before)]
            self._values.update(before)
            self._forget(before)
            self._owned.update(owned)
            self._private.update(private)

    def _forget(self, names: Iterable[str]) -> None:
        self._owned.difference_update(names)
        self._private.difference_update(names)

    def author_of(self, name: str | None = None) -> tuple[Any, Any]:
        """Return who wrote a field last and the action that did; None, None without an author.

        Reading a JSON field counts as writing: its value may have been changed in place.

        :param name: None: return who may be writing now
        """
        return self._journal.author_of(name)

    def position(self) -> int:
        """Return where the draft is, for :meth:`rollback`."""
        return len(self._journal.entries)

    @property
    def journal(self) -> DraftJournal:
        """The changes of the draft. Not to be changed by the caller."""
        return self._journal

    def rollback(self, position: int | None = None) -> None:
        """Undo everything since the last :meth:`checkpoint` (or the beginning).

        :param position: undo everything since then, checkpoints too
        """
        self._private.clear()
        for change in self._journal.take_back(position):
            change.undo(self._values, self._private)
        self._owned.clear()

    def write(self, path: str, value: Any) -> None:
        """Set the value at ``path`` (``/driver_info/ipmi_address``); missing dicts along the path are created.

        :raises FieldNotWritable: a rule may not write that field
        :raises InvalidParameterValue: the field does not accept such a value
        :raises PointerError: the path leads through a scalar
        :raises SecretMasked: the value has a mask in the place of a secret
        """
        is_split = path.__class__ is FieldPath and path.of is self.__class__  # type: ignore[attr-defined]
        tokens = path.tokens if is_split else self.path_tokens(path)  # type: ignore[attr-defined]
        if value.__class__ not in _SCALARS:
            value = documents.clone(value)
            secrets.refuse_masks(value, tokens)
        elif value.__class__ is str and secrets.MASK in value:
            secrets.refuse_masks(value, tokens)
        if len(tokens) == 2 and tokens[0] in self._private:
            # The most frequent case, in the shortest way.
            name, key = tokens
            field = self._values[name]
            self._journal.entries.append(KeyChange(name, key, field.get(key, MISSING)))
            field[key] = value
        else:
            self._put(tokens, value)

    def _put(self, tokens: tuple[str, ...], value: object) -> None:
        if len(tokens) > 1:
            self._open(tokens)
            # From the root, so that errors name the whole path.
            documents.put(self._values, tokens, value, create=True)
            return
        reason = self.value_problem(tokens[0], value)
        if reason:
            raise InvalidParameterValue(f"{documents.format_pointer(tokens)}: {reason}")
        self._set(tokens[0], value)

    def extend(self, path: str, value: Any, unique: bool = False) -> None:
        """Append ``value`` to the list at ``path``, which is created if missing; ``unique`` skips a duplicate.

        :raises PointerError: the value there is not a list; further errors as for :meth:`write`
        """
        tokens = self.path_tokens(path)
        if len(tokens) == 1:
            raise InvalidParameterValue(f"{documents.format_pointer(tokens)}: this field is not a list")
        secrets.refuse_masks(value, tokens)
        self._open(tokens)
        documents.append(self._values, tokens, documents.clone(value), unique)

    def delete(self, path: str) -> None:
        """Remove the value at ``path``; a field gets its default. A missing key below a field is not an error.

        :raises FieldNotWritable: a rule may not write that field, or it cannot be empty
        """
        tokens = self.path_tokens(path, deleting=True)
        if len(tokens) == 1:
            self.write(path, self.fields[tokens[0]].empty())
            return
        try:
            documents.get(self._values, tokens)
        except documents.PointerError:
            return
        # In a copy: a key that is removed and restored would change its position.
        self._private.discard(tokens[0])
        self._open(tokens)
        documents.remove(self._values, tokens)

    @classmethod
    def path_tokens(cls, path: str, deleting: bool = False) -> tuple[str, ...]:
        """Split ``path`` and check that a rule may write there.

        :raises FieldNotWritable: unknown or protected field, or a path into a field that is not an object
        :raises PointerError: the path is malformed
        """
        if type(path) is FieldPath and path.of is cls and not deleting:
            return path.tokens
        tokens = documents.parse_pointer(path, relative=True)
        if "." in path and "/" not in path and "" in tokens:
            raise documents.PointerError(path, "a part of the path is empty")
        if not tokens or tokens[0] not in cls.writable or (
                deleting and len(tokens) == 1 and tokens[0] in cls.fields.required):
            raise FieldNotWritable(path=documents.format_pointer(tokens[:1]))
        if len(tokens) > 1 and tokens[0] not in cls.objects:
            raise FieldNotWritable(path=documents.format_pointer(tokens))
        return tokens

    @classmethod
    def value_problem(cls, name: str, value: object) -> str | None:
        """Return why the field ``name`` does not accept ``value`` as a whole; None if it does."""
        entry = cls.fields[name]
        if value is None:
            return None if entry.nullable else "must not be null"
        if entry.type is Type.OBJECT:
            return None if isinstance(value, dict) else "must be an object"
        if entry.type is Type.BOOLEAN:
            return None if isinstance(value, bool) else "must be true or false"
        if not isinstance(value, str):
            return "must be a string"
        if len(value) > entry.max_length:
            return f"must be at most {entry.max_length} characters"
        if not is_storable(value):
            return "must not contain NUL or lone surrogate characters"
        return None

    def _open(self, tokens: tuple[str, ...]) -> None:
        """Replace the field's value by private copies along ``tokens``, ready to be changed in place."""
        name = tokens[0]
        if name in self._owned:
            return
        if name not in self._private:
            old = self._values.get(name)
            self._set(name, dict(old) if isinstance(old, dict) else {})
            self._private.add(name)
        value = self._values[name]
        self._journal.entries.append(KeyChange(name, tokens[1], value.get(tokens[1], MISSING)))
        if len(tokens) > 2 or isinstance(value.get(tokens[1]), (dict, list)):
            documents.unshare(value, tokens[1:])

    def _take(self, name: str) -> Any:
        if name not in self._owned:
            self._set(name, documents.clone(self._values[name]))
            self._owned.add(name)
        return self._values[name]

    def _set(self, name: str, value: object) -> None:
        self._journal.entries.append(FieldChange(name, self._values.get(name, MISSING)))
        self._owned.discard(name)
        self._private.discard(name)
        self._values[name] = value


class NodeDraft(_Draft, Node):
    """A node that hooks and rules change. ``traits`` is a set like any other field; its path is ``/traits``."""

    fields = NODE
    writable = NODE.writable_by_rules | {"traits"}
    objects = NODE.json | {"traits"}

    traits: set[str]

    def __init__(self, values: Mapping[str, object], traits: Iterable[str] = ()) -> None:
        super().__init__({**values, "traits": set(traits)})

    def _assign(self, name: str, value: Any) -> None:
        super()._assign(name, set(value) if name == "traits" else value)
        if name == "agent_token_hash":
            # A ramdisk may have received a token since: the new value is written even if it equals the original.
            self._original.pop(name, None)

    def _set(self, name: str, value: object) -> None:
        # As the API does, and the configuration of conductors.
        super()._set(name, value.lower() if name == "conductor_group" and isinstance(value, str) else value)

    def read(self) -> JSONObject:
        """Return all current values; ``traits`` as a sorted list."""
        values = super().read()
        values["traits"] = sorted(values["traits"])
        return values

    def changes(self) -> JSONObject:
        """Return the changed columns of the nodes table, without traits."""
        changed = super().changes()
        changed.pop("traits", None)
        return changed

    def trait_changes(self) -> list[str] | None:
        """Return the complete new list of traits, sorted; None if it has not changed."""
        new = self._values["traits"]
        return None if new == self._original["traits"] else sorted(new)

    def _put(self, tokens: tuple[str, ...], value: object) -> None:
        if tokens[0] != "traits":
            super()._put(tokens, value)
        elif len(tokens) == 1:
            if not isinstance(value, (list, tuple)):
                raise InvalidParameterValue("/traits: must be a list of trait names")
            self.traits = self._checked_traits(value)
        elif tokens[1:] == ("-",):
            self.add_trait(value)
        else:
            raise documents.PointerError(documents.format_pointer(tokens),
                                         "write /traits (a list) or /traits/- (one more)")

    def extend(self, path: str, value: object, unique: bool = False) -> None:
        if self.path_tokens(path) == ("traits",):
            self.add_trait(value)
        elif self.path_tokens(path)[0] == "traits":
            raise documents.PointerError(path, "a trait has no parts")
        else:
            super().extend(path, value, unique)

    def delete(self, path: str) -> None:
        tokens = self.path_tokens(path, deleting=True)
        if tokens[0] != "traits":
            super().delete(path)
        elif len(tokens) == 1:
            self.traits = set()
        else:
            self.traits.discard("/".join(tokens[1:]))

    def add_trait(self, name: object) -> None:
        """Add one trait.

        :raises InvalidParameterValue: not a valid trait name, or the node would have too many
        """
        self.traits = self._checked_traits((*self.traits, name))

    @classmethod
    def value_problem(cls, name: str, value: Any) -> str | None:
        if name == "traits":
            valid = isinstance(value, (list, tuple)) and all(traits.is_trait(item) for item in value)
            return None if valid else "must be a list of trait names"
        reason = super().value_problem(name, value)
        if reason is not None or name != "name" or value is None:
            return reason
        if not _NAME.fullmatch(value) or is_uuid(value):
            return "must consist of letters, digits, '-', '.', '_' and '~', and not look like a UUID"
        return None

    @staticmethod
    def _checked_traits(names: Iterable[Any]) -> set[str]:
        checked = set()
        for name in names:
            if not traits.is_trait(name):
                raise InvalidParameterValue("/traits: a trait is CUSTOM_ and A-Z, 0-9 and _, or one of os-traits")
            checked.add(name)
        if len(checked) > traits.MAX_PER_NODE:
            raise InvalidParameterValue(f"/traits: a node has at most {traits.MAX_PER_NODE} traits")
        return checked


class PortDraft(_Draft, Port):
    """A port of a node that hooks and rules change."""

    fields = PORT
    writable = PORT.writable_by_rules
    objects = PORT.json
