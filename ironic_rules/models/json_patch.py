"""The difference of two JSON-like values as an RFC 6902 patch.

Parts that both sides share are not looked at: thousands of rules each change little of one large object, and jsonpatch
would compare all of it for each of them.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection

from ironic_rules.models import pointer
from ironic_rules.models.json_values import JSON, JSONObject, same


class TooManyOperations(Exception):
    """A patch has more operations than were wanted."""


class _Few(list[JSONObject]):
    """A list of operations that refuses to become longer than ``most``."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def append(self, operation: JSONObject) -> None:
        if len(self) >= self._most:
            raise TooManyOperations
        super().append(operation)


def difference(before: JSON, after: JSON, path: tuple[str, ...] = (), *, most: int | None = None) -> list[JSONObject]:
    """Return the operations (``add``, ``remove``, ``replace``) that make ``after`` of ``before``.

    :param path: where both are in the document of the patch
    :param most: maximum number of operations; None: any
    :raises TooManyOperations: there are more
    """
    found: list[JSONObject] = [] if most is None else _Few(most)
    _compare(before, after, path, found)
    return found


def difference_of_sets(before: Collection[str], after: Collection[str], path: tuple[str, ...]) -> list[JSONObject]:
    """Return the operations that make the sorted list of one set of that of the other: one for each text.

    :param path: where both are in the document of the patch
    """
    kept = sorted(before)
    found: list[JSONObject] = []
    for text in sorted(set(before).difference(after), reverse=True):
        found.append({"op": "remove", "path": pointer.format((*path, kept.index(text)))})
        kept.remove(text)
    for text in sorted(set(after).difference(before)):
        place = bisect.bisect(kept, text)
        found.append({"op": "add", "path": pointer.format((*path, place if place < len(kept) else "-")), "value": text})
        kept.insert(place, text)
    return found


def _compare(before: JSON, after: JSON, path: tuple[str, ...], found: list[JSONObject]) -> None:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                found.append({"op": "remove", "path": pointer.format((*path, key))})
        for key, value in after.items():
            if key not in before:
                found.append({"op": "add", "path": pointer.format((*path, key)), "value": value})
            elif value is not (old := before[key]) and not (value.__class__ is str and old == value):
                _compare(old, value, (*path, str(key)), found)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, found)
    elif not same(before, after):
        found.append({"op": "replace", "path": pointer.format(path), "value": after})


def _compare_lists(before: list[JSON], after: list[JSON], path: tuple[str, ...], found: list[JSONObject]) -> None:
    common = min(len(before), len(after))
    for index in range(common):
        old, value = before[index], after[index]
        if value is not old and not (value.__class__ is str and old == value):
            _compare(old, value, (*path, str(index)), found)
    for index in reversed(range(common, len(before))):
        found.append({"op": "remove", "path": pointer.format((*path, index))})
    for value in after[common:]:
        found.append({"op": "add", "path": pointer.format((*path, "-")), "value": value})
