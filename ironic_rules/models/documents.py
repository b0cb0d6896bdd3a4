"""JSON-like values (null, booleans, numbers, strings, lists, dicts): pointers into them, copies, and differences.

Functions on JSON pointers (RFC 6901) change the document in place. List positions are decimal indexes without leading
zeros; ``-`` is the position after the last element.

The difference of two values is an RFC 6902 patch. Parts that both sides share are not looked at: thousands of rules
each change little of one large object, and jsonpatch would compare all of it for each of them.
"""

from __future__ import annotations

import bisect
import copy
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from ironic_rules.exceptions import Invalid
from ironic_rules.text import printable

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class PointerError(Invalid):
    """``path`` cannot be resolved as the operation requires; ``reason`` says why, without any value."""

    message = "{path}: {reason}"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(None if path else reason, path=path, reason=reason)


def parse_pointer(path: str, *, relative: bool = False) -> tuple[str, ...]:
    """Split a pointer into unescaped tokens; ``""`` is the whole document, ``()``.

    :param relative: also accept a path without its first slash (``extra/a``), as Ironic's rules do, and one with dots
        instead of all slashes (``extra.a``)
    :raises PointerError: no slash at the start, or a ``~`` that is neither ``~0`` nor ``~1``
    """
    if path == "":
        return ()
    if path[0] != "/":
        if not relative:
            raise PointerError(path, "a JSON pointer starts with '/'")
        if "/" not in path and "." in path:
            return tuple(path.split("."))
        path = "/" + path
    if "~" not in path:
        return tuple(path[1:].split("/"))
    if _BAD_ESCAPE.search(path):
        raise PointerError(path, "'~' must be written '~0' (and '/' inside a key '~1')")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/"))


def format_pointer(tokens: Sequence[str | int]) -> str:
    """Join tokens into a pointer, escaping ``~`` and ``/``."""
    try:
        text = "/".join(tokens)  # type: ignore[arg-type]
    except TypeError:  # a position in a list
        text = "/".join(map(str, tokens))
    if "~" not in text and text.count("/") == len(tokens) - 1:
        return "/" + text
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def get(doc: Any, tokens: Sequence[str]) -> Any:
    """Return the value at ``tokens``.

    :raises PointerError: there is no such value
    """
    for depth in range(len(tokens)):
        doc = _child(doc, tokens, depth)
    return doc


def put(doc: object, tokens: Sequence[str], value: object, *, create: bool = False, insert: bool = False) -> None:
    """Set the value at ``tokens``; ``-`` (or the index one past the end) appends to a list.

    :param create: create missing dicts along the path (a list if the next token is ``-``)
    :param insert: an index inserts before the element, as RFC 6902 ``add`` does, instead of replacing it
    :raises PointerError: the path leads through a scalar or a missing element, or ``tokens`` is empty
    """
    if not tokens:
        raise PointerError("", "the whole document cannot be replaced")
    last = len(tokens) - 1
    for depth in range(last):
        token = tokens[depth]
        if create and isinstance(doc, dict) and token not in doc:
            doc[token] = [] if tokens[depth + 1] == "-" else {}
        doc = _child(doc, tokens, depth)
    if isinstance(doc, dict):
        doc[tokens[last]] = value
    elif isinstance(doc, list):
        index = len(doc) if tokens[last] == "-" else _index(tokens, last)
        if index > len(doc):
            raise PointerError(format_pointer(tokens), "the index is beyond the end of the list")
        if insert or index == len(doc):
            doc.insert(index, value)
        else:
            doc[index] = value
    else:
        raise PointerError(format_pointer(tokens[:last]), "neither an object nor a list")


def remove(doc: object, tokens: Sequence[str]) -> None:
    """Remove the value at ``tokens``.

    :raises PointerError: there is no such value, or ``tokens`` is empty
    """
    if not tokens:
        raise PointerError("", "the whole document cannot be removed")
    get(doc, tokens)
    parent = get(doc, tokens[:-1])
    del parent[tokens[-1] if isinstance(parent, dict) else _index(tokens, len(tokens) - 1)]


def unshare(doc: Any, tokens: Sequence[str]) -> None:
    """Replace each container below ``doc`` along ``tokens`` by a shallow copy of itself.

    Afterwards, a change in place at ``tokens`` does not affect other references to the old containers. Stops without
    an error at the first token that does not exist.
    """
    for token in tokens:
        key: Any = token
        if isinstance(doc, list):
            if _INDEX.fullmatch(token) is None or int(token) >= len(doc):
                return
            key = int(token)
        elif not isinstance(doc, dict) or token not in doc:
            return
        doc[key] = doc = copy.copy(doc[key])


def _child(doc: object, tokens: Sequence[str], depth: int) -> Any:
    token = tokens[depth]
    if isinstance(doc, dict):
        if token in doc:
            return doc[token]
        raise PointerError(format_pointer(tokens[:depth + 1]), "there is no such key")
    if isinstance(doc, list):
        index = _index(tokens, depth)
        if index < len(doc):
            return doc[index]
        raise PointerError(format_pointer(tokens[:depth + 1]), "the index is beyond the end of the list")
    raise PointerError(format_pointer(tokens[:depth]), "neither an object nor a list")


def _index(tokens: Sequence[str], depth: int) -> int:
    if _INDEX.fullmatch(tokens[depth]) is None:
        raise PointerError(format_pointer(tokens[:depth + 1]), "a list needs an index here")
    return int(tokens[depth])


#: A JSON value, to be read: code that needs to know more of it asks by ``isinstance``.
JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"
#: A JSON object whose keys are defined elsewhere: a schema or a table of fields has checked what the values are.
JSONObject: TypeAlias = dict[str, Any]

_SCALARS = frozenset({str, int, float, bool, type(None)})
#: Levels of lists and objects that orjson can write, and of a path that is shown if there are more.
_DEEPEST = 250
_DEEPEST_SHOWN = 8


def clone(value: object) -> Any:
    """Copy JSON-like data; several times faster than ``copy.deepcopy``."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clone(item) for item in value]
    return copy.copy(value) if isinstance(value, set) else value


def is_int64(value: int) -> bool:
    """Return whether an integer is one that JSON bodies and inventories can have: of 64 bits, with or without sign."""
    return -(2**63) <= value < 2**64


def same(a: JSON, b: JSON) -> bool:
    """Compare JSON-like data; unlike ``==``, true is not 1 at any depth (their JSON differs)."""
    if a is b:
        return True
    kind, other = a.__class__, b.__class__
    if kind in _SCALARS and other in _SCALARS:
        is_equal: bool = a == b
        return is_equal and (kind is other or bool not in (kind, other))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b and same(item, b[key]) for key, item in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def unstorable(value: object) -> tuple[tuple[str, ...], str] | None:
    """Return where in ``value`` something is that JSON does not have, and what it is; None if there is nothing.

    Keys that are not texts are shown in the path; no value is quoted.
    """
    try:
        orjson.dumps(value)
        # orjson writes NaN and infinity as null.
        json.dumps(value, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError) as exc:
        return _find_unstorable(value, (), _DEEPEST) or ((), printable(exc))
    return None


def _find_unstorable(value: object, path: tuple[str, ...], levels: int) -> tuple[tuple[str, ...], str] | None:
    if isinstance(value, (dict, list, tuple)):
        if not levels:
            return path[:_DEEPEST_SHOWN], f"is nested deeper than {_DEEPEST} levels"
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            below = (*path, printable(key, 64))
            if isinstance(value, dict) and not isinstance(key, str):
                return below, f"has a key of type {type(key).__name__}"
            if problem := _find_unstorable(item, below, levels - 1):
                return problem
            if isinstance(key, str) and _has_surrogates(key):
                return below, "has a key with lone surrogate characters"
        return None
    reason = _not_json(value)
    return None if reason is None else (path, reason)


def _not_json(value: object) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a finite number"
    if isinstance(value, str):
        return "has lone surrogate characters" if _has_surrogates(value) else None
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        is_number = isinstance(value, int)
        return "is an integer of more than 64 bits" if is_number else f"is of type {type(value).__name__}"
    return None


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def append(doc: object, tokens: tuple[str, ...], value: JSON, unique: bool) -> None:
    """Append to the list at ``tokens`` of ``doc`` in place, creating it if missing or null.

    :raises PointerError: the value there is not a list
    """
    try:
        present = get(doc, tokens)
    except PointerError:
        present = None
    if present is None:
        put(doc, tokens, [value], create=True)
    elif not isinstance(present, list):
        raise PointerError(format_pointer(tokens), "not a list")
    elif not (unique and any(same(value, item) for item in present)):
        present.append(value)


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
    operations: list[JSONObject] = [] if most is None else _Few(most)
    _compare(before, after, path, operations)
    return operations


def difference_of_sets(before: Collection[str], after: Collection[str], path: tuple[str, ...]) -> list[JSONObject]:
    """Return the operations that make the sorted list of one set of that of the other: one for each text.

    :param path: where both are in the document of the patch
    """
    texts = sorted(before)
    operations: list[JSONObject] = []
    for text in sorted(set(before).difference(after), reverse=True):
        operations.append({"op": "remove", "path": format_pointer((*path, texts.index(text)))})
        texts.remove(text)
    for text in sorted(set(after).difference(before)):
        place = bisect.bisect(texts, text)
        token = place if place < len(texts) else "-"
        operations.append({"op": "add", "path": format_pointer((*path, token)), "value": text})
        texts.insert(place, text)
    return operations


def _compare(before: JSON, after: JSON, path: tuple[str, ...], operations: list[JSONObject]) -> None:
    if before is after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                operations.append({"op": "remove", "path": format_pointer((*path, key))})
        for key, value in after.items():
            if key not in before:
                operations.append({"op": "add", "path": format_pointer((*path, key)), "value": value})
            elif value is not (old := before[key]) and not (value.__class__ is str and old == value):
                _compare(old, value, (*path, str(key)), operations)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, operations)
    elif not same(before, after):
        operations.append({"op": "replace", "path": format_pointer(path), "value": after})


def _compare_lists(before: list[JSON], after: list[JSON], path: tuple[str, ...], operations: list[JSONObject]) -> None:
    common = min(len(before), len(after))
    for index in range(common):
        old, value = before[index], after[index]
        if value is not old and not (value.__class__ is str and old == value):
            _compare(old, value, (*path, str(index)), operations)
    for index in reversed(range(common, len(before))):
        operations.append({"op": "remove", "path": format_pointer((*path, index))})
    for value in after[common:]:
        operations.append({"op": "add", "path": format_pointer((*path, "-")), "value": value})
