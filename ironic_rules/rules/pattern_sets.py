"""Many regular expressions applied to one text at once, by RE2's sets.

A set of a thousand expressions takes little more time than a single one. RE2 limits the memory of a set, and reports
neither that a match needed more nor what it missed; so each set has one more expression, which matches every text: if
that is missing in a result, the expressions are applied one by one. Those that do not fit into any set always are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import re2

from ironic_rules.rules.regex import LONGEST_KNOWN, Pattern

#: Maximum number of expressions that are applied one by one beside sets: RE2 needs 10 us to compile one into a set.
LOOSE = 32
#: Maximum number of expressions that take less time one by one than in a set.
_FEW = 3
#: Maximum number of expressions in one set.
_MANY = 1000
#: Bytes that RE2 may use for a set, most of them for its cache of states.
MAX_MEMORY = 8 * 1024 * 1024
#: Maximum number of texts for which it is remembered what matches them, and of expressions that match one of these.
_KNOWN, _MOST_KNOWN = 16, 1000
_EVERY_TEXT = b"(?s:.*)"


class PatternSets:
    """Regular expressions, of which each text occurs once; immutable, shared by threads.

    :param full: whether an expression must match the whole text, or may match anywhere in it
    :param sets: of some expressions
    :param loose: expressions in none of the sets, by their texts
    """

    __slots__ = ("_full", "_known", "_loose", "_most", "_sets")

    def __init__(self, full: bool, sets: Sequence[_Set] = (), loose: Mapping[str, Pattern] | None = None) -> None:
        self._full = full
        self._sets = tuple(sets)
        self._loose = loose or {}
        #: what matches the texts of the last machines
        self._known: dict[bytes, frozenset[str]] = {}
        # The same for all: a limit of the service.
        self._most = min((pattern.most for each in (self._loose, *(each.patterns for each in self._sets))
                          for pattern in each.values()), default=0)

    @classmethod
    def compiled(cls, full: bool, patterns: Iterable[Pattern], max_memory: int = MAX_MEMORY) -> PatternSets:
        """Return sets of the expressions: it takes 10 us for each."""
        sets: list[_Set] = []
        loose: dict[str, Pattern] = {}
        queue = [tuple(patterns)]
        while queue:
            part = queue.pop()
            if len(part) > _MANY:
                queue += [part[:_MANY], part[_MANY:]]
                continue
            made = _Set.compiled(full, part, max_memory) if len(part) > 1 else None
            if made is not None:
                sets.append(made)
            elif len(part) > 1:
                queue += [part[:len(part) // 2], part[len(part) // 2:]]
            else:
                loose.update((pattern.text, pattern) for pattern in part)
        return cls(full, sets, loose)

    def with_loose(self, added: Iterable[Pattern]) -> PatternSets:
        """Return these with further expressions, which are in none of the sets."""
        new = {pattern.text: pattern for pattern in added
               if not any(pattern.text in each.patterns for each in self._sets)}
        return PatternSets(self._full, self._sets, {**self._loose, **new}) if new else self

    def tidied(self, needed: Collection[str]) -> PatternSets:
        """Return the sets of the expressions that are needed; these if few are loose, and not most are superfluous."""
        known = dict(self._loose)
        for each in self._sets:
            known |= each.patterns
        in_sets = len(known) - len(self._loose)
        if len(self._loose) <= min(LOOSE, _FEW + in_sets) and len(known) <= 2 * len(needed) + LOOSE:
            return self
        return PatternSets.compiled(self._full, [known[text] for text in needed])

    def matching(self, texts: Sequence[bytes]) -> Collection[str] | None:
        """Return the texts of those that match one of ``texts``; None if these are too long together."""
        if sum(map(len, texts)) > self._most:
            return None
        if len(texts) == 1 and len(texts[0]) <= LONGEST_KNOWN:
            return self._of_short(texts[0])
        return set().union(*map(self._of, texts))

    def _of_short(self, text: bytes) -> frozenset[str]:
        """Return the texts of those that match a text which other machines may have, too."""
        found = self._known.get(text)
        if found is None:
            found = frozenset(self._of(text))
            if len(found) <= _MOST_KNOWN:
                if len(self._known) >= _KNOWN:
                    self._known.clear()
                self._known[text] = found
        return found

    def _of(self, text: bytes) -> set[str]:
        found = {known for known, pattern in self._loose.items() if self._matches(pattern, text)}
        for each in self._sets:
            numbers = each.match(text)
            if numbers is None:
                found.update(known for known, pattern in each.patterns.items() if self._matches(pattern, text))
            else:
                found.update(map(each.texts.__getitem__, numbers))
        return found

    def _matches(self, pattern: Pattern, text: bytes) -> bool:
        return pattern.is_all_of(text) if self._full else pattern.is_in(text)


class _Set:
    """Several expressions by their texts, compiled together."""

    __slots__ = ("_match", "patterns", "texts")

    def __init__(self, patterns: Sequence[Pattern], match: re2.Set) -> None:
        self.patterns = {pattern.text: pattern for pattern in patterns}
        self.texts = tuple(self.patterns)
        self._match = match.Match

    @classmethod
    def compiled(cls, full: bool, patterns: Sequence[Pattern], max_memory: int) -> _Set | None:
        """Return a set; None if RE2 needs more memory for it."""
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = max_memory
        made = re2.Set.FullMatchSet(options) if full else re2.Set.SearchSet(options)
        try:
            for pattern in patterns:
                made.Add(pattern.text.encode())
            made.Add(_EVERY_TEXT)
            made.Compile()
        except re2.error:
            return None
        return cls(patterns, made)

    def match(self, text: bytes) -> list[int] | None:
        """Return the numbers of the expressions that match; None if RE2 ran out of memory."""
        numbers: list[int] = self._match(text) or []
        every = len(self.texts)
        return [number for number in numbers if number != every] if every in numbers else None
