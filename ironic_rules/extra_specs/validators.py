"""The definition of an extra spec: its name, the values it takes, and whether it is still supported.

A value may be an expression, with which the scheduler's filters compare a host's capability or an aggregate's metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SUPPORTED = "supported"
DEPRECATED = "deprecated"
REMOVED = "removed"
STATUSES = (SUPPORTED, DEPRECATED, REMOVED)


@dataclass(frozen=True)
class ExtraSpecValidator:
    """An extra spec of flavors, or a property of images.

    It is checked when it is added to a registry, and not before: a package can define many, of which a bad one is
    reported and the others work.

    :param name: its key; ``{parameter}`` stands for what varies, all else is literal
    :param description: what it does, reStructuredText
    :param value: which values it takes: ``type`` (``int``, ``bool`` or ``str``), ``description``; of an integer ``min``
        and ``max``; of a text ``enum`` (a list) or ``pattern`` (a regular expression of RE2 that the whole value
        matches) or ``format`` (one of ``ironic_rules.extra_specs.values.FORMATS``); beside ``enum``, ``aliases``: other
        words for its values, in lower case. With it, even if it is empty, upper and lower case are the same.
    :param parameters: for each parameter of the name: ``name``, ``description``, and ``type`` (``int`` or ``str``) or
        ``pattern`` or ``enum`` (a collection of texts, or a function that returns one when it is first needed)
    :param deprecated: whether it works, but should not be used any more
    :param removed: the release without it, such as ``Nova 21.0.0``; empty if it works
    :param replaced_by: the name of what to use instead, if anything has taken its place
    :param advice: one sentence on what to do instead, where a name does not say it all
    :param drivers: the virt drivers that take it into account; empty for all. Documentation, not enforced.
    :param requires: the names of extra specs that it needs or qualifies. Documentation, not enforced.
    :param see_also: the image property that does the same, or the extra spec of an image property
    :param refinable: whether plug-ins can define names that this one matches, as it takes almost any
    """

    name: str
    description: str
    value: Mapping[str, Any]
    parameters: Sequence[Mapping[str, Any]] = ()
    deprecated: bool = False
    removed: str = ""
    replaced_by: str = ""
    advice: str = ""
    drivers: Sequence[str] = ()
    requires: Sequence[str] = ()
    see_also: str = ""
    refinable: bool = False

    @property
    def status(self) -> str:
        """One of ``STATUSES``."""
        return REMOVED if self.removed else DEPRECATED if self.deprecated else SUPPORTED

    @property
    def namespace(self) -> str:
        """The part before the first colon of the name, without parameters; empty if there is no colon."""
        before, colon, _ = self.name.partition(":")
        return before.partition("{")[0] if colon else ""


_IN, _ALL_IN, _OR = "<in>", "<all-in>", "<or>"
_NUMBERS = frozenset({"=", "==", "!=", ">=", "<="})
_TEXTS = frozenset({"s==", "s!=", "s<", "s<=", "s>", "s>="})
OPERATORS = (_IN, _ALL_IN, _OR, *sorted(_NUMBERS), *sorted(_TEXTS))
_CONFUSED = frozenset({">", "<", "<>", "=>", "=<", "s=", "<and>", "<any>"})


def operator_problem(text: str, strict: bool) -> str | None:
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
    operator_word = next((word for word in operands if word in OPERATORS), None)
    return f"'{operator_word}' does not follow '{operator}'." if operator_word else None


def _one(operator: str, operands: list[str]) -> str | None:
    if len(operands) != 1:
        return f"One value follows '{operator}'; the scheduler ignores what comes after it."
    if operator in _NUMBERS and not _is_number(operands[0]):
        return f"A number follows '{operator}'; texts are compared with 's==' and 's!='."
    return None


def _attached(text: str) -> str | None:
    leading = next((operator for operator in OPERATORS if text.startswith(operator)), None)
    return f"A space follows '{leading}'." if leading else None


def _is_number(text: str) -> bool:
    digits = text.lstrip("+-").replace(".", "", 1)
    return len(text) - len(text.lstrip("+-")) <= 1 and digits.isascii() and digits.isdigit()
