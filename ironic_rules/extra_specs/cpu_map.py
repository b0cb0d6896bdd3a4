"""CPU maps, such as ``0-3,^2,8``: CPUs and ranges of them to include, or with ``^`` to exclude."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ironic_rules.text import printable

_ITEM = re.compile(r"\^?[0-9]+(?:-[0-9]+)*")
_SHOWN = 32


def problem(text: str, strict: bool) -> str | None:
    """Return the problem of a CPU map as a sentence, or None.

    What Nova takes as well, though it selects nothing that anybody can mean (``3-1``, ``0-3-5``), is wrong only if
    ``strict``.
    """
    return next(_problems(text, strict), None)


def _problems(text: str, strict: bool) -> Iterator[str]:
    if not text:
        yield "A CPU map has at least one CPU."
        return
    for number, item in enumerate(text.split(","), 1):
        reason = _wrong(item, strict)
        if reason:
            yield f"Part {number} of the CPU map, '{printable(item, _SHOWN)}', is wrong: {reason}"


def _wrong(item: str, strict: bool) -> str | None:
    if not item:
        return "there is nothing between, before or after commas."
    if item.isascii() and item.isdigit():
        return None
    if _ITEM.fullmatch(item) is None:
        return _malformed(item)
    if not strict:
        return None
    ends = item.lstrip("^").split("-")
    if len(ends) > 2:
        return "a range has two ends."
    if len(ends) == 2 and _magnitude(ends[0]) > _magnitude(ends[1]):
        return "the first CPU of a range is not greater than the last one."
    return None


def _malformed(item: str) -> str:
    if item != item.strip() or " " in item:
        return "there is white space in it."
    excluded = item.startswith("^")
    rest = item[1:] if excluded else item
    if not rest:
        return "no CPU follows the '^'."
    if "^" in rest:
        return "'^' stands once, before a CPU or a range."
    if rest.startswith("-"):
        return "a range begins with a CPU."
    if "-" in rest and not all(rest.split("-")):
        return "a range has two ends."
    return "CPUs are numbers of the digits 0 to 9."


def _magnitude(digits: str) -> tuple[int, str]:
    """Return what numbers compare by, without converting texts of any length to integers."""
    significant = digits.lstrip("0")
    return len(significant), significant
