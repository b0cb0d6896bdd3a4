"""CPU maps, such as ``0-3,^2,8``: CPUs and ranges of them to include, or with ``^`` to exclude."""

from __future__ import annotations

import re

from ironic_rules.text import printable

_ITEM = re.compile(r"\^?[0-9]++(?:-[0-9]++)*+")
#: All parts but the last one, as far as they are well formed. No part is looked at twice.
_ITEMS = re.compile(r"(?:\^?[0-9]++(?:-[0-9]++)*+,)*+")
_RANGE = re.compile(r"([0-9]++)-([0-9]++)(-[0-9-]++)?+")
_SHOWN = 32


def problem(text: str, strict: bool) -> str | None:
    """Return the problem of a CPU map as a sentence, or None.

    What Nova takes as well, though it has no meaning (``3-1``, ``0-3-5``), is a problem only if ``strict``.
    """
    if not text:
        return "A CPU map has at least one CPU."
    end = _end(text)
    rest = text[end:]
    if _ITEM.fullmatch(rest) is None:
        return _sentence(text, end, _malformed(rest.partition(",")[0]))
    if strict:
        for found in _RANGE.finditer(text):
            if found[3]:
                return _sentence(text, found.start(), "a range has two ends.")
            if _magnitude(found[1]) > _magnitude(found[2]):
                return _sentence(text, found.start(), "the first CPU of a range is not greater than the last one.")
    return None


def _end(text: str) -> int:
    """Return where the first part begins that is not well formed, or the last one."""
    found = _ITEMS.match(text)
    return found.end() if found else 0


def _sentence(text: str, place: int, reason: str) -> str:
    """Return a sentence about the part of a CPU map that has a place in it."""
    start = text.rfind(",", 0, place) + 1
    item = text[start:].partition(",")[0]
    number = text.count(",", 0, start) + 1
    return f"Part {number} of the CPU map, '{printable(item, _SHOWN)}', is wrong: {reason}"


def _malformed(item: str) -> str:
    if not item:
        return "there is nothing between, before or after commas."
    if item != item.strip() or " " in item:
        return "there is white space in it."
    rest = item.removeprefix("^")
    if not rest:
        return "no CPU follows the '^'."
    if "^" in rest:
        return "'^' stands once, before a CPU or a range."
    if rest.startswith("-"):
        return "a range begins with a CPU."
    if rest.endswith("-") or "--" in rest:
        return "a range has two ends."
    return "CPUs are numbers of the digits 0 to 9."


def _magnitude(digits: str) -> tuple[int, str]:
    """Return what numbers compare by, without converting texts of any length to integers."""
    significant = digits.lstrip("0")
    return len(significant), significant
