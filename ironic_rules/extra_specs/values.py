"""The values that an extra spec takes, compiled from its definition, and the problems of a value, as data.

CPU maps are lists such as ``0-3,^2,8``: CPUs and ranges of them to include, or with ``^`` to exclude. Sizes of memory
pages are a word, or a number with a unit.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import re2

from ironic_rules.extra_specs import validators
from ironic_rules.models.documents import JSONObject
from ironic_rules.text import nearest, pointer_token, printable

_SHOWN_CPUS = 32


def cpu_map_problem(text: str, strict: bool) -> str | None:
    """Return the problem of a CPU map as a sentence, or None. The time is linear in the length of ``text``.

    A text without meaning that Nova accepts (``3-1``, ``0-3-5``) is a problem only if ``strict``.
    """
    if not text:
        return "A CPU map has at least one CPU."
    parts = text.split(",")
    for number, part in enumerate(parts, 1):
        if not all(map(_is_number, _ends(part))):
            return _cpu_sentence(number, part, _malformed_cpus(part))
    if strict:
        for number, part in enumerate(parts, 1):
            ends = _ends(part)
            if len(ends) > 2:
                return _cpu_sentence(number, part, "a range has two ends.")
            if _magnitude(ends[0]) > _magnitude(ends[-1]):
                return _cpu_sentence(number, part, "the first CPU of a range is not greater than the last one.")
    return None


def _ends(part: str) -> list[str]:
    return part.removeprefix("^").split("-")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _cpu_sentence(number: int, part: str, reason: str) -> str:
    return f"Part {number} of the CPU map, '{printable(part, _SHOWN_CPUS)}', is wrong: {reason}"


def _malformed_cpus(item: str) -> str:
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
    """Return the key by which numbers compare, without converting texts of any length to integers."""
    significant = digits.lstrip("0")
    return len(significant), significant


PAGE_SIZES = ("large", "small", "any")
_SIZE = re.compile(r"[0-9]+(?:[kKMGT]i?)?(?:b|bit|B)?")


def page_size_problem(text: str, strict: bool) -> str | None:
    """Return the problem of a page size as a sentence, or None. ``0`` is wrong only if ``strict``."""
    if text in PAGE_SIZES:
        return None
    if _SIZE.fullmatch(text) is None:
        return _malformed_size(text)
    if strict and not text.rstrip("kKMGTibtB").strip("0"):
        return "A page has more than 0 bytes."
    return None


def _malformed_size(text: str) -> str:
    words = ", ".join(PAGE_SIZES)
    if not text:
        return f"A page size is one of {words}, or a number with or without a unit."
    if text.lower() in PAGE_SIZES:
        return f"The words {words} are written in lower case."
    if not text[0].isascii() or not text[0].isdigit():
        return f"A page size is one of {words}, or begins with a digit."
    if "." in text:
        return "The number is an integer."
    return "After the number comes a unit: k, K, M, G or T, with or without i, then b, bit, B or nothing."


#: There is no such key.
UNKNOWN = "unknown"
#: The value is not of the type: not an integer, not a boolean, not a text.
TYPE = "type"
#: An integer is too low or too high, or a text too long.
RANGE = "range"
#: The value is not one of those allowed.
ENUM = "enum"
#: The value has not the form that it must have.
PATTERN = "pattern"
#: The key no longer works, or may cease to. Never a reason to refuse anything.
DEPRECATED = "deprecated"
#: The key is given more than once. Only what is no object can have it: a file, or arguments of a command.
DUPLICATE = "duplicate"
KINDS = (UNKNOWN, TYPE, RANGE, ENUM, PATTERN, DEPRECATED, DUPLICATE)

#: Maximum number of characters of a key, and of a value, as in Nova's database.
MAX_LENGTH = 255


@dataclass(frozen=True)
class SpecProblem:
    """One problem of one extra spec.

    :ivar key: the extra spec's name as given, printable
    :ivar pointer: JSON pointer to it below the object that was checked, or below the prefix given to the check
    :ivar kind: one of ``KINDS``
    :ivar reason: one sentence, without a hint
    :ivar allowed: the values that are allowed, where they are few enough to be listed; empty where not
    :ivar find_nearest: finds the nearest valid key or value, or None; called when it is needed, as it takes longer than
        the check
    """

    key: str
    pointer: str
    kind: str
    reason: str
    allowed: tuple[str, ...] = ()
    find_nearest: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)

    @functools.cached_property
    def nearest(self) -> str | None:
        """The nearest valid key (of an unknown one) or value; None if there is none that resembles it."""
        return self.find_nearest() if self.find_nearest else None

    @property
    def text(self) -> str:
        """The reason, with the nearest valid key or value if there is one: for people."""
        return f"{self.reason} Did you mean '{self.nearest}'?" if self.nearest else self.reason

    def to_wire(self) -> JSONObject:
        """Return the problem as JSON-like data."""
        return {"key": self.key, "pointer": self.pointer, "kind": self.kind, "text": self.text,
                "allowed": list(self.allowed), "nearest": self.nearest}


def problem_of(key: object, prefix: str, kind: str, reason: str, allowed: tuple[str, ...] = (),
               find_nearest: Callable[[], str | None] | None = None) -> SpecProblem:
    """Return a problem of the extra spec ``key``, which can be of any type and any length.

    :param prefix: JSON pointer to the object that the extra spec is in
    """
    return SpecProblem(printable(key, MAX_LENGTH), f"{prefix}/{pointer_token(str(key))}", kind, reason, allowed,
                       find_nearest)


#: name: a function of (text, strict) that returns the problem of a value as a sentence, or None. What is not strict
#: takes all that Nova takes.
FORMATS: dict[str, Callable[[str, bool], str | None]] = {
    "cpu-map": cpu_map_problem,
    "page-size": page_size_problem,
    "scheduler-operators": validators.operator_problem,
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


#: Keys of values that limit them, by type.
_CONSTRAINTS: Mapping[object, Collection[str]] = {
    int: ("min", "max"), bool: (), str: ("enum", "pattern", "format", "aliases")}


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
    """The constraint of a value."""

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
        choice = nearest(text, self._folded)
        return self._folded[choice] if choice else None


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
    if kind not in (int, bool, str):
        raise BadDefinition(f"The type of its value is {printable(kind, _SHOWN)}, not int, bool or str.")
    refuse_unknown(value, {"type", "description", *_CONSTRAINTS[kind]}, f"Its value, of type {kind.__name__},")
    if kind is int:
        return _integer(value)
    if kind is bool:
        return BooleanRule()
    constraints = [key for key in ("enum", "pattern", "format") if value.get(key) is not None]
    if len(constraints) > 1:
        raise BadDefinition(f"Its value has {' and '.join(constraints)}, of which only one can be.")
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


def refuse_unknown(described: Mapping[str, object], valid: Collection[str], subject: str) -> None:
    """Refuse what a definition says and nothing would check; a key with None says nothing.

    :raises BadDefinition: the description has another key
    """
    for key, value in described.items():
        if value is not None and key not in valid:
            near = nearest(str(key), valid)
            hint = f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(valid))}."
            raise BadDefinition(f"{subject} cannot have '{printable(key, _SHOWN)}'; {hint}")


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


def _integer(value: Mapping[str, object]) -> IntegerRule:
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
