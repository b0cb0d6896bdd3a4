"""Templates: ``text {inventory[cpu][count]} text``, parsed once into fields; data are never parsed.

A field is a name, steps, ``.key`` or ``[key]``, which are equivalent: a key of a mapping, or an index of a list, and
conversions: ``|lower``. Features of Python's format strings are not supported: no ``!r``, no format specs (``:>9``), no
nesting, no attributes of objects. ``{{`` and ``}}`` are literal braces.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ironic_rules.rules.conversions import CONVERSIONS, COUNT, MAX_CHAIN
from ironic_rules.text import nearest

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"\.([^.\[\]{}!:|\s]+)|\[([^\[\]{}]+)\]")
_CONVERSION = re.compile(r"\|([^.\[\]{}!:|\s]*)")
_KNOWN = f"known: {', '.join(CONVERSIONS)}"
#: Braces in a regular expression that are not a template.
QUANTIFIER = re.compile(r"\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)\}")
#: Longer texts are parsed each time: those in the cache may be of deleted rules.
_MAX_CACHED = 256
_ESCAPE = re.compile(r"\\(?:[pPx]\{[^{}]*\}|.)", re.DOTALL)


class TemplateError(ValueError):
    """A template is malformed. ``column`` counts from 1."""

    def __init__(self, column: int, reason: str) -> None:
        self.column = column
        super().__init__(f"column {column}: {reason}")


class ConversionError(TemplateError):
    """A template has a conversion that does not exist, or is written as in Python."""


@dataclass(frozen=True, slots=True)
class Field:
    """One ``{...}``: ``root`` is the name, ``steps`` the keys, ``text`` as written, ``column`` that of its brace.

    :ivar conversions: names of ``CONVERSIONS``, from left to right
    """

    root: str
    steps: tuple[str, ...]
    text: str
    column: int
    conversions: tuple[str, ...] = ()

    def column_of(self, number: int) -> int:
        """Return the column of a step's key, by the number of the step."""
        at = 1 + len(self.root)
        for step in self.steps[:number]:
            at += len(step) + (2 if self.text[at] == "[" else 1)
        return self.column + at + 1


def parse(text: str, regex: bool = False, begin: str = "") -> tuple[str | Field, ...]:
    """Split ``text`` into literal parts and fields; literal parts are never empty or adjacent.

    :param regex: the text is a regular expression: quantifiers, ``\\p{..}``, escaped and lone braces are literal
    :param begin: with what each field begins, its brace included, which is not double: all other braces are literal
    :raises TemplateError: it is malformed
    """
    return _cached(text, regex, begin) if len(text) <= _MAX_CACHED else _parsed(text, regex, begin)


def _parsed(text: str, regex: bool, begin: str) -> tuple[str | Field, ...]:
    parts: list[str | Field] = []
    literal: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if regex and (taken := _literal_of_regex(text, at)):
            literal.append(taken)
            at += len(taken)
        elif character not in "{}" or (begin and (text[at - 1:at] == "{" or not text.startswith(begin, at))):
            end = at + 1
            while end < len(text) and text[end] not in "{}\\":
                end += 1
            literal.append(text[at:end])
            at = end
        elif text.startswith(character * 2, at):
            literal.append(character)
            at += 2
        elif character == "}":
            raise TemplateError(at + 1, "a single '}'; write '}}' for a brace")
        else:
            if literal:
                parts.append("".join(literal))
                literal = []
            field, at = _field(text, at)
            parts.append(field)
    if literal:
        parts.append("".join(literal))
    return tuple(parts)


# Thousands of rules have the same few templates.
_cached = functools.lru_cache(maxsize=4096)(_parsed)


def _literal_of_regex(text: str, at: int) -> str:
    if text[at] == "\\":
        found = _ESCAPE.match(text, at)
        return found.group() if found else text[at]
    if text[at] == "{":
        if found := QUANTIFIER.match(text, at):
            return found.group()
        if not text.startswith("{{", at) and _NAME.match(text, at + 1) is None:
            return "{"
    if text[at] == "}" and not text.startswith("}}", at):
        return "}"
    return ""


def _field(text: str, start: int) -> tuple[Field, int]:
    name = _NAME.match(text, start + 1)
    if name is None:
        raise TemplateError(start + 2, "a name must follow '{'; write '{{' for a brace")
    at = name.end()
    steps: list[str] = []
    while (step := _STEP.match(text, at)) is not None:
        key = step.group(1) or step.group(2)
        if key[0] in "'\"":
            raise TemplateError(step.start() + 2, "keys are written without quotes")
        steps.append(key)
        at = step.end()
    conversions: tuple[str, ...] = ()
    if text.startswith("|", at):
        conversions, at = _conversions(text, at)
    if text.startswith("!", at):
        raise ConversionError(at + 1, (
            f"conversions are written with '|', as in {{inventory[hostname]|lower}}; {_KNOWN}"))
    if at < len(text) and text[at] == "}":
        return Field(name.group(), tuple(steps), text[start:at + 1], start + 1, conversions), at + 1
    raise TemplateError(*_complaint(text, start, at, bool(conversions)))


def _conversions(text: str, at: int) -> tuple[tuple[str, ...], int]:
    names: tuple[str, ...] = ()
    while (found := _CONVERSION.match(text, at)) is not None:
        name = found.group(1)
        if name not in CONVERSIONS:
            near = nearest(name, CONVERSIONS)
            hint = f"did you mean {near!r}?" if near else f"{_KNOWN}; a key that contains '|' needs brackets"
            raise ConversionError(found.start() + 2, f"there is no such conversion; {hint}")
        if len(names) == MAX_CHAIN:
            raise TemplateError(found.start() + 1, f"more than {MAX_CHAIN} conversions")
        if name == COUNT and names:
            raise TemplateError(found.start() + 2, f"{COUNT} must be the first conversion: others give no list")
        names += (name,)
        at = found.end()
    return names, at


def _complaint(text: str, start: int, at: int, is_converted: bool) -> tuple[int, str]:
    rest = text[at:at + 1]
    if rest == "":
        return start + 1, "this '{' is not closed; write '{{' for a brace"
    if is_converted:
        return at + 1, "expected '|' or '}' after a conversion"
    if rest == "[":
        inside = re.compile(r"[^\[\]{}]*").match(text, at + 1)
        after = inside.end() if inside else at + 1
        if text[after:after + 1] == "{":
            return after + 1, "a template inside a template is not possible"
        if text[after:after + 1] == "]":
            return after + 1, "the key is empty"
        return after + 1, "']' is missing"
    if rest == ":":
        return at + 1, "format specifications are not supported"
    if rest == "{":
        return at + 1, "a template inside a template is not possible"
    if rest == ".":
        return at + 2, "a key must follow '.'"
    return at + 1, "expected '.', '[', '|' or '}'"
