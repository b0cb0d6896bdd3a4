"""Conversions of values in templates, ``{inventory[hostname]|slug}``: functions of plain values.

The docstring of each is its section of the reference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from ironic_rules.models import traits
from ironic_rules.models.json_values import is_int64
from ironic_rules.rules.errors import OperandError

#: Maximum number of conversions of one field.
MAX_CHAIN = 4
#: Maximum number of characters of a node's name, and of the result of ``slug``.
MAX_SLUG = 255
_NOT_IN_WORDS = re.compile(r"[^a-z0-9]+")
#: A sign, and the digits after any zeros; int() is slow for many digits, and refuses thousands even if they are zeros.
_INTEGER = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,20})")

Conversion = Callable[[Any], str | int]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return str(value)
    raise OperandError("must be a string, a number, true or false")


def _words(text: str) -> list[str]:
    """Return the runs of ASCII letters and digits, in lower case, of the decomposed text."""
    if not text.isascii():
        # One character at a time: normalization puts marks in an order, and needs quadratic time for many of them.
        decomposed = "".join(unicodedata.normalize("NFKD", character) for character in text)
        text = "".join(character for character in decomposed if not unicodedata.category(character).startswith("M"))
    return [word for word in _NOT_IN_WORDS.split(text.casefold()) if word]


def slug(value: Any) -> str:
    """A name: lower-case ASCII letters, digits, and single hyphens between them.

    Letters lose their accents (``é`` is ``e``, ``ß`` is ``ss``); anything else between letters and digits becomes a
    hyphen. Cannot be evaluated if nothing or more than 255 characters would remain.

    .. conversion:: "Dell Inc. PowerEdge R740" -> dell-inc-poweredge-r740
    """
    result = "-".join(_words(_text(value)))
    if not 0 < len(result) <= MAX_SLUG:
        raise OperandError(f"must have letters or digits for a name of at most {MAX_SLUG} characters")
    return result


def trait(value: Any) -> str:
    """A custom trait: ``CUSTOM_``, then upper-case ASCII letters, digits, and single underscores between them.

    As ``slug`` with underscores and in upper case. A name that is already a valid trait, standard or custom, is
    unchanged, and ``CUSTOM_`` is not put before a text that begins with it. Cannot be evaluated if nothing or more than
    255 characters would remain.

    .. conversion:: "PowerEdge R740xd" -> CUSTOM_POWEREDGE_R740XD
    """
    text = _text(value)
    if traits.is_trait(text):
        return text
    words = _words(text)
    result = "_".join(words).upper()
    if not result.startswith("CUSTOM_"):
        result = f"CUSTOM_{result}"
    if not words or len(result) > traits.MAX_LENGTH:
        raise OperandError(f"must have letters or digits for a trait of at most {traits.MAX_LENGTH} characters")
    return result


def upper(value: Any) -> str:
    """The text in upper case, in any script.

    .. conversion:: rack7-é -> RACK7-É
    """
    return _text(value).upper()


def lower(value: Any) -> str:
    """The text in lower case, in any script.

    .. conversion:: PowerEdge -> poweredge
    """
    return _text(value).lower()


def integer(value: Any) -> int:
    """An integer, from a number without a fraction or from text.

    The text consists of the digits 0 to 9, with an optional sign before them and white space around; zeros in front are
    ignored. Cannot be evaluated for other text, ``12.0`` and ``0x1f`` included, for true and false, and for integers
    outside -2\\ :sup:`63` ... 2\\ :sup:`64` - 1.

    .. conversion:: " 0042 " -> 42
    """
    number = None
    if isinstance(value, str):
        found = _INTEGER.fullmatch(value.strip())
        number = int(found[1] + (found[2] or "0")) if found else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or not is_int64(number):
        raise OperandError("must be an integer of 64 bits, or its digits 0 to 9 as text")
    return number


def count(value: Any) -> int:
    """How many items a list or an object has.

    It comes first: other conversions give no list. Cannot be evaluated for anything else, a text included.

    .. conversion:: ["sda", "sdb"] -> 2
    """
    if isinstance(value, (list, tuple, dict)):
        return len(value)
    raise OperandError("must be a list or an object")


COUNT = "count"
#: Each conversion by the name that a template gives it.
CONVERSIONS: dict[str, Conversion] = {
    COUNT: count, "int": integer, "lower": lower, "slug": slug, "trait": trait, "upper": upper}


def chain(names: tuple[str, ...]) -> Conversion:
    """Return the conversion that applies the named ones from left to right."""
    first, *others = (CONVERSIONS[name] for name in names)
    if not others:
        return first

    def convert(value: Any) -> str | int:
        value = first(value)
        for conversion in others:
            value = conversion(value)
        return value

    return convert


def result(names: tuple[str, ...]) -> type[str] | type[int]:
    """Return the type of what :func:`chain` gives; without conversions, that of a text."""
    return int if names and names[-1] in (COUNT, "int") else str
