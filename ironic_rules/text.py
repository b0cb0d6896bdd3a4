"""Text of others, made safe for a log line or an error message; checks of texts; errors without their frames.

The sender of a request or an inventory controls every character of it. Such text reaches logs, ``last_error`` and
replies only through :func:`printable`.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Collection, Iterable

#: Maximum number of characters of one text in a log line or a message, unless the caller gives another limit.
MAX_LENGTH = 2048
#: Maximum number of characters of a longer text, such as ``last_error``; MariaDB's TEXT holds 65,535 bytes.
MAX_MESSAGE = 4096
#: Replace texts that would reveal a sensitive rule: those of others after it, and that of its own failure.
WITHHELD = "details are withheld, a sensitive rule matched"
RULE_WITHHELD = "details are withheld, the rule is sensitive"
#: Longer names are not compared with known ones.
_MAX_NAME = 64
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def printable(value: object, limit: int = MAX_LENGTH) -> str:
    """Return ``value`` as one line of at most ``limit`` characters (and a note about the rest).

    Characters that are not printable, including line ends and terminal controls, are shown as backslash escapes.
    """
    try:
        text = str(value)
    except Exception:  # noqa: BLE001  # an error of a plug-in, which has to be reported anyway
        text = f"{type(value).__name__} without a text"
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
            for character in shown)[:limit]
    rest = len(text) - limit
    return f"{shown}… ({rest} more characters)" if rest > 0 else shown


def enumeration(values: Collection[str], limit: int = 8) -> str:
    """Return ``values`` separated by commas, at most ``limit`` of them, each printable; ``none`` if there are none."""
    shown = ", ".join(printable(value, 64) for value in list(values)[:limit])
    rest = len(values) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"


def in_parentheses(name: str | None) -> str:
    """Return what follows an identifier whose object has a name: " (name)"; "" without one."""
    return f" ({printable(name)})" if name else ""


def pointer_token(name: str) -> str:
    """Return ``name`` as a token of a JSON pointer (RFC 6901), printable and of at most 64 characters."""
    return printable(name, 64).replace("~", "~0").replace("/", "~1")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of the known names, for "did you mean"; None if none is similar."""
    if len(name) > _MAX_NAME:
        return None
    folded = {_folded(item): item for item in names}
    matches = difflib.get_close_matches(_folded(name), list(folded), n=1)
    return folded[matches[0]] if matches else None


def misspelt(name: str, names: Iterable[str]) -> str | None:
    """Return the known name of which ``name`` is a misspelling; None if it resembles none, or is one of them.

    Unlike :func:`nearest`, for names where a similar one means something else: one typing error is allowed in four
    characters, and two in eight or more.
    """
    folded, allowed = _folded(name), min(2, len(name) // 4)
    similar = [(number, item) for item in sorted(names) if abs(len(item) - len(name)) <= allowed
               and 0 < (number := _typing_errors(folded, _folded(item))) <= allowed] if len(name) <= _MAX_NAME else []
    return min(similar)[1] if similar else None


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")


def _typing_errors(first: str, other: str) -> int:
    """Return how many characters must be added, left out, replaced or swapped with the next to get the other text."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, character in enumerate(first, 1):
        current = [row]
        for column, expected in enumerate(other, 1):
            number = min(last[column] + 1, current[-1] + 1, last[column - 1] + (character != expected))
            if row > 1 and column > 1 and (first[row - 2], character) == (expected, other[column - 2]):
                number = min(number, before[column - 2] + 1)
            current.append(number)
        before, last = last, current
    return last[-1]


def installation_of(extra: str) -> str:
    """Return how to install an optional dependency of this package: an extra in ``setup.cfg``.

    From the checkout, because no package index has this package: an attacker could register its name there.
    """
    return f"in the folder of the checkout, run: pip install '.[{extra}]'"


def is_uuid(text: object) -> bool:
    """Return whether ``text`` is a UUID in its canonical form, 8-4-4-4-12 hexadecimal digits."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def is_storable(text: str) -> bool:
    """Return whether every supported database can store ``text``: no NUL and no lone surrogates."""
    return "\x00" not in text and (
        text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text))


def forget_locals(error: BaseException) -> None:
    """Clear the variables of the frames that an error and its causes have passed.

    Some of those frames refer to the error (SQLAlchemy's do), which refers to the frames: cycles, with all data of a
    request or a report, which stay in memory until the garbage collector runs.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
