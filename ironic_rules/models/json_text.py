"""JSON texts of others: agents, BMCs, and files. Their depth is limited before anything parses them.

Parsers that call themselves for each level end in RecursionError, and so does what later walks through the value.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from ironic_rules.models.documents import JSON, JSONObject, format_pointer

#: Maximum number of levels of lists and objects. Documents of BMCs and results of agents have a dozen.
MAX_LEVELS = 100
_NO_BACKSLASH = re.compile(rb"[^\\]")
#: Bytes that are looked at together: what finds strings makes an object of each, 50 times the size of the shortest.
_WINDOW = 64 * 1024
#: Objects become lists, so that one pair of brackets stands for each of both.
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
#: Keys that a text names, and characters of each.
_NAMED, _SHOWN = 4, 64


def parse(text: str, most: int = MAX_LEVELS) -> Any:
    """Return the value of a JSON text.

    The caller limits the size of the text: it has read it.

    :param most: maximum number of levels of lists and objects
    :raises ValueError: the text is not JSON, or nested more deeply
    """
    check_depth(text.encode("utf-8", "replace"), most)
    return json.loads(text)


def check_depth(raw: bytes, most: int) -> None:
    """Check the depth of a JSON text in UTF-8 without parsing it; of what is not JSON, the result is undefined.

    :param most: maximum number of levels of lists and objects
    :raises ValueError: there are more, or so many brackets that are not closed
    """
    if raw.count(b"[") + raw.count(b"{") <= most:
        return
    brackets = b"".join(outline.translate(_BRACKETS, _NO_BRACKETS) for outline in outlines(raw))
    for _ in range(most):
        # The innermost level is removed.
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    if brackets.count(b"[") > (0 if b"[]" in brackets else most):
        raise ValueError(f"it is nested deeper than {most} levels")


def outlines(raw: bytes) -> Iterator[bytes]:
    """Yield valid JSON in pieces, with one quotation mark in the place of each string.

    In a text that is not JSON, they are something between what is outside of its strings.
    """
    is_in_string = False
    start = 0
    while start < len(raw):
        # A piece does not end between a backslash and the character that it escapes.
        last = _NO_BACKSLASH.search(raw, start + _WINDOW - 1)
        end = last.end() if last else len(raw)
        parts = raw[start:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        # Parts are outside and inside of strings in turns. A string is replaced where it ends.
        if not is_in_string:
            yield b'"'.join(parts[0::2])
        elif len(parts) > 1:
            yield b'"' + b'"'.join(parts[1::2])
        is_in_string ^= len(parts) % 2 == 0
        start = end


#: Integers that parsers of JSON keep exactly: orjson makes floats of larger ones.
_INT64 = range(-(2**63), 2**64)
_SURROGATE = re.compile("[\ud800-\udfff]")
_TWICE = "has the key {} more than once; the last value is used"


class Oddity(NamedTuple):
    """A place of a JSON text that no strict parser accepts.

    :ivar where: JSON pointer
    :ivar is_unusable: whether the value in its place is only the text that was sent, such as ``NaN``; else it is usable
    """

    where: str
    problem: str
    is_unusable: bool


class _Unread(str):
    """The text that was sent in the place of a number which JSON does not have."""

    __slots__ = ()


class _Repeated(dict[str, JSON]):
    """An object with the ``keys_sent`` more than once."""

    keys_sent: list[str]


def read_tolerantly(raw: bytes, most: int) -> tuple[JSON, list[Oddity]]:
    """Return the value of a text that is nearly JSON, as agents and collectors send it, and what is odd in it.

    The value can be written as JSON. NaN, infinities, and numbers beyond 64 bits are the texts that were sent; octets
    that are not UTF-8 are backslash escapes; of a key that an object has more than once the last value is kept, as all
    parsers do; a byte order mark and control characters in strings are accepted.

    :param most: maximum number of levels of lists and objects
    :returns: the value; the oddities in the order of their places
    :raises ValueError: the text is not JSON, or nested more deeply
    """
    check_depth(raw, most)
    text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    value = json.loads(text, strict=False, parse_constant=_Unread, parse_int=_integer, parse_float=_float,
                       object_pairs_hook=_object)
    return _settled(value)


def _integer(digits: str) -> int | str:
    return number if len(digits) <= 20 and (number := int(digits)) in _INT64 else _Unread(digits)


def _float(digits: str) -> float | str:
    return number if math.isfinite(number := float(digits)) else _Unread(digits)


def _object(pairs: list[tuple[str, JSON]]) -> JSONObject:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    repeated = _Repeated(value)
    repeated.keys_sent = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
    return repeated


#: The place of a value: that of its container and the key there; None: the whole.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


def _settled(top: JSON) -> tuple[JSON, list[Oddity]]:
    """Return a value of plain JSON types, and what was odd in it. Pointers are made only of what is odd."""
    oddities: list[Oddity] = []
    whole: list[Any] = [top]
    pending: list[tuple[Any, _Place]] = [(whole, None)]
    while pending:
        container, place = pending.pop()
        for key, item in list(enumerate(container) if container.__class__ is list else container.items()):
            here = (place, key)
            kind = item.__class__
            if kind is str and _SURROGATE.search(item):
                item = container[key] = _SURROGATE.sub(_escaped, item)
                oddities.append(Oddity(_pointer(here), "is not UTF-8; the octets that are not are escaped", False))
            elif kind is _Unread:
                container[key] = str(item)
                oddities.append(Oddity(_pointer(here), "is no number of JSON of at most 64 bits", True))
            elif kind is _Repeated:
                named = ", ".join(repr(_SURROGATE.sub(_escaped, text)[:_SHOWN]) for text in item.keys_sent[:_NAMED])
                oddities.append(Oddity(_pointer(here), _TWICE.format(named), False))
                item = container[key] = dict(item)
            if item.__class__ is dict and any(map(_SURROGATE.search, item)):
                item = container[key] = {_SURROGATE.sub(_escaped, name): value for name, value in item.items()}
                oddities.append(Oddity(_pointer(here), "has a key that is not UTF-8; its octets are escaped", False))
            if item.__class__ is dict or item.__class__ is list:
                pending.append((item, here))
    return whole[0], sorted(oddities)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xdc00:02x}" if 0xdc80 <= code <= 0xdcff else f"\\u{code:04x}"


def _pointer(place: _Place) -> str:
    """Return the JSON pointer of a place; the outermost step is that of the list around the whole."""
    steps: list[str | int] = []
    while place is not None:
        place, step = place
        steps.append(step)
    return format_pointer(steps[-2::-1])
