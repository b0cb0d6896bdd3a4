"""JSON Patch (RFC 6902) on the fields of a resource, with the extensions that Ironic's clients rely on.

In addition to the RFC: ``replace`` works on a field that is null; ``add`` below an object field that is null creates
the object; ``remove`` of a whole field sets its default. The result is a new document; the original is unchanged.
``******`` in place of a secret is refused: a client that returns a reply would overwrite the secret.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ironic_rules.api import body, schema
from ironic_rules.exceptions import Invalid, Problem
from ironic_rules.models import documents, secrets
from ironic_rules.models.documents import JSON, JSONObject
from ironic_rules.text import printable

_MAX_PATH = 1024
#: Maximum number of levels of lists and objects of a patched document, as of a request body.
MAX_DEPTH = 100
#: Maximum bytes of JSON that all ``copy`` operations of a patch may add: each of them can double the document.
MAX_COPIED = 1_048_576
_ADDRESS = schema.Text(max_length=_MAX_PATH, min_length=1, multiline=True)
#: Body of a PATCH.
BODY = schema.List(schema.Object({
    "op": schema.Enum("add", "replace", "remove", "test", "copy", "move"), "path": _ADDRESS, "from": _ADDRESS,
    "value": schema.Anything(nullable=True)}, required=("op", "path")), max_items=1000)


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One operation; ``path`` and ``source`` are unescaped tokens, the first of which is the field."""

    op: str
    path: tuple[str, ...]
    value: JSON = None
    source: tuple[str, ...] = ()


def operations(body: Iterable[Mapping[str, Any]], *, aliases: Mapping[str, str] | None = None) -> list[PatchOperation]:
    """Return the operations of a patch that passed ``BODY``.

    :param aliases: other names of fields, e.g. ``{"action": "actions"}``
    :raises Invalid: 400, with the pointer of each operation that is malformed
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
            except documents.PointerError as error:
                problems.append(Problem(f"/{index}/path", error.reason))
            else:
                parsed.append(PatchOperation(op, path, item.get("value"), source))
    if problems:
        raise Invalid(problems=problems)
    return parsed


def apply(document: Mapping[str, JSON], patch: Iterable[PatchOperation], *, defaults: Mapping[str, object],
          read_only: Collection[str] = (), required: Collection[str] = ()) -> JSONObject:
    """Return ``document`` with ``patch`` applied, all of it or nothing.

    :param document: field -> value; operations may touch only these fields
    :param defaults: field -> its value after ``remove``; None where a field is not listed
    :param read_only: fields that exist but must not be patched (``test`` may read them)
    :param required: fields that cannot be removed or set to null
    :raises Invalid: 400, with the index of the operation and the pointer that failed; also if the result is
        nested too deeply, or too much is copied
    """
    patching = _Patching(copy.deepcopy(dict(document)), defaults, read_only, required)
    for index, operation in enumerate(patch):
        try:
            patching.apply(operation)
        except documents.PointerError as error:
            raise Invalid(problems=[Problem(f"/{index}{printable(error.path, 256)}", error.reason)]) from error
    return patching.document


def touched(patch: Iterable[PatchOperation]) -> set[str]:
    """Return the fields that the operations write."""
    written = {operation.path[0] for operation in patch if operation.op != "test"}
    return written | {operation.source[0] for operation in patch if operation.op == "move"}


def _tokens(path: str, aliases: Mapping[str, str]) -> tuple[str, ...]:
    tokens = documents.parse_pointer(path)
    if not tokens or not tokens[0]:
        raise documents.PointerError(path, "must name a field")
    return aliases.get(tokens[0], tokens[0]), *tokens[1:]


@dataclass(slots=True)
class _Patching:
    """A document while a patch is applied; the arguments are those of :func:`apply`."""

    document: JSONObject
    defaults: Mapping[str, Any]
    read_only: Collection[str]
    required: Collection[str]
    copied: int = 0

    def apply(self, operation: PatchOperation) -> None:
        """Apply one operation.

        :raises PointerError: it cannot be applied; the document may be half changed
        """
        path, source = operation.path, operation.source
        for tokens in filter(None, (path, source)):
            if tokens[0] not in self.document:
                raise documents.PointerError(documents.format_pointer(tokens), "is not a field that can be patched")
        for tokens in _written(operation):
            if tokens[0] in self.read_only:
                raise documents.PointerError(documents.format_pointer(tokens), "is read-only")
        match operation.op:
            case "test":
                if not documents.same(documents.get(self.document, path), operation.value):
                    raise documents.PointerError(documents.format_pointer(path), "does not have the value of the test")
            case "remove":
                self._remove(path)
            case "add" | "replace":
                self._write(operation.op, path, copy.deepcopy(operation.value))
            case "copy":
                self._write("add", path, self._copy_of(source))
            case "move":
                value = documents.get(self.document, source)
                if path[:len(source)] == source:
                    raise documents.PointerError(documents.format_pointer(path), "cannot be moved into itself")
                self._remove(source)
                self._write("add", path, value)

    def _copy_of(self, source: tuple[str, ...]) -> Any:
        value = documents.get(self.document, source)
        self.copied += len(orjson.dumps(value))
        if self.copied > MAX_COPIED:
            raise documents.PointerError(documents.format_pointer(source),
                                         f"the patch copies more than {MAX_COPIED} bytes")
        return copy.deepcopy(value)

    def _write(self, op: str, path: tuple[str, ...], value: JSON) -> None:
        if len(path) + body.depth(value, MAX_DEPTH) > MAX_DEPTH:
            raise documents.PointerError(documents.format_pointer(path), f"is nested deeper than {MAX_DEPTH} levels")
        if len(path) == 1:
            if value is None and path[0] in self.required:
                raise documents.PointerError(documents.format_pointer(path), "is required and cannot be null")
            self.document[path[0]] = value
            return
        if op == "replace":
            documents.get(self.document, path)
        elif self.document[path[0]] is None:
            self.document[path[0]] = [] if path[1] in ("-", "0") else {}
        documents.put(self.document, path, value, insert=op == "add")

    def _remove(self, path: tuple[str, ...]) -> None:
        if len(path) > 1:
            documents.remove(self.document, path)
        elif path[0] in self.required:
            raise documents.PointerError(documents.format_pointer(path), "is required and cannot be removed")
        else:
            self.document[path[0]] = copy.deepcopy(self.defaults.get(path[0]))


def _written(operation: PatchOperation) -> list[tuple[str, ...]]:
    if operation.op == "test":
        return []
    return [operation.path, operation.source] if operation.op == "move" else [operation.path]


def differs(old: JSON, new: JSON) -> bool:
    """Return whether two values differ as JSON: ``true`` is not ``1``, and ``1`` not ``1.0``."""
    if isinstance(old, (dict, list)) and isinstance(new, (dict, list)):
        return orjson.dumps(old, option=orjson.OPT_SORT_KEYS) != orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    return bool(old != new)


HIDDEN = "is a secret that a reply has hidden; send the secret itself"


def refuse_masks(new: Mapping[str, JSON], old: Mapping[str, JSON] | None = None) -> None:
    """Check what a request would store.

    :param new: field -> value
    :param old: the same fields as they are stored: what earlier versions have stored is not this request's fault
    :raises Invalid: 400, with the JSON pointer of every mask
    """
    masked = secrets.new_masks(new, old)
    if masked:
        raise Invalid(problems=[Problem(printable(where, 256), HIDDEN) for where in masked])
