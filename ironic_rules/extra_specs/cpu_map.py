"""CPU maps, such as ``0-3,^2,8``: CPUs and ranges of them to include, or with ``^`` to exclude."""

from __future__ import annotations

from ironic_rules.text import printable

_SHOWN = 32


def problem(text: str, strict: bool) -> str | None:
    """Return the problem of a CPU map as a sentence, or None. The time is linear in the length of ``text``.

    What Nova takes as well, though it has no meaning (``3-1``, ``0-3-5``), is a problem only if ``strict``.
    """
    if not text:
        return "A CPU map has at least one CPU."
    parts = text.split(",")
    for number, part in enumerate(parts, 1):
        if not all(map(_is_number, _ends(part))):
            return _sentence(number, part, _malformed(part))
    if strict:
        for number, part in enumerate(parts, 1):
            ends = _ends(part)
            if len(ends) > 2:
                return _sentence(number, part, "a range has two ends.")
            if _magnitude(ends[0]) > _magnitude(ends[-1]):
                return _sentence(number, part, "the first CPU of a range is not greater than the last one.")
    return None


def _ends(part: str) -> list[str]:
    return part.removeprefix("^").split("-")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _sentence(number: int, part: str, reason: str) -> str:
    return f"Part {number} of the CPU map, '{printable(part, _SHOWN)}', is wrong: {reason}"


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
