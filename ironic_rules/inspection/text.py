"""Text from strangers, made fit for a log line or an error message."""

from __future__ import annotations

from collections.abc import Collection

MAX_LENGTH = 2048


def printable(value: object, limit: int = MAX_LENGTH) -> str:
    """Return ``value`` as one line of at most ``limit`` characters (and a note about the rest).

    Everything that is not printable, line ends and terminal controls included, shows as a backslash escape.
    """
    text = str(value)
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text[:limit])
    rest = len(text) - limit
    return f"{shown[:limit]}… ({rest} more characters)" if rest > 0 else shown[:limit]


def enumeration(values: Collection[str], limit: int = 8) -> str:
    """Return ``values`` separated by commas, at most ``limit`` of them, each printable; ``none`` if there are none."""
    shown = ", ".join(printable(value, 64) for value in list(values)[:limit])
    rest = len(values) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"
