"""JSON Patch (RFC 6902) on the fields of a resource, with what Ironic's clients rely on.

Besides the RFC: ``replace`` works on a field that is null; ``add`` creates an object field that is null on the way;
``remove`` of a whole field sets its default. The result is a new document; the original is untouched.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ironic_rules.api import schema
from ironic_rules.exceptions import InvalidPatch, Problem
from ironic_rules.models import pointer

_MAX_PATH = 1024
_ADDRESS = schema.Text(max_length=_MAX_PATH, min_length=1, multiline=True)
#: Body of a PATCH.
BODY = schema.List(schema.Object({
    "op": schema.Enum("add", "replace", "remove", "test", "copy", "move"), "path": _ADDRESS, "from": _ADDRESS,
    "value": schema.Anything(nullable=True)}, required=("op", "path")), max_items=1000)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; ``path`` and ``source`` are unescaped tokens, the first one the field."""

    op: str
    path: tuple[str, ...]
    value: Any = None
    source: tuple[str, ...] = ()


def operations(body: Iterable[Mapping[str, Any]], *, aliases: Mapping[str, str] | None = None) -> list[Operation]:
    """Return the operations of a patch that passed ``BODY``.

    :param aliases: other names of fields, e.g. ``{"action": "actions"}``
    :raises InvalidPatch: 400, with the pointer of each operation that is malformed
    """
    problems: list[Problem] = []
    parsed = []
    for index, item in enumerate(body):
        op = item["op"]
        if op in ("add", "replace", "test") and "value" not in item:
            problems.append(Problem(f"/{index}/value", "is required"))
        elif op in ("copy", "move") and "from" not in item:
            problems.append(Problem(f"/{index}/from", "is required"))
        else:
            try:
                path = _tokens(item["path"], aliases or {})
                source = _tokens(item["from"], aliases or {}) if op in ("copy", "move") else ()
            except pointer.PointerError as error:
                problems.append(Problem(f"/{index}/path", error.reason))
            else:
                parsed.append(Operation(op, path, item.get("value"), source))
    if problems:
        raise InvalidPatch(problems=problems)
    return parsed


def apply(document: Mapping[str, Any], patch: Iterable[Operation], *, defaults: Mapping[str, Any],
          read_only: Collection[str] = (), required: Collection[str] = ()) -> dict[str, Any]:
    """Return ``document`` with ``patch`` applied, all of it or nothing.

    :param document: field -> value; operations may touch only these fields
    :param defaults: field -> its value after ``remove``; None where a field is not listed
    :param read_only: fields that exist but must not be patched (``test`` may read them)
    :param required: fields that can not be removed or set to null
    :raises InvalidPatch: 400, with the index of the operation and the pointer that failed
    """
    result = copy.deepcopy(dict(document))
    for index, operation in enumerate(patch):
        try:
            _apply_one(result, operation, defaults, read_only, required)
        except pointer.PointerError as error:
            raise InvalidPatch(problems=[Problem(f"/{index}{schema.printable(error.path)}", error.reason)]) from error
    return result


def touched(patch: Iterable[Operation]) -> set[str]:
    """Return the fields that the operations write."""
    written = {operation.path[0] for operation in patch if operation.op != "test"}
    return written | {operation.source[0] for operation in patch if operation.op == "move"}


def _tokens(path: str, aliases: Mapping[str, str]) -> tuple[str, ...]:
    tokens = pointer.parse(path)
    if not tokens or not tokens[0]:
        raise pointer.PointerError(path, "must name a field")
    return aliases.get(tokens[0], tokens[0]), *tokens[1:]


def _apply_one(document: dict[str, Any], operation: Operation, defaults: Mapping[str, Any], read_only: Collection[str],
               required: Collection[str]) -> None:
    for tokens in filter(None, (operation.path, operation.source)):
        if tokens[0] not in document:
            raise pointer.PointerError(pointer.format(tokens), "is not a field that can be patched")
    for tokens in _written(operation):
        if tokens[0] in read_only:
            raise pointer.PointerError(pointer.format(tokens), "is read-only")
    match operation.op:
        case "test":
            if not _same(pointer.get(document, operation.path), operation.value):
                raise pointer.PointerError(pointer.format(operation.path), "does not have the value of the test")
        case "remove":
            _remove(document, operation.path, defaults, required)
        case "add" | "replace":
            _write(document, operation.op, operation.path, copy.deepcopy(operation.value), required)
        case "copy" | "move":
            value = copy.deepcopy(pointer.get(document, operation.source))
            if operation.op == "move":
                if operation.path[:len(operation.source)] == operation.source:
                    raise pointer.PointerError(pointer.format(operation.path), "can not be moved into itself")
                _remove(document, operation.source, defaults, required)
            _write(document, "add", operation.path, value, required)


def _written(operation: Operation) -> list[tuple[str, ...]]:
    if operation.op == "test":
        return []
    return [operation.path, operation.source] if operation.op == "move" else [operation.path]


def _write(document: dict[str, Any], op: str, path: tuple[str, ...], value: Any, required: Collection[str]) -> None:
    if len(path) == 1:
        if value is None and path[0] in required:
            raise pointer.PointerError(pointer.format(path), "is required and can not be null")
        document[path[0]] = value
        return
    if op == "replace":
        pointer.get(document, path)
    elif document[path[0]] is None:
        document[path[0]] = [] if path[1] in ("-", "0") else {}
    pointer.put(document, path, value, insert=op == "add")


def _remove(document: dict[str, Any], path: tuple[str, ...], defaults: Mapping[str, Any],
            required: Collection[str]) -> None:
    if len(path) > 1:
        pointer.remove(document, path)
    elif path[0] in required:
        raise pointer.PointerError(pointer.format(path), "is required and can not be removed")
    else:
        document[path[0]] = copy.deepcopy(defaults.get(path[0]))


def _same(left: Any, right: Any) -> bool:
    """Compare as JSON does: ``true`` is not ``1``."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
