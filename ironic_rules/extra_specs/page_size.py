"""Sizes of memory pages: a word, or a number with a unit."""

from __future__ import annotations

import re

WORDS = ("large", "small", "any")
_SIZE = re.compile(r"[0-9]+(?:[kKMGT]i?)?(?:b|bit|B)?")


def problem(text: str, strict: bool) -> str | None:
    """Return the problem of a page size as a sentence, or None. ``0`` is wrong only if ``strict``."""
    if text in WORDS:
        return None
    if _SIZE.fullmatch(text) is None:
        return _malformed(text)
    if strict and not text.rstrip("kKMGTibtB").strip("0"):
        return "A page has more than 0 bytes."
    return None


def _malformed(text: str) -> str:
    words = ", ".join(WORDS)
    if not text:
        return f"A page size is one of {words}, or a number with or without a unit."
    if text.lower() in WORDS:
        return f"The words {words} are written in lower case."
    if not text[0].isascii() or not text[0].isdigit():
        return f"A page size is one of {words}, or begins with a digit."
    if "." in text:
        return "The number is an integer."
    return "After the number comes a unit: k, K, M, G or T, with or without i, then b, bit, B or nothing."
