"""The journal of a draft: in order, who writes, what each author does, and what was there before each change.

By it a draft can be undone, and the author of a field and each author's changes are known (``models.inspections``).
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ironic_rules.models.documents import JSONObject


class _Missing(enum.Enum):
    MISSING = enum.auto()


#: In the place of a value that does not exist; also in the copy of a task, which has copies of all other objects.
MISSING: Any = _Missing.MISSING


@dataclass(slots=True)
class Checkpoint:
    """From here on, ``author`` writes; None: code that does not say who it is."""

    author: Any

    def __deepcopy__(self, memo: dict[int, Any]) -> Checkpoint:
        # Rules cannot be copied; copies of a task have the same authors.
        return self


@dataclass(slots=True)
class Signature:
    """The action of the author from here on."""

    action: Any

    def __deepcopy__(self, memo: dict[int, Any]) -> Signature:
        return self


@dataclass(slots=True)
class FieldChange:
    """A field got another value; ``old`` is what it had, or ``MISSING``."""

    name: str
    old: Any

    def undo(self, values: JSONObject, private: set[str]) -> None:
        """Give the field its old value.

        :param values: those of all fields
        :param private: fields whose dict is referenced only here
        """
        private.discard(self.name)
        _restore(values, self.name, self.old)


@dataclass(slots=True)
class KeyChange:
    """A key of a field got another value, or parts of its value did; ``old`` is what it had, or ``MISSING``."""

    name: str
    key: str
    old: Any

    def undo(self, values: JSONObject, private: set[str]) -> None:
        """Give the key its old value; parameters as those of :meth:`FieldChange.undo`."""
        if self.name not in private:
            # In a copy: the field may have been read before.
            values[self.name] = dict(values[self.name])
            private.add(self.name)
        _restore(values[self.name], self.key, self.old)


Change: TypeAlias = FieldChange | KeyChange


def _restore(values: JSONObject, key: str, old: object) -> None:
    if old is MISSING:
        values.pop(key, None)
    else:
        values[key] = old


class DraftJournal:
    """The journal of a draft.

    :ivar entries: not to be changed but by this class and the draft
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[Checkpoint | Signature | Change] = []

    def author_of(self, name: str | None) -> tuple[Any, Any]:
        """Return who changed a field last and the action that did; None, None without an author.

        :param name: None: return who may be writing now
        """
        entries = iter(reversed(self.entries))
        if name is not None:
            entries = itertools.dropwhile(lambda entry: not isinstance(entry, Change) or entry.name != name, entries)
        action = None
        for entry in entries:
            if isinstance(entry, Checkpoint):
                return entry.author, action
            if isinstance(entry, Signature) and action is None:
                action = entry.action
        return None, None

    def take_back(self, position: int | None) -> Iterator[Change]:
        """Remove all entries since the last checkpoint, or the beginning; yield the changes, the last one first.

        :param position: remove all but so many entries, checkpoints too
        """
        entries = self.entries
        while entries and (not isinstance(entries[-1], Checkpoint) if position is None else len(entries) > position):
            entry = entries.pop()
            if isinstance(entry, Change):
                yield entry
