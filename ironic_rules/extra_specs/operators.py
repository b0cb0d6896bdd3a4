"""What the scheduler's filters compare a host's capability or an aggregate's metadata with."""

from __future__ import annotations

_IN, _ALL_IN, _OR = "<in>", "<all-in>", "<or>"
_NUMBERS = frozenset({"=", "==", "!=", ">=", "<="})
_TEXTS = frozenset({"s==", "s!=", "s<", "s<=", "s>", "s>="})
OPERATORS = (_IN, _ALL_IN, _OR, *sorted(_NUMBERS), *sorted(_TEXTS))
_CONFUSED = frozenset({">", "<", "<>", "=>", "=<", "s=", "<and>", "<any>"})


def problem(text: str, strict: bool) -> str | None:
    """Return the problem of a comparison as a sentence, or None. Without an operator, a text is compared as it is.

    Nova stores what is malformed, and its scheduler then finds no host, or ignores a part of it.

    :param strict: makes no difference
    """
    words = text.split()
    if not words:
        return None
    first, operands = words[0], words[1:]
    if first in _CONFUSED:
        return f"There is no operator '{first}'; known: {', '.join(OPERATORS)}."
    if first == _OR:
        return _alternatives(words)
    if first == _ALL_IN:
        return _several(first, operands)
    if first == _IN or first in _TEXTS or first in _NUMBERS:
        return _one(first, operands)
    return _attached(text)


def _alternatives(words: list[str]) -> str | None:
    if len(words) % 2 or set(words[::2]) != {_OR} or _OR in words[1::2]:
        return "Each '<or>' is followed by one value, as in '<or> a <or> b'."
    return None


def _several(operator: str, operands: list[str]) -> str | None:
    if not operands:
        return f"A value follows '{operator}'."
    found = next((word for word in operands if word in OPERATORS), None)
    return f"'{found}' does not follow '{operator}'." if found else None


def _one(operator: str, operands: list[str]) -> str | None:
    if len(operands) != 1:
        return f"One value follows '{operator}'; the scheduler ignores what comes after it."
    if operator in _NUMBERS and not _is_number(operands[0]):
        return f"A number follows '{operator}'; texts are compared with 's==' and 's!='."
    return None


def _attached(text: str) -> str | None:
    found = next((operator for operator in OPERATORS if text.startswith(operator)), None)
    return f"A space follows '{found}'." if found else None


def _is_number(text: str) -> bool:
    digits = text.lstrip("+-").replace(".", "", 1)
    return len(text) - len(text.lstrip("+-")) <= 1 and digits.isascii() and digits.isdigit()
