"""The registries of extra specs and of image properties: definitions by name, found without a scan.

Names may have parameters, such as ``trait{group}:CUSTOM_{trait}``. For a key that does not exist, a registry suggests
the valid key that may be meant.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import re2

from ironic_rules.extra_specs.validators import REMOVED, ExtraSpecValidator
from ironic_rules.extra_specs.values import MAX_LENGTH, BadDefinition, ValueRule, compiled, refuse_unknown, rule_of
from ironic_rules.text import printable

#: Longer keys are not compared with others.
_MAX_LENGTH = 128
#: Maximum number of keys, those that share most trigrams, that are compared in full.
_CANDIDATES = 8
_CUTOFF = 0.6
#: Letters of other scripts that look like ASCII letters, which are not those that Unicode's normalization maps to them.
_LOOKALIKES = str.maketrans(
    "асԁеһіјӏоԛрѕԝхуАВЕНІЈКМОРЅТХУαιονρυΑΒΕΗΙΚΜΝΟΡΤΥΧΖ‐‑‒–—−ː։：",
    "acdehijloqpswxyABEHIJKMOPSTXYaiovpuABEHIKMNOPTYXZ------:::")


def folded(text: str) -> str:
    """Return a text in lower case, with ASCII letters in place of those that look like them."""
    return unicodedata.normalize("NFKC", text).translate(_LOOKALIKES).strip().lower().replace("-", "_")


def foreign_character(key: str) -> str | None:
    """Return a sentence about the first character of ``key`` that is not ASCII or not printable; None if all are."""
    for position, character in enumerate(key, 1):
        if not character.isascii() or not character.isprintable():
            code = f"U+{ord(character):04X}"
            name = unicodedata.name(character, "")
            return f"Character {position} of it is {code}{f' ({name})' if name else ''}, which no name contains."
    return None


class Similar:
    """Finds the most similar of many names, by their trigrams first."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: list[tuple[str, str]] = [(folded(name), name) for name in names]
        self._exact = dict(self._names)
        self._having: dict[str, list[int]] = {}
        for number, (name, _) in enumerate(self._names):
            for trigram in _trigrams(name):
                self._having.setdefault(trigram, []).append(number)

    def to(self, text: str) -> str | None:
        """Return the name that is most similar to ``text``; None if none is."""
        if len(text) > _MAX_LENGTH:
            return None
        text = folded(text)
        if text in self._exact:
            return self._exact[text]
        shared: Counter[int] = Counter()
        for trigram in _trigrams(text):
            shared.update(self._having.get(trigram, ()))
        candidates = {}
        # Among names that share as many, those of the most similar length come first.
        ranked = sorted(shared.items(), key=lambda item: (-item[1], abs(len(self._names[item[0]][0]) - len(text))))
        for number, _ in ranked[:_CANDIDATES]:
            name, original = self._names[number]
            candidates[name] = original
        closest = difflib.get_close_matches(text, candidates, n=1, cutoff=_CUTOFF)
        return candidates[closest[0]] if closest else None


class Hints:
    """Finds the nearest key of a registry. Its tables are made at the first question."""

    def __init__(self, registry: SpecRegistry) -> None:
        self._registry = registry
        self._size = 0
        self._names = Similar(())
        self._namespaces: list[str] = []
        self._families: list[tuple[str, Template]] = []
        self._choices: dict[str, Similar] = {}

    def nearest(self, key: str) -> str | None:
        """Return the valid key that ``key`` resembles most, None if there is none.

        Where a name has a parameter that is one of many, such as the traits, ``key`` is compared with them.
        """
        if len(key) > _MAX_LENGTH:
            return None
        if self._size != len(self._registry):
            self._prepare()
        plain = folded(key)
        before, colon, after = plain.partition(":")
        if plain != key and self._is_supported(plain):
            return plain
        for prefix, template in self._families:
            if colon and before.startswith(prefix):
                if self._is_supported(upper := f"{before}:{after.upper()}"):
                    return upper
                if prefix not in self._choices:
                    self._choices[prefix] = Similar(template.choices())
                candidate = self._choices[prefix].to(after)
                if candidate and self._is_supported(f"{before}:{candidate}"):
                    return f"{before}:{candidate}"
        if colon and before not in self._namespaces:
            for namespace in difflib.get_close_matches(before, self._namespaces, n=2):
                if self._is_supported(candidate := f"{namespace}:{key.partition(':')[2]}"):
                    return candidate
        return self._names.to(key)

    def _prepare(self) -> None:
        items = [item for item in self._registry if not item.is_removed]
        size = len(self._registry)
        self._names = Similar(item.validator.name for item in items)
        self._namespaces = sorted({item.validator.namespace for item in items} - {""})
        self._families = [(item.validator.namespace, item.template) for item in items if item.template.has_choices]
        # Last: another thread that sees it uses the rest.
        self._size = size

    def _is_supported(self, key: str) -> bool:
        lookup = self._registry.find(key)
        return lookup is not None and not lookup[0].is_removed


def _trigrams(text: str) -> set[str]:
    padded = f"  {text} "
    return {padded[start:start + 3] for start in range(len(padded) - 2)}


T = TypeVar("T")
_PARAMETER = re.compile(r"\{([^{}]*)\}")
_TYPES = {int: "[0-9]+", str: ".+"}


@dataclass(frozen=True)
class NameParameter:
    """A parameter of a name: what it must match, or the function that returns all that it can be."""

    name: str
    description: str
    pattern: str
    choices: Callable[[], Collection[str]] | None = None


class Template:
    """A name with parameters."""

    def __init__(self, name: str, parameters: Sequence[Mapping[str, Any]], is_trusted: bool = False) -> None:
        """Read a name.

        :param is_trusted: whether the patterns are of this package: Python's expressions, of which those take linear
            time, are ten times as fast as RE2's for short texts
        :raises BadDefinition: its parameters are not those that are described, or one of them cannot work
        """
        literals = _PARAMETER.split(name)
        used = literals[1::2]
        self.literals = literals[::2]
        self.parameters = tuple(map(_parameter, parameters))
        by_name = {parameter.name: parameter for parameter in self.parameters}
        if len(by_name) < len(self.parameters) or sorted(used) != sorted(by_name):
            raise BadDefinition(f"The parameters of the name are {', '.join(used) or 'none'}; described are "
                                f"{', '.join(parameter.name for parameter in self.parameters) or 'none'}.")
        if any("{" in literal or "}" in literal for literal in self.literals):
            raise BadDefinition("A brace in the name belongs to no parameter.")
        self._used = [by_name[parameter] for parameter in used]
        self.prefix, self.suffix = self.literals[0], self.literals[-1]
        #: more literal names are tried before less literal ones
        self.weight = sum(map(len, self.literals))
        inner = [f"({parameter.pattern})" for parameter in self._used]
        text = "".join(map("".join, zip(inner, [*map(re2.escape, self.literals[1:-1]), ""], strict=False)))
        expression: Any = re.compile(text, re.ASCII) if is_trusted else compiled(text)
        self._match: Callable[[str], Any] | None = expression.fullmatch if used else None
        # Patterns of parameters may have groups of their own.
        self._groups = _positions(self._used)
        self._has_choices = any(parameter.choices for parameter in self._used)

    def values(self, name: str) -> dict[str, str] | None:
        """Return the parameters' values in a name that begins and ends as this one, None if it does not match."""
        if self._match is None:
            return {} if name == self.prefix else None
        if len(name) < len(self.prefix) + len(self.suffix):
            return None
        match = self._match(name[len(self.prefix):len(name) - len(self.suffix)])
        if match is None:
            return None
        values = {parameter.name: match.group(group) for parameter, group in zip(self._used, self._groups, strict=True)}
        if self._has_choices and not all(values[parameter.name] in parameter.choices()
                                         for parameter in self._used if parameter.choices):
            return None
        return values

    @property
    def has_choices(self) -> bool:
        """True if a parameter is one of many names of a library."""
        return self._has_choices

    def choices(self) -> list[str]:
        """Return the choices for the last parameter, sorted; empty if it is not one of many names."""
        last = self._used[-1] if self._used else None
        return sorted(last.choices()) if last and last.choices else []


class Templates(Generic[T]):
    """Templates by what stands before the first and after the last parameter.

    The work of finding a name depends on how many different lengths those parts have, not on how many templates there
    are.
    """

    def __init__(self) -> None:
        self._by_ends: dict[tuple[str, str], list[tuple[Template, T]]] = {}
        self._suffix_lengths: dict[str, list[int]] = {}
        self._prefix_lengths: list[int] = []

    def add(self, template: Template, item: T) -> None:
        """Add a template; of those that match a name, the one with most literal characters is found."""
        bucket = self._by_ends.setdefault((template.prefix, template.suffix), [])
        bucket.append((template, item))
        bucket.sort(key=lambda entry: -entry[0].weight)
        lengths = self._suffix_lengths.setdefault(template.prefix, [])
        lengths[:] = sorted({*lengths, len(template.suffix)}, reverse=True)
        self._prefix_lengths = sorted(set(map(len, self._suffix_lengths)), reverse=True)

    def find(self, name: str) -> tuple[T, dict[str, str]] | None:
        """Return the item of the template that a name matches, with the parameters' values; None if there is none."""
        if len(name) > MAX_LENGTH or not name.isascii() or not name.isprintable():
            return None
        for length in self._prefix_lengths:
            prefix = name[:length]
            for suffix_length in self._suffix_lengths.get(prefix, ()):
                suffix = name[len(name) - suffix_length:] if suffix_length else ""
                for template, item in self._by_ends.get((prefix, suffix), ()):
                    values = template.values(name)
                    if values is not None:
                        return item, values
        return None


def shape(name: str) -> str:
    """Return a name without the names of its parameters."""
    return _PARAMETER.sub("{}", name)


def _parameter(described: Mapping[str, Any]) -> NameParameter:
    if not isinstance(described, Mapping) or not isinstance(described.get("name"), str):
        raise BadDefinition("A parameter has no name.")
    name = described["name"]
    description = str(described.get("description") or "")
    refuse_unknown(described, ("name", "description", "type", "pattern", "enum"), f"Parameter '{printable(name, 64)}'")
    constraints = [key for key in ("type", "pattern", "enum") if described.get(key) is not None]
    if not constraints:
        raise BadDefinition(f"Parameter '{name}' has neither a type nor a pattern.")
    pattern = described.get("pattern") or _TYPES.get(described.get("type", str))
    if not isinstance(pattern, str):
        raise BadDefinition(f"Parameter '{name}': its type is neither int nor str, or its pattern is no text.")
    compiled(pattern)
    return NameParameter(name, description, pattern, _choices(described.get("enum"), name))


def _choices(described: object, name: str) -> Callable[[], Collection[str]] | None:
    if described is None or callable(described):
        return described
    if not isinstance(described, Iterable) or isinstance(described, str | bytes):
        raise BadDefinition(f"Parameter '{name}': 'enum' is not a list.")
    fixed = frozenset(described)
    if not fixed or not all(isinstance(item, str) for item in fixed):
        raise BadDefinition(f"Parameter '{name}': 'enum' is not a list of texts with at least one.")
    return lambda: fixed


def _positions(parameters: Sequence[NameParameter]) -> list[int]:
    """Return the number of each parameter's group in the expression of all of them."""
    positions, position = [], 1
    for parameter in parameters:
        positions.append(position)
        position += 1 + compiled(parameter.pattern).groups
    return positions


#: The origin of what is defined in this package.
IN_TREE = ""


@dataclass(frozen=True)
class PluginWarning:
    """Something of a plug-in that does not work, or is not used.

    :ivar entry_point: ``GROUP: NAME = MODULE:OBJECT``
    :ivar distribution: the package that has it; empty if that is not known
    :ivar kind: ``failed`` (it cannot be loaded), ``invalid`` (a definition cannot work) or ``shadowed`` (another one
        has its name)
    :ivar text: one sentence
    """

    entry_point: str
    distribution: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Registered:
    """A validator, compiled.

    :ivar origin: the distribution of the plug-in that defined it; empty for those of this package
    """

    validator: ExtraSpecValidator
    rule: ValueRule
    template: Template
    origin: str
    is_removed: bool

    @property
    def gives_way(self) -> bool:
        """True if plug-ins can define its names: those of an open namespace, and those that Nova no longer has."""
        return not self.origin and (self.validator.refinable or self.is_removed)


class SpecRegistry:
    """Validators by name. Finding one never looks at all of them.

    :ivar noun: the noun for the described objects in messages: ``extra spec`` or ``image property``
    :ivar plain: those without parameters, by name
    :ivar warnings: the problems of plug-ins
    """

    def __init__(self, noun: str, validators: Iterable[ExtraSpecValidator] = ()) -> None:
        self.noun = noun
        self.plain: dict[str, Registered] = {}
        self.warnings: list[PluginWarning] = []
        #: Templates of this package, of plug-ins, and of this package that give way to those of plug-ins.
        self._templates: tuple[Templates[Registered], ...] = (Templates(), Templates(), Templates())
        self._by_name: dict[str, Registered] = {}
        self._shapes: dict[str, Registered] = {}
        self.hints = Hints(self)
        for validator in validators:
            self.add(validator)

    def add(self, validator: ExtraSpecValidator, origin: str = IN_TREE) -> None:
        """Add a validator.

        :raises BadDefinition: it cannot work, or its name is already in use
        """
        name = validator.name
        if not isinstance(name, str) or not 0 < len(name) <= MAX_LENGTH or not name.isprintable():
            raise BadDefinition(f"Its name is not a printable text of 1 to {MAX_LENGTH} characters.")
        if not isinstance(validator.description, str) or not validator.description.strip():
            raise BadDefinition("It has no description.")
        _check_documentation(validator)
        existing = self.get(name)
        if existing and not (origin and existing.gives_way and existing.is_removed):
            raise BadDefinition(f"There is another {self.noun} of its name.")
        template = Template(name, validator.parameters, is_trusted=not origin)
        registered = Registered(validator, rule_of(validator.value), template, origin, validator.status == REMOVED)
        if existing:
            del self._by_name[existing.validator.name]
        self._by_name[name] = registered
        self._shapes[shape(name)] = registered
        if template.parameters:
            self._templates[1 if origin else 2 * registered.gives_way].add(template, registered)
        else:
            self.plain[name] = registered

    def find(self, key: str) -> tuple[Registered, dict[str, str]] | None:
        """Return the definition of the extra spec ``key``, and the values of its parameters; None if there is none."""
        registered = self.plain.get(key)
        if registered:
            return registered, {}
        for templates in self._templates:
            lookup = templates.find(key)
            if lookup:
                return lookup
        return None

    def get(self, name: str) -> Registered | None:
        """Return the definition of ``name``, with parameters of any name in braces; None if there is none."""
        return self._by_name.get(name) or self._shapes.get(shape(name))

    def __iter__(self) -> Iterator[Registered]:
        """Yield all of them, by name."""
        return iter(sorted(self._by_name.values(), key=lambda registered: registered.validator.name))

    def __len__(self) -> int:
        return len(self._by_name)

    def namespaces(self) -> dict[str, list[Registered]]:
        """Return all of them by namespace, both sorted; that of names without one is empty."""
        by_namespace: dict[str, list[Registered]] = {}
        for item in self:
            by_namespace.setdefault(item.validator.namespace, []).append(item)
        return dict(sorted(by_namespace.items()))


def _check_documentation(validator: ExtraSpecValidator) -> None:
    """Check what is shown and not enforced."""
    for field in ("removed", "replaced_by", "advice", "see_also"):
        if not isinstance(getattr(validator, field), str):
            raise BadDefinition(f"'{field}' is not a text.")
    for field in ("drivers", "requires"):
        texts = getattr(validator, field)
        if not isinstance(texts, list | tuple) or not all(isinstance(item, str) for item in texts):
            raise BadDefinition(f"'{field}' is not a list of texts.")
