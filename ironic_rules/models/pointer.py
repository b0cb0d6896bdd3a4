"""JSON pointers (RFC 6901) over plain dicts and lists.

Functions change the document in place. List positions are decimal indexes without leading zeros; ``-`` is the
position after the last element.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from ironic_rules.exceptions import Invalid

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class PointerError(Invalid):
    """``path`` cannot be resolved as the operation requires; ``reason`` says why, without any value."""

    message = "{path}: {reason}"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(None if path else reason, path=path, reason=reason)


def parse(path: str, *, relative: bool = False) -> tuple[str, ...]:
    """Split a pointer into unescaped tokens; ``""`` is the whole document, ``()``.

    :param relative: also accept a path without its first slash (``extra/a``), as Ironic's rules do
    :raises PointerError: no slash at the start, or a ``~`` that is neither ``~0`` nor ``~1``
    """
    if path == "":
        return ()
    if path[0] != "/":
        if not relative:
            raise PointerError(path, "a JSON pointer starts with '/'")
        path = "/" + path
    if "~" not in path:
        return tuple(path[1:].split("/"))
    if _BAD_ESCAPE.search(path):
        raise PointerError(path, "'~' must be written '~0' (and '/' inside a key '~1')")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/"))


def format(tokens: Sequence[str | int]) -> str:
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


def put(doc: Any, tokens: Sequence[str], value: Any, *, create: bool = False, insert: bool = False) -> None:
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
            raise PointerError(format(tokens), "the index is beyond the end of the list")
        if insert or index == len(doc):
            doc.insert(index, value)
        else:
            doc[index] = value
    else:
        raise PointerError(format(tokens[:last]), "neither an object nor a list")


def remove(doc: Any, tokens: Sequence[str]) -> None:
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


def _child(doc: Any, tokens: Sequence[str], depth: int) -> Any:
    token = tokens[depth]
    if isinstance(doc, dict):
        if token in doc:
            return doc[token]
        raise PointerError(format(tokens[:depth + 1]), "there is no such key")
    if isinstance(doc, list):
        index = _index(tokens, depth)
        if index < len(doc):
            return doc[index]
        raise PointerError(format(tokens[:depth + 1]), "the index is beyond the end of the list")
    raise PointerError(format(tokens[:depth]), "neither an object nor a list")


def _index(tokens: Sequence[str], depth: int) -> int:
    if _INDEX.fullmatch(tokens[depth]) is None:
        raise PointerError(format(tokens[:depth + 1]), "a list needs an index here")
    return int(tokens[depth])
