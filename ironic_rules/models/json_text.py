"""JSON texts of others: agents, BMCs, and files. Their depth is limited before anything parses them.

Parsers that call themselves for each level end in RecursionError, and so does what later walks through the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

#: Maximum number of levels of lists and objects. Documents of BMCs and results of agents have a dozen.
MAX_LEVELS = 100
_NO_BACKSLASH = re.compile(rb"[^\\]")
#: Bytes that are looked at together: what finds strings makes an object of each, 50 times the size of the shortest.
_WINDOW = 64 * 1024
#: Objects become lists, so that one pair of brackets stands for each of both.
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


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
        left = brackets.replace(b"[]", b"")
        if len(left) == len(brackets):
            break
        brackets = left
    if brackets.count(b"[") > (0 if b"[]" in brackets else most):
        raise ValueError(f"it is nested deeper than {most} levels")


def outlines(raw: bytes) -> Iterator[bytes]:
    """Yield valid JSON in pieces, with one quotation mark in the place of each string.

    Of a text that is not JSON, they are something between what is outside of its strings.
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
