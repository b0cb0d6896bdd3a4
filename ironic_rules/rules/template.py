"""Templates: ``text {inventory[cpu][count]} text``, parsed once into fields; data are never parsed.

A field is a name, steps, ``.key`` or ``[key]``, which are equivalent: a key of a mapping, or an index of a list, and
conversions: ``|lower``, whose docstrings are their sections of the reference. Of node, ports and port groups, templates
read the fields of their drafts, and no others. Of Python's format strings there are ``!s``, ``!r`` and format
specifications (``:>9``), but no nesting and no attributes of objects. ``{{`` and ``}}`` are literal braces.

``{match[name]}`` is a named group of a regular expression: a condition ``matches`` with ``(?P<model>...)`` provides it.
When its rule reads one, the condition's check stores what all of its groups matched as ``match`` of the view. So a rule
sees only groups of its own conditions: their names are known when it is compiled, and each has been stored again when
all conditions are true.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironic_rules.models import addresses, traits
from ironic_rules.models.documents import is_int64
from ironic_rules.models.fields import Fields, Type
from ironic_rules.models.nodes import NODE
from ironic_rules.models.ports import PORT, PORT_GROUP
from ironic_rules.rules.errors import OperandError
from ironic_rules.text import enumeration, nearest

#: Maximum number of conversions of one field.
MAX_CHAIN = 4
#: Maximum number of characters of a node's name, and of the result of ``slug``.
MAX_SLUG = 255
_NOT_IN_WORDS = re.compile(r"[^a-z0-9]+")
#: A sign, and the digits after any zeros; int() is slow for many digits, and refuses thousands even if they are zeros.
_INTEGER = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,20})")

_HEXADECIMAL = re.compile(r"(?:0[xX])?([0-9A-Fa-f]{1,64})")

Conversion = Callable[[Any], Any]


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


def slug(value: object) -> str:
    """A name: lower-case ASCII letters, digits, and single hyphens between them.

    Letters lose their accents (``é`` is ``e``, ``ß`` is ``ss``); anything else between letters and digits becomes a
    hyphen. Cannot be evaluated if nothing or more than 255 characters would remain.

    .. conversion:: "Dell Inc. PowerEdge R740" -> dell-inc-poweredge-r740
    """
    result = "-".join(_words(_text(value)))
    if not 0 < len(result) <= MAX_SLUG:
        raise OperandError(f"must have letters or digits for a name of at most {MAX_SLUG} characters")
    return result


def trait(value: object) -> str:
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


def upper(value: object) -> str:
    """The text in upper case, in any script.

    .. conversion:: rack7-é -> RACK7-É
    """
    return _text(value).upper()


def lower(value: object) -> str:
    """The text in lower case, in any script.

    .. conversion:: PowerEdge -> poweredge
    """
    return _text(value).lower()


def integer(value: object) -> int:
    """An integer, from a number without a fraction or from text.

    The text consists of the digits 0 to 9, with an optional sign before them and white space around; zeros in front are
    ignored. Cannot be evaluated for other text, ``12.0`` and ``0x1f`` included, for true and false, and for integers
    outside -2\\ :sup:`63` ... 2\\ :sup:`64` - 1.

    .. conversion:: " 0042 " -> 42
    """
    number = None
    if isinstance(value, str):
        match = _INTEGER.fullmatch(value.strip())
        number = int(match[1] + (match[2] or "0")) if match else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or not is_int64(number):
        raise OperandError("must be an integer of 64 bits, or its digits 0 to 9 as text")
    return number


def gib(value: object) -> int | float:
    """GiB, from MiB: the unit of ``memory/physical_mb``. An integer if it is a whole number, else with two decimals.

    .. conversion:: 524288 -> 512
    """
    return _divided(value, 1024)


def gb(value: object) -> int | float:
    """GB of 10\\ :sup:`9` bytes, as vendors count them, from bytes. An integer if it is a whole number, else with two
    decimals.

    .. conversion:: 480103981056 -> 480.1
    """
    return _divided(value, 10**9)


def rounded(value: object) -> int:
    """The nearest integer of a number; that with a fraction of one half becomes the even one.

    .. conversion:: 502.93 -> 503
    """
    return round(_number(value))


def mac(value: object) -> str:
    """A MAC address in lower case with colons, from any notation that reports have; of an InfiniBand port, the one that
    its port has. Cannot be evaluated for other text.

    .. conversion:: 52-54-00-12-34-5E -> 52:54:00:12:34:5e
    """
    normalized = addresses.mac_of_interface(value, infiniband=True)
    if normalized is None:
        raise OperandError("must be a MAC address")
    return normalized


def address(value: object) -> str:
    """An IP address in its shortest form, without prefix length and zone. Cannot be evaluated for other text.

    .. conversion:: "fe80:0::1%eth0" -> "fe80::1"
    """
    parsed = addresses.parse(value)
    if parsed is None:
        raise OperandError("must be an IP address")
    return str(parsed)


def hexadecimal(value: object) -> str:
    """Hexadecimal digits in lower case, without ``0x`` before them: ids of PCI devices in one form.

    .. conversion:: "0x10DE" -> "10de"
    """
    match = _HEXADECIMAL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise OperandError("must be hexadecimal digits as text")
    return match[1].lower()


def count(value: object) -> int:
    """The number of items of a list or an object.

    Cannot be evaluated for anything else, a text included.

    .. conversion:: ["sda", "sdb"] -> 2
    """
    if isinstance(value, (list, tuple, dict)):
        return len(value)
    raise OperandError("must be a list or an object")


def any_true(value: object) -> bool:
    """Whether an item of a list is true; the others must be false.

    .. conversion:: [false, true] -> true
    """
    items = _items(value)
    if not all(isinstance(item, bool) for item in items):
        raise OperandError("must be a list of true and false")
    return any(items)


def total(value: object) -> int | float:
    """The sum of a list of numbers; 0 if it is empty.

    .. conversion:: [480, 480, 960.5] -> 1920.5
    """
    return sum(map(_number, _items(value)))


def most(value: object) -> Any:
    """The greatest item of a list of numbers, or the last one of a list of texts as they are sorted.

    .. conversion:: [1000, 25000, 10000] -> 25000
    """
    return _sorted(value)[-1]


def least(value: object) -> Any:
    """The least item of a list of numbers, or the first one of a list of texts as they are sorted.

    .. conversion:: [1000, 25000, 10000] -> 1000
    """
    return _sorted(value)[0]


def first(value: object) -> Any:
    """The first item of a list. Cannot be evaluated if it is empty.

    .. conversion:: ["sda", "sdb"] -> sda
    """
    items = _items(value)
    if not items:
        raise OperandError("must not be an empty list")
    return items[0]


def unique(value: object) -> list[Any]:
    """The list of texts, numbers, and true and false without repetitions.

    .. conversion:: ["8086:1572", "8086:1572", "10de:20b2"] -> ["8086:1572", "10de:20b2"]
    """
    # True equals 1, which is another value.
    return [item for _, item in dict.fromkeys((type(item), item) for item in map(_scalar, _items(value)))]


def in_order(value: object) -> list[Any]:
    """The list of numbers, or of texts, in ascending order.

    .. conversion:: ["b", "a"] -> ["a", "b"]
    """
    return _sorted(value) if _items(value) else []


def _number(value: object) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value
    raise OperandError("must be a number")


def _divided(value: object, unit: int) -> int | float:
    quotient = _number(value) / unit
    return int(quotient) if quotient.is_integer() else round(quotient, 2)


def _items(value: object) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    raise OperandError("must be a list")


def _scalar(value: Any) -> Any:
    if isinstance(value, (str, int, float)):
        return value
    raise OperandError("must be a list of texts, numbers, true and false")


def _sorted(value: object) -> list[Any]:
    items = _items(value)
    if not items:
        raise OperandError("must not be an empty list")
    if not all(isinstance(item, str) for item in items):
        items = [_number(item) for item in items]
    return sorted(items)


COUNT = "count"
#: Each conversion by the name that a template gives it.
CONVERSIONS: dict[str, Conversion] = {
    "address": address, "any": any_true, COUNT: count, "first": first, "gb": gb, "gib": gib, "hex": hexadecimal,
    "int": integer, "lower": lower, "mac": mac, "max": most, "min": least, "round": rounded, "slug": slug,
    "sort": in_order, "sum": total, "trait": trait, "unique": unique, "upper": upper}
#: Conversions of a list as a whole; others convert one value.
OF_LISTS = frozenset({"any", COUNT, "first", "max", "min", "sort", "sum", "unique"})
#: Conversions that give a list.
TO_LISTS = frozenset({"sort", "unique"})
_TYPES: Mapping[str, type[str] | type[int] | type[list[Any]]] = {
    **dict.fromkeys((COUNT, "int", "round"), int), **dict.fromkeys(TO_LISTS, list),
    **dict.fromkeys(("address", "hex", "lower", "mac", "slug", "trait", "upper"), str)}


def conversion_chain(names: tuple[str, ...]) -> Conversion:
    """Return the conversion that applies the named ones from left to right."""
    begin, *rest = (CONVERSIONS[name] for name in names)
    if not rest:
        return begin

    def convert(value: object) -> Any:
        value = begin(value)
        for conversion in rest:
            value = conversion(value)
        return value

    return convert


def conversion_result(names: tuple[str, ...]) -> type[str] | type[int] | type[list[Any]] | None:
    """Return the type of what :func:`conversion_chain` gives: that of a text without any, None if it is not known."""
    return _TYPES.get(names[-1]) if names else str


def chain_problem(names: tuple[str, ...], *, of_list: bool = False) -> str | None:
    """Return why the last of the named conversions cannot follow those before it; None if it can.

    :param of_list: the value that the chain converts is a list
    """
    *before, name = names
    is_list = before[-1] in TO_LISTS if before else of_list
    if name in OF_LISTS and before and not is_list:
        lists = " or ".join(sorted(TO_LISTS))
        return f"{name} must be the first conversion, or follow {lists}: others give no list"
    if is_list and name not in OF_LISTS:
        return f"{name} converts no list; those that do are {', '.join(sorted(OF_LISTS))}"
    return None


def formatted(value: object, form: str, spec: str) -> str:
    """Return a value as Python's format strings would, with ``!s`` or ``!r`` if there is a form.

    :raises OperandError: the specification is not one of such a value
    """
    if form:
        value = str(value) if form == "s" else repr(value)
    if not isinstance(value, (str, int, float)):
        if spec:
            raise OperandError("must be a string, a number, true or false")
        return str(value)
    try:
        return format(value, spec)
    except (ValueError, OverflowError):
        raise OperandError("cannot be written in this format") from None


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"\.([^.\[\]{}!:|\s]+)|\[([^\[\]{}]+)\]")
_CONVERSION = re.compile(r"\|([^.\[\]{}!:|\s]*)")
_KNOWN = f"known: {', '.join(CONVERSIONS)}"
_PYTHON = re.compile(r"(?:!([^:{}]*))?(?::([^{}]*))?")
#: Format specifications whose result depends on the value only, and is not much longer than that.
_SPEC = re.compile(r"(?:[^{}]?[<>=^])?[-+ ]?#?0?[0-9]{0,4}[,_]?(?:\.[0-9]{1,4})?[bdeEfFgGosxX%]?")
_SPECS = "[[fill]align][sign][#][0][width][,][.precision][type] with a type of b, d, e, E, f, F, g, G, o, s, x, X and %"
#: Braces in a regular expression that are not a template.
QUANTIFIER = re.compile(r"\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)\}")
#: Longer texts are parsed each time: those in the cache may be of deleted rules.
_MAX_CACHED = 256
#: The names that templates can have, in any place.
NAMES = frozenset({"inventory", "plugin_data", "node", "ports", "port_groups", "previous", "fact", "previous_fact",
                   "item", "match"})
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
    :ivar form: Python's ``s`` or ``r``, as in ``!r``
    :ivar spec: a format specification of Python
    """

    root: str
    steps: tuple[str, ...]
    text: str
    column: int
    conversions: tuple[str, ...] = ()
    form: str = ""
    spec: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it stands for the value as it is at the path."""
        return not (self.conversions or self.form or self.spec)

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


def stray_braces(text: str) -> list[int]:
    """Return the columns of the braces of a regular expression that look like the beginning of a template."""
    places: list[int] = []
    _parsed(text, True, "", places)
    return places


def _parsed(text: str, regex: bool, begin: str, stray: list[int] | None = None) -> tuple[str | Field, ...]:
    parts: list[str | Field] = []
    literal: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if regex and (token := _literal_of_regex(text, at)):
            literal.append(token)
            at += len(token)
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
            try:
                field, at = _field(text, at)
            except TemplateError as exc:
                if not regex or (isinstance(exc, ConversionError) and _is_known(text, at)):
                    raise
                literal.append("{")
                at += 1
                if stray is not None:
                    stray.append(at)
            else:
                if literal:
                    parts.append("".join(literal))
                    literal = []
                parts.append(field)
    if literal:
        parts.append("".join(literal))
    return tuple(parts)


# Thousands of rules have the same few templates.
_cached = functools.lru_cache(maxsize=4096)(_parsed)


def _is_known(text: str, at: int) -> bool:
    name = _NAME.match(text, at + 1)
    return name is not None and name.group() in NAMES


def _literal_of_regex(text: str, at: int) -> str:
    if text[at] == "\\":
        match = _ESCAPE.match(text, at)
        return match.group() if match else text[at]
    if text[at] == "{":
        if match := QUANTIFIER.match(text, at):
            return match.group()
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
    form, spec, at = _python_format(text, at)
    if at < len(text) and text[at] == "}":
        return Field(name.group(), tuple(steps), text[start:at + 1], start + 1, conversions, form, spec), at + 1
    raise TemplateError(*_complaint(text, start, at, bool(conversions)))


def _python_format(text: str, at: int) -> tuple[str, str, int]:
    """Return what follows as Python's conversion and format specification, and where it ends."""
    match = _PYTHON.match(text, at)
    if match is None or text[match.end():match.end() + 1] != "}":
        return "", "", at
    form, spec = match.groups()
    if form not in (None, "s", "r"):
        unsafe = "!a is not supported; " if form == "a" else ""
        raise ConversionError(at + 1, (
            f"{unsafe}of Python's conversions there are !s and !r; others are written with '|', as in "
            f"{{inventory[hostname]|lower}}; {_KNOWN}"))
    if spec is not None and _SPEC.fullmatch(spec) is None:
        named = f"the type {spec[-1]} is not supported; " if spec[-1:] in ("n", "c") else ""
        raise ConversionError(match.start(2) + 1, f"{named}a format specification is {_SPECS}")
    return form or "", spec or "", match.end()


def _conversions(text: str, at: int) -> tuple[tuple[str, ...], int]:
    names: tuple[str, ...] = ()
    while (match := _CONVERSION.match(text, at)) is not None:
        name = match.group(1)
        if name not in CONVERSIONS:
            near = nearest(name, CONVERSIONS)
            hint = f"did you mean {near!r}?" if near else f"{_KNOWN}; a key that contains '|' needs brackets"
            raise ConversionError(match.start() + 2, f"there is no such conversion; {hint}")
        if len(names) == MAX_CHAIN:
            raise TemplateError(match.start() + 1, f"more than {MAX_CHAIN} conversions")
        names += (name,)
        if (reason := chain_problem(names)) is not None:
            raise TemplateError(match.start() + 2, reason)
        at = match.end()
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
    if rest in ("!", ":"):
        if nested := re.compile(r"[^}]*?(\{)").match(text, at):
            return nested.end(), "a template inside a template is not possible"
        return start + 1, "this '{' is not closed; write '{{' for a brace"
    if rest == "{":
        return at + 1, "a template inside a template is not possible"
    if rest == ".":
        return at + 2, "a key must follow '.'"
    return at + 1, "expected '.', '[', '|' or '}'"


ROOT_GROUPS = "match"
_HOW = ("a condition 'matches' provides it by (?P<name>...) in a regex without templates, unless it is inverted or has "
        "'multiple': 'all'")


@dataclass(slots=True)
class Groups:
    """The groups that the conditions of a rule provide, and those that its actions read.

    :ivar provided: the name of each group; None if they are unknown, because conditions are invalid
    """

    provided: list[str] | None
    used: set[str] = field(default_factory=set)

    def use(self, steps: tuple[str, ...]) -> str | None:
        """Record that an action reads ``{match[..]}``; return why that is impossible, or None."""
        if len(steps) != 1:
            return f"the name of one group must follow: {{{ROOT_GROUPS}[name]}}"
        name, = steps
        self.used.add(name)
        if self.provided is None or self.provided.count(name) == 1:
            return None
        if name in self.provided:
            return "more than one group of the conditions has this name"
        near = nearest(name, self.provided)
        hint = f"known: {', '.join(sorted(set(self.provided)))}" if self.provided else _HOW
        return f"no condition provides this group; {f'did you mean {near!r}?' if near else hint}"


#: Stands for any element of a list, in the steps of a path.
ANY_RECORD = "*"
_PARTS = frozenset({Type.OBJECT, Type.LIST})
#: Field names in a message if none is similar.
_NAMED = 12


def _of(table: Fields, **more: Type) -> dict[str, Type]:
    # Fields that replies show come first, for messages.
    return {name: table[name].type for name in sorted(table, key=lambda name: not table[name].shown)} | more


#: root -> its fields; except ``node``, the roots are lists.
RECORDS: Mapping[str, Mapping[str, Type]] = {
    "node": _of(NODE, traits=Type.LIST), "ports": _of(PORT), "port_groups": _of(PORT_GROUP)}


# Thousands of rules read the same few fields.
@functools.lru_cache(maxsize=4096)
def record_problem(root: str, steps: tuple[str, ...], *, hint: bool = True) -> tuple[int, str] | None:
    """Return why a path below ``root`` can never have a value: the number of the step, and the reason; None if it can.

    :param steps: ``ANY`` is any index
    :param hint: name the most similar field
    """
    fields = RECORDS.get(root)
    first = 0
    if fields is not None and root != "node" and steps:
        if not _is_index(steps[0]):
            return 0, f"{root} is a list: an index must follow, as in {root}[0]"
        first = 1
    if fields is None or len(steps) <= first:
        return None
    name, below = steps[first], steps[first + 1:]
    kind = fields.get(name)
    if kind is None:
        return first, f"there is no such field; {_hint(name, fields) if hint else 'its name is misspelled'}"
    if below and kind not in _PARTS:
        return first + 1, f"{name} is neither an object nor a list: it has no parts"
    if below and kind is Type.LIST and (len(below) > 1 or not _is_index(below[0])):
        return first + 1, f"{name} is a list of texts: only an index can follow, as in {name}[0]"
    return None


def _is_index(step: str) -> bool:
    # As the getters of paths: longer numbers are keys.
    return step == ANY_RECORD or (step.isdecimal() and len(step) < 10)


def _hint(name: str, fields: Mapping[str, Type]) -> str:
    near = nearest(name, fields)
    return f"did you mean {near!r}?" if near else f"known: {enumeration(fields, _NAMED)}"
