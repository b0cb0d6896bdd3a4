"""The difference of two JSON values as a JSON Patch (RFC 6902)."""

from __future__ import annotations

from typing import Any

import orjson

from ironic_rules.models import pointer
from ironic_rules.models.json_values import JSONObject

Path = tuple[str | int, ...]


def diff(old: Any, new: Any, path: Path = ()) -> list[JSONObject]:
    """Return the operations (``add``, ``remove``, ``replace``) that make ``new`` of ``old``; none if they are equal.

    Small changes of lists and objects are told by item, unless the whole value is shorter. Numbers of different types
    differ, as their JSON does.

    :param path: of ``old`` in the document that is patched
    """
    if type(old) is not type(new) or not isinstance(old, (dict, list)):
        return [] if type(old) is type(new) and old == new else [_replace(path, new)]
    changes = _of_objects(old, new, path) if isinstance(old, dict) else _of_lists(old, new, path)
    whole = [_replace(path, new)]
    return whole if len(changes) > 1 and path and _size(changes) >= _size(whole) else changes


def _of_objects(old: JSONObject, new: JSONObject, path: Path) -> list[JSONObject]:
    changes: list[JSONObject] = [
        {"op": "remove", "path": pointer.format((*path, key))} for key in old if key not in new]
    for key, value in new.items():
        if key in old:
            changes += diff(old[key], value, (*path, key))
        else:
            changes.append({"op": "add", "path": pointer.format((*path, key)), "value": value})
    return changes


def _of_lists(old: list[Any], new: list[Any], path: Path) -> list[JSONObject]:
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and not diff(old[start], new[start]):
        start += 1
    end = 0
    while end < shorter - start and not diff(old[-1 - end], new[-1 - end]):
        end += 1
    both = shorter - end
    changes: list[JSONObject] = []
    for index in range(start, both):
        changes += diff(old[index], new[index], (*path, index))
    # From the end, so that the indexes of those before stay the same.
    changes += [{"op": "remove", "path": pointer.format((*path, index))}
                for index in reversed(range(both, len(old) - end))]
    changes += [{"op": "add", "path": pointer.format((*path, index)), "value": new[index]}
                for index in range(both, len(new) - end)]
    return changes


def _replace(path: Path, value: Any) -> JSONObject:
    return {"op": "replace", "path": pointer.format(path), "value": value}


def _size(changes: list[JSONObject]) -> int:
    return len(orjson.dumps(changes))
