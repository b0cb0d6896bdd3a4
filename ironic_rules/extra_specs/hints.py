"""The valid key that a key which does not exist may be meant to be."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ironic_rules.extra_specs.names import Template
    from ironic_rules.extra_specs.registry import SpecRegistry

#: Longer keys are not compared with others.
_MAX_LENGTH = 128
#: How many keys, those that share most trigrams, are compared in full.
_CANDIDATES = 8
_CUTOFF = 0.6
#: Letters of other scripts that look like ASCII letters, which are not those that Unicode's normalisation maps to them.
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
        # Of names that share as many, those of the most similar length come first.
        ranked = sorted(shared.items(), key=lambda item: (-item[1], abs(len(self._names[item[0]][0]) - len(text))))
        for number, _ in ranked[:_CANDIDATES]:
            name, original = self._names[number]
            candidates[name] = original
        found = difflib.get_close_matches(text, candidates, n=1, cutoff=_CUTOFF)
        return candidates[found[0]] if found else None


class Hints:
    """Finds the nearest key of a registry. What it needs is made when it is first asked."""

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
                found = self._choices[prefix].to(after)
                if found and self._is_supported(f"{before}:{found}"):
                    return f"{before}:{found}"
        if colon and before not in self._namespaces:
            for namespace in difflib.get_close_matches(before, self._namespaces, n=2):
                if self._is_supported(found := f"{namespace}:{key.partition(':')[2]}"):
                    return found
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
        found = self._registry.find(key)
        return found is not None and not found[0].is_removed


def _trigrams(text: str) -> set[str]:
    padded = f"  {text} "
    return {padded[start:start + 3] for start in range(len(padded) - 2)}
