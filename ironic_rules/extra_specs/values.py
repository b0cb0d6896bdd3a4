"""The values that an extra spec takes, compiled from its definition."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from ironic_rules.extra_specs import cpu_map, operators, page_size
from ironic_rules.extra_specs.problems import ENUM, PATTERN, RANGE, TYPE
from ironic_rules.text import nearest, printable

#: name: a function of (text, strict) that returns the problem of a value as a sentence, or None. What is not strict
#: takes all that Nova takes.
FORMATS: dict[str, Callable[[str, bool], str | None]] = {
    "cpu-map": cpu_map.problem,
    "page-size": page_size.problem,
    "scheduler-operators": operators.problem,
}
#: The words of oslo.utils' ``bool_from_string`` with ``strict``.
TRUE = ("1", "t", "true", "on", "y", "yes")
FALSE = ("0", "f", "false", "off", "n", "no")
_WORDS = frozenset(TRUE + FALSE)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
LOWEST, HIGHEST = -2**63, 2**63 - 1
#: Longer texts of digits are not converted: they have more than 64 bits, unless they are all zeros.
_MAX_DIGITS = 255
#: RE2 refuses an expression whose program needs more bytes. A definition's expressions are short.
_MAX_MEMORY = 1 << 20
_SHOWN = 64


class BadDefinition(ValueError):
    """A validator cannot work; the message is a sentence that says why."""


@dataclass(frozen=True)
class ValueFault:
    """The problem of a value: the parts of a ``SpecProblem`` that do not depend on the key.

    :ivar reason: the end of a sentence about the value
    """

    kind: str
    reason: str
    allowed: tuple[str, ...] = ()
    find_nearest: Callable[[], str | None] | None = None


class ValueRule(ABC):
    """What a value must be."""

    #: the values that are allowed, if they can be listed
    allowed: tuple[str, ...] = ()

    @abstractmethod
    def accepts(self, text: str) -> bool:
        """Return whether strict mode takes a value. It is what most checks need, and is fast."""

    @abstractmethod
    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        """Return the problem of a value that ``accepts`` refuses; None if it has none where it is not strict.

        :param shown: the value as it may be shown in a message, quoted
        """


class IntegerRule(ValueRule):
    """ASCII digits with an optional sign, within bounds."""

    def __init__(self, lowest: int, highest: int) -> None:
        self.lowest, self.highest = lowest, highest

    def accepts(self, text: str) -> bool:
        if len(text) < 19 and text.isascii() and text.isdigit():
            return self.lowest <= int(text) <= self.highest
        number = _number(text)
        return number is not None and self.lowest <= number <= self.highest

    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        if _INTEGER.fullmatch(text) is None:
            return ValueFault(TYPE, f"is {shown}, which is not an integer: {_why_no_integer(text)}.")
        number = _number(text)
        bound = f"at least {self.lowest}" if number is not None and number < self.lowest else f"at most {self.highest}"
        if number is None and text.startswith("-"):
            bound = f"at least {self.lowest}"
        return ValueFault(RANGE, f"is {shown}, which is out of range: it must be {bound}.")


class BooleanRule(ValueRule):
    """One of the words of oslo.utils, in upper or lower case, with or without blanks around it."""

    allowed = TRUE + FALSE

    def accepts(self, text: str) -> bool:
        return text in _WORDS or (len(text) < _MAX_DIGITS and text.strip(" ").lower() in _WORDS)

    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        reason = f"is {shown}, which is not a boolean: it must be one of {', '.join(self.allowed)}."
        return ValueFault(TYPE, reason, self.allowed, lambda: nearest(text.strip(), self.allowed))


class ChoiceRule(ValueRule):
    """One of the values that are listed."""

    def __init__(self, allowed: Iterable[str], aliases: Mapping[str, str] | None = None) -> None:
        """Take the values, and other words for them, which make upper and lower case the same for all."""
        self.allowed = tuple(allowed)
        self._set = frozenset(self.allowed)
        self._folded = None if aliases is None else {**{value.lower(): value for value in self.allowed}, **aliases}

    def accepts(self, text: str) -> bool:
        return text in self._set or (self._folded is not None and text.lower() in self._folded)

    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        return ValueFault(ENUM, f"is {shown}, which is not one of {', '.join(self.allowed)}.", self.allowed,
                          lambda: self._nearest(text))

    def _nearest(self, text: str) -> str | None:
        if self._folded is None:
            return nearest(text, self.allowed)
        found = nearest(text, self._folded)
        return self._folded[found] if found else None


class PatternRule(ValueRule):
    """A text that a regular expression matches as a whole."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._match = compiled(pattern)

    def accepts(self, text: str) -> bool:
        return self._match.fullmatch(text) is not None

    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        return ValueFault(PATTERN, f"is {shown}, which does not match the regular expression {self.pattern}.")


class FormatRule(ValueRule):
    """A text of a form that a parser knows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._problem = FORMATS[name]

    def accepts(self, text: str) -> bool:
        return self._problem(text, True) is None

    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        reason = self._problem(text, strict)
        return ValueFault(PATTERN, f"is {shown}. {reason}") if reason else None


class TextRule(ValueRule):
    """Any text."""

    def accepts(self, text: str) -> bool:
        return True

    def fault(self, text: str, strict: bool, shown: str) -> ValueFault | None:
        return None


def rule_of(value: Mapping[str, Any]) -> ValueRule:
    """Return the rule for the ``value`` of a definition.

    :raises BadDefinition: there is none
    """
    if not isinstance(value, Mapping):
        raise BadDefinition("Its value is not described by a mapping.")
    kind = value.get("type")
    if kind is int:
        return _integer(value)
    if kind is bool:
        return BooleanRule()
    if kind is not str:
        raise BadDefinition(f"The type of its value is {printable(kind, _SHOWN)}, not int, bool or str.")
    given = [key for key in ("enum", "pattern", "format") if value.get(key) is not None]
    if len(given) > 1:
        raise BadDefinition(f"Its value has {' and '.join(given)}, of which only one can be.")
    if value.get("enum") is not None:
        return _choice(value["enum"], value.get("aliases"))
    if value.get("aliases") is not None:
        raise BadDefinition("Its value has 'aliases' without 'enum'.")
    if value.get("pattern") is not None:
        return PatternRule(value["pattern"])
    if value.get("format") is not None:
        if value["format"] not in FORMATS:
            raise BadDefinition(
                f"There is no format {printable(value['format'], _SHOWN)}; known: {', '.join(FORMATS)}.")
        return FormatRule(value["format"])
    return TextRule()


def compiled(pattern: object) -> Any:
    """Return the expression for a pattern of RE2.

    :raises BadDefinition: RE2 does not know it
    """
    if not isinstance(pattern, str):
        raise BadDefinition("A pattern is not a text.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as exc:
        raise BadDefinition(f"The pattern {printable(pattern, _SHOWN)} is not one of RE2: "
                            f"{printable(exc, _SHOWN)}.") from exc


def _integer(value: Mapping[str, Any]) -> IntegerRule:
    bounds = {"min": LOWEST, "max": HIGHEST}
    for name in bounds:
        bound = value.get(name)
        if bound is None:
            continue
        if not isinstance(bound, int) or isinstance(bound, bool) or not LOWEST <= bound <= HIGHEST:
            raise BadDefinition(f"'{name}' of its value is not an integer of 64 bits.")
        bounds[name] = bound
    if bounds["min"] > bounds["max"]:
        raise BadDefinition("'min' of its value is greater than 'max': no value is allowed.")
    return IntegerRule(bounds["min"], bounds["max"])


def _choice(values: object, aliases: object) -> ChoiceRule:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise BadDefinition("'enum' of its value is not a list.")
    allowed = [*values]
    if not allowed or not all(isinstance(item, str) for item in allowed):
        raise BadDefinition("'enum' of its value is not a list of texts with at least one.")
    if aliases is None:
        return ChoiceRule(allowed)
    if not isinstance(aliases, Mapping) or not all(
            isinstance(alias, str) and alias == alias.lower() and value in allowed for alias, value in aliases.items()):
        raise BadDefinition("'aliases' of its value is not an object of texts in lower case, each with one of 'enum'.")
    return ChoiceRule(allowed, aliases)


def _number(text: str) -> int | None:
    """Return the integer that a text is, None if it is none or has far more than 64 bits."""
    if len(text) > _MAX_DIGITS or _INTEGER.fullmatch(text) is None:
        return None
    return int(text)


def _why_no_integer(text: str) -> str:
    if not text:
        return "it is empty"
    if text != text.strip():
        return "there is white space before or after it"
    if "_" in text:
        return "underscores between digits are not allowed"
    if text.isdecimal() and not text.isascii():
        return "only the digits 0 to 9 are allowed"
    return "it consists of the digits 0 to 9, with or without a sign"
