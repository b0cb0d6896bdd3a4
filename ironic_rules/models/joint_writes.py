"""Writes of many authors that are done, noted and described at once: each sets keys of a draft's objects to scalars.

Most rules that match do nothing else. One after the other, 100 of them cost an eighth of an inspection; together, a
quarter of that (``doc/source/contributor/benchmarks.rst``).
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from ironic_rules.models import inspections, json_values, pointer, secrets


class _Missing(enum.Enum):
    MISSING = enum.auto()


#: In the place of a value that does not exist; also in the copy of a task, which has copies of all other objects.
MISSING: Any = _Missing.MISSING


class KeyWrite(NamedTuple):
    """A write of one key of a field.

    :ivar action: what the author does
    :ivar place: that of the value among the values of all writes
    """

    action: object
    name: str
    key: str
    place: int


class Description(NamedTuple):
    """What the authors of joint writes have changed, as JSON.

    :ivar text: the entries of their rules with commas between them; or, if ``is_short``, ``rules`` and ``values`` of
        what :func:`ironic_rules.models.inspections.rules` makes them of: less than half of that
    :ivar size: bytes of the entries
    """

    text: bytes
    size: int
    is_short: bool


class _NewKeys(NamedTuple):
    """What is the same of each short description.

    :ivar rules: as JSON: the UUID of each rule, followed by the path of each write and the place of its value
    :ivar size: bytes of the entries, without values
    """

    rules: bytes
    size: int


class JointWrites:
    """The writes of several authors, no two of the same key. Immutable, shared by threads.

    :param authors: each has a ``uuid``, is not sensitive, and writes at least one key, all of one field; in order
    :ivar fields: for each field the keys that are written, and the places of their values
    """

    def __init__(self, authors: Sequence[tuple[Any, Sequence[KeyWrite]]]) -> None:
        self.authors = tuple((author, tuple(writes)) for author, writes in authors)
        fields: dict[str, tuple[list[str], list[int]]] = {}
        for write in self._writes():
            keys, places = fields.setdefault(write.name, ([], []))
            keys.append(write.key)
            places.append(write.place)
        self.fields = tuple((name, tuple(keys), tuple(places)) for name, (keys, places) in fields.items())
        self._known: dict[frozenset[str], _NewKeys] = {}

    def _writes(self) -> Iterator[KeyWrite]:
        return itertools.chain.from_iterable(writes for _, writes in self.authors)

    # What follows is only needed if there is a history.

    @functools.cached_property
    def uuids(self) -> frozenset[str]:
        """The UUIDs of all authors."""
        return frozenset(author.uuid for author, _ in self.authors)

    @functools.cached_property
    def paths(self) -> str | None:
        """The paths of all writes as one text; None if any of them is that of a secret."""
        paths = [pointer.format((write.name, write.key)) for write in self._writes()]
        return None if any(map(secrets.is_secret_path, paths)) else "\n".join(paths)

    def _of_new_keys(self, copied: frozenset[str]) -> _NewKeys:
        """Return what is the same of each description if none of the keys existed.

        :param copied: as :meth:`description`
        """
        if (known := self._known.get(copied)) is not None:
            return known
        rules: list[list[Any]] = []
        of_first = set(copied)
        for author, writes in self.authors:
            name = writes[0].name
            rules.append([author.uuid])
            # As models.authorship does when a field was copied first: it compares it as a whole.
            for write in reversed(writes) if name in of_first else writes:
                rules[-1] += pointer.format((name, write.key)), write.place
            of_first.discard(name)
        shown = orjson.dumps(inspections.of_joint(rules, [None] * len(self._times)))
        found = self._known[copied] = _NewKeys(
            orjson.dumps(rules), len(shown) - len("[]") - sum(self._times) * len("null"))
        return found

    @functools.cached_property
    def _times(self) -> Sequence[int]:
        """How many writes are of each value."""
        times = Counter(write.place for write in self._writes())
        return [times[place] for place in range(max(times) + 1)]

    @functools.cached_property
    def _has_one_each(self) -> bool:
        return all(len(writes) == 1 for _, writes in self.authors)

    def description(self, values: Sequence[Any], before: Sequence[Sequence[Any] | None],
                    copied: Collection[str]) -> Description | None:
        """Return what each author has changed, for the history of inspections.

        :param values: those that were written
        :param before: for each field what its keys had, None if it had none of them
        :param copied: the fields that were not changed before since they were read
        :returns: None: it is found with :mod:`ironic_rules.models.authorship` only, because an author has several
            writes, the order of whose operations depends on which keys existed
        """
        if not any(before):
            known = self._of_new_keys(frozenset(copied))
            texts = [orjson.dumps(value) for value in values]
            size = known.size + sum([times * len(text) for times, text in zip(self._times, texts, strict=True)])
            return Description(
                b'"rules":%b,"values":[%b]' % (known.rules, b",".join(texts)), size, is_short=True)
        if not self._has_one_each:
            return None
        text = b",".join(
            orjson.dumps({"rule": author.uuid, "sensitive": False, "changes": {"node": [changed]} if changed else {}})
            for (author, _), changed in zip(self.authors, self._changes(values, before), strict=True))
        return Description(text, len(text), is_short=False)

    def changed_by(self, values: Sequence[Any], before: Sequence[Sequence[Any] | None]) -> Collection[str]:
        """Return the UUIDs of the authors that have changed something; parameters as for :meth:`description`."""
        if not any(before):
            return self.uuids
        changed = self._changes(values, before)
        return {author.uuid for author, writes in self.authors
                if list(filter(None, itertools.islice(changed, len(writes))))}

    def _changes(self, values: Sequence[Any],
                 before: Sequence[Sequence[Any] | None]) -> Iterator[dict[str, Any] | None]:
        """Yield the operation (RFC 6902) of each write; None if it has left the value as it was."""
        for write, old in self.in_order(before):
            new = values[write.place]
            if old is MISSING:
                yield {"op": "add", "path": pointer.format((write.name, write.key)), "value": new}
            elif json_values.same(old, new):
                yield None
            else:
                yield {"op": "replace", "path": pointer.format((write.name, write.key)), "value": new}

    def in_order(self, before: Sequence[Sequence[Any] | None]) -> Iterator[tuple[KeyWrite, Any]]:
        """Yield each write with what its key had, which may be ``MISSING``."""
        olds = {name: itertools.repeat(MISSING) if old is None else iter(old)
                for (name, _, _), old in zip(self.fields, before, strict=True)}
        for write in self._writes():
            yield write, next(olds[write.name])


@dataclass(frozen=True, slots=True)
class Written:
    """Joint writes that were done.

    :ivar values: what was written
    :ivar before: for each field what its keys had, None if it had none of them
    :ivar copied: what the fields had that were copied first
    """

    joint: JointWrites
    values: Sequence[Any]
    before: Sequence[Sequence[Any] | None]
    copied: Mapping[str, Any]

    def entries(self) -> Iterator[Any]:
        """Yield what a journal has of the same writes, one after the other."""
        olds = self.joint.in_order(self.before)
        copied = dict(self.copied)
        for author, writes in self.joint.authors:
            yield (author,)
            for action, name, key, _ in writes:
                yield action
                if name in copied:
                    yield None, name, copied.pop(name)
                yield name, key, next(olds)[1]

    def changed_by(self) -> Collection[str]:
        """Return the UUIDs of the authors that have changed something."""
        return self.joint.changed_by(self.values, self.before)

    def description(self) -> Description | None:
        """Return what each author has changed, as :meth:`JointWrites.description` does."""
        return self.joint.description(self.values, self.before, self.copied)
