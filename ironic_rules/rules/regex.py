"""Regular expressions by RE2: compilation, limits, and error texts for those that it refuses."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import re2

from ironic_rules.rules.errors import CannotEvaluate, OperandError
from ironic_rules.rules.limits import MAX_PROGRAM, MAX_REGEX

_HINTS = {
    "invalid perl operator": " (RE2 has no look-around)",
    "invalid escape sequence": " (RE2 has no back references)",
}
#: Maximum number of places in an expression that are tried as the position of RE2's error.
_MAX_PLACES = 10
#: Bytes that RE2 may use for one expression, most of them for its cache of states; with fewer it becomes slow for
#: harmless texts.
_MAX_MEMORY = 2 * 1024 * 1024
_TOO_LARGE = "pattern too large - compile failed"
#: A parenthesis, or what may contain a literal one: an escape, a quotation, a character class.
_PARENTHESES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|[()]", re.DOTALL)


class Pattern:
    """A regular expression for texts of at most ``most`` bytes: the time of a match grows with the text."""

    __slots__ = ("_fullmatch", "_most", "_search")

    def __init__(self, compiled: Any, most: int) -> None:
        self._search = compiled.search
        self._fullmatch = compiled.fullmatch
        self._most = most

    def is_in(self, text: bytes) -> bool:
        """Return whether it matches anywhere in ``text``.

        :raises CannotEvaluate: the text is too long
        """
        if len(text) > self._most:
            raise self._too_long()
        return self._search(text) is not None

    def is_in_any(self, texts: Sequence[bytes]) -> bool:
        """Return whether it matches anywhere in one of ``texts``, which together must not be too long."""
        if sum(map(len, texts)) > self._most:
            raise self._too_long()
        return any(self._search(text) is not None for text in texts)

    def is_all_of(self, text: bytes) -> bool:
        """Return whether it matches the whole of ``text``."""
        if len(text) > self._most:
            raise self._too_long()
        return self._fullmatch(text) is not None

    def _too_long(self) -> CannotEvaluate:
        return CannotEvaluate(f"the text is longer than the {self._most} bytes that regular expressions are applied to")


@functools.lru_cache(maxsize=512)
def compile_regex(text: str) -> Any:
    """Return a compiled RE2 pattern for UTF-8 bytes, with which the binding is a third faster than with strings.

    :raises OperandError: RE2 refuses it; the text has RE2's reason and, if RE2 quotes a part, its column
    """
    if len(text) > MAX_REGEX:
        raise OperandError(f"a regular expression has at most {MAX_REGEX} characters")
    try:
        compiled = _compiled(text)
        if compiled.programsize <= MAX_PROGRAM:
            return compiled
        reason = part = _TOO_LARGE
    except re2.error as exc:
        reason, part = _complaint(exc)
    except UnicodeEncodeError:
        raise OperandError("not a regular expression: lone surrogate characters") from None
    if reason == _TOO_LARGE:
        raise OperandError("the regular expression takes too much work: use fewer and smaller repetitions; "
                           "'.', [^..], \\D, \\S, \\W and \\p{..} are the costly ones to repeat")
    # RE2 quotes a part, or all, of the expression; the quotation is left out, because it may be a secret.
    column = _column(text, reason, part)
    place = "" if column is None else f" at column {column}"
    raise OperandError(f"not a regular expression that RE2 accepts: {reason}{_HINTS.get(reason, '')}{place}")


def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = _MAX_MEMORY
    return re2.compile(text.encode("utf-8"), options)


def _complaint(exc: Exception) -> tuple[str, str]:
    """Return RE2's reason, and the part of the expression that it quotes."""
    raw = exc.args[0] if exc.args else b""
    message = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    reason, _, part = message.partition(": ")
    return reason, part


def _column(text: str, reason: str, part: str) -> int | None:
    """Return the column of RE2's error in ``text``; None if it cannot be determined."""
    if reason == "trailing \\":
        return len(text)
    if reason == "missing ]":
        return len(text) - len(part) + 1
    if reason == "missing )":
        return _last_open(text)
    part = ")" if reason == "unexpected )" else part
    at = text.find(part) if part else -1
    if text.count(part) == 1:
        return at + 1
    # Of several places it is the first one at which RE2 reports the same error for the text up to there.
    for _ in range(_MAX_PLACES):
        if at < 0:
            return None
        try:
            _compiled(text[:at + len(part)])
        except re2.error as exc:
            if _complaint(exc)[0] == reason:
                return at + 1
        at = text.find(part, at + 1)
    return None


def _last_open(text: str) -> int | None:
    """Return the column of the last parenthesis that is never closed."""
    opened: list[int] = []
    for found in _PARENTHESES.finditer(text):
        if found.group() == "(":
            opened.append(found.start() + 1)
        elif found.group() == ")" and opened:
            opened.pop()
    return opened[-1] if opened else None
